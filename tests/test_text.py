"""Text of others in pages and pictures."""

import os
import re

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qornn.text import in_picture, readable

HOSTILE = [
    "a$_$b",
    "$\\frac$",
    "a\\$b$",
    "x^_{$",
    "\\",
    "σ‖α ü",
    "語😀\U000e0001",
    "n\nl\t\x00",
    os.fsdecode(b"caf\xe9"),
]


def drawn(text):
    """What matplotlib makes of a text: its letters, and whether it takes them for mathematics."""
    figure = Figure(figsize=(6, 2))
    FigureCanvasAgg(figure)
    made = figure.text(0, 0, text)
    figure.canvas.draw()
    return made._preprocess_math(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_pictures_show_every_text_letter_by_letter(text):
    letters, mathematics = drawn(in_picture(text))  # a glyph that the font lacks is a warning, which fails here
    assert not mathematics
    assert re.fullmatch("".join(f"({re.escape(c)}|\ufffd)" for c in text), letters)


def test_letters_that_the_font_has_are_kept():
    assert in_picture("walk_up^2 σ\\ü") == "walk_up^2 σ\\ü"


@pytest.mark.parametrize("text", HOSTILE)
def test_mathematics_beside_it_stays_mathematics(text):
    assert drawn(f"{in_picture(text)}, $n_h$ = 3")[1]


def test_pictures_cut_long_texts():
    assert in_picture("x" * 300) == "x" * 39 + "…"
    assert in_picture("x" * 12, 12) == "x" * 12


@pytest.mark.parametrize("text", HOSTILE)
def test_readable_text_is_utf8_and_otherwise_the_same(text):
    found = readable(text)
    found.encode("utf-8")
    assert found == text.replace("\udce9", "\ufffd")
