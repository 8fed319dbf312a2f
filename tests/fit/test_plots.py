"""The pictures of a fit's report, with classes of any name."""

import os

import numpy as np

from qornn.fit.plots import confusion_png, latency_png

NAMES = ["a$_$b", "$\\frac$", "x^_{", "\\", "n\nl", "語", "", "x" * 300, os.fsdecode(b"caf\xe9"), 3, 0.5]


def test_classes_may_have_any_name():
    counts = np.eye(len(NAMES))
    assert confusion_png(counts, NAMES, NAMES).startswith(b"\x89PNG")


def test_names_that_differ_by_a_sign_are_drawn_differently():
    drawn = {confusion_png(np.eye(2), names, names) for names in (["a_b", "c"], ["ab", "c"], ["a$b", "c"])}
    assert len(drawn) == 3


def test_a_latency_is_drawn_also_where_nothing_ends_right():
    drawn = {latency_png(np.array(samples, np.int64), 4) for samples in ([], [3], [3, 5, 5])}
    assert len(drawn) == 3
    assert all(png.startswith(b"\x89PNG") for png in drawn)
