"""Text of others in pages and pictures, and pictures under settings of others."""

import os
import re

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qornn._io.text import readable
from qornn.reporting.plots import in_picture, own_style
from qornn.train.log import MetricsLog, draw_curve

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


SETTINGS = {"text.usetex": True, "font.family": "no such font", "figure.dpi": 7.0, "axes.formatter.use_locale": True}


def test_pictures_do_not_depend_on_the_user_s_settings(tmp_path):
    log = MetricsLog(tmp_path)
    log.write({"step": 1, "loss": 2.0, "validation": 0.5})
    log.close()
    drawn = []
    for settings in ({}, SETTINGS):  # LaTeX may not be there, and takes no underscore
        with matplotlib.rc_context(settings):
            before = dict(matplotlib.rcParams)
            draw_curve(tmp_path, metric="mean_squared", baseline=0.1)
            assert dict(matplotlib.rcParams) == before
        drawn.append((tmp_path / "curve.png").read_bytes())
    assert drawn[0] == drawn[1]


def test_settings_are_the_user_s_again_after_an_error():
    @own_style()
    def fail():
        raise ZeroDivisionError

    with matplotlib.rc_context(SETTINGS):
        with pytest.raises(ZeroDivisionError):
            fail()
        assert matplotlib.rcParams["text.usetex"]
