"""Windows of one recording on both sides are found, and other data is left in peace."""

import time

import numpy as np
import pytest

from qornn.fit import leaks
from qornn.fit.dataset import Labelled
from qornn.fit.leaks import counted, told
from qornn.tasks.arrays import Sequences


def windows(stride, length=80, n=200, channels=2, seed=0):
    """Windows of one long recording."""
    recording = np.random.default_rng(seed).normal(size=(n * stride + length, channels))
    return np.stack([recording[i * stride : i * stride + length] for i in range(n)])


def split(x, seed=0):
    rows = np.random.default_rng(seed).permutation(len(x))
    return Sequences(x[rows[40:]], None), Sequences(x[rows[:40]], None)


@pytest.mark.parametrize("stride", [8, 20, 33, 40, 60])
def test_windows_that_overlap_by_a_quarter_or_more_are_found(stride):
    train, test = split(windows(stride))
    equal, overlapping = counted(train, test)
    assert equal == 0
    assert overlapping > 30  # but where both neighbours are in the test part


@pytest.mark.parametrize("stride", [75, 80, 100])
def test_windows_that_hardly_overlap_are_not(stride):
    assert counted(*split(windows(stride))) == (0, 0)


def test_equal_sequences_are_counted_once_whatever_their_padding_and_type():
    x = windows(100, n=12).round(1)
    lengths = np.full(12, 50)
    train = Sequences(x.astype(np.float64), lengths)
    padded = np.concatenate([x[:5], np.ones((5, 7, 2))], 1)
    padded[:, 50:] = 9
    assert counted(train, Sequences(padded, lengths[:5])) == (5, 0)
    assert counted(train, Sequences(padded, lengths[:5] - 1))[0] == 0
    assert counted(Sequences(np.rint(10 * x).astype(np.int16), None), Sequences(np.rint(10 * x[:3]), None)) == (3, 0)


def test_unequal_lengths_overlap_at_their_own_ends():
    x = windows(40, n=2)
    longer = np.concatenate([x[:1], np.full((1, 20, 2), 5.0)], 1)
    assert counted(Sequences(longer, np.array([80])), Sequences(x[1:], np.array([80]))) == (0, 1)
    assert counted(Sequences(longer, np.array([60])), Sequences(x[1:], np.array([80]))) == (0, 1)
    assert counted(Sequences(longer, np.array([40])), Sequences(x[1:], np.array([80]))) == (0, 0)


def test_flat_parts_are_no_overlap():
    x = np.zeros((40, 80, 1))
    x[:, 40] = np.arange(40)[:, None]  # silence but for one click each
    assert counted(Sequences(x[:20], None), Sequences(x[20:], None)) == (0, 0)


def test_zeros_at_the_end_are_samples():
    x = Sequences(np.array([[1.0, 2, 0, 0]])[:, :, None], None)
    assert counted(x, Sequences(x.x[:, :3], None)) == (0, 0)


def test_short_sequences_are_compared_as_a_whole():
    x = np.arange(30.0).reshape(6, 5, 1)
    assert counted(Sequences(x, None), Sequences(x[:2], None)) == (2, 0)


def test_the_warning_names_the_count_and_the_way_out():
    train, test = (
        Labelled(x, np.zeros(len(x))) for x in split(np.concatenate([windows(40), windows(99, n=1, seed=1)]))
    )
    (note,) = told(train, test, drawn=True)
    assert note.startswith(f"of 40 test sequences {counted(train.x, test.x)[1]} overlap one in training: ")
    assert note.endswith("name the group of each sequence with --group COLUMN, or an array `groups`")
    assert "split the data by recording" in told(train, test, drawn=False)[0]


def test_a_single_overlap_is_taken_for_chance_and_an_equal_sequence_is_not():
    x = windows(40, n=2)
    train, test = (Labelled(Sequences(part, None), np.zeros(len(part))) for part in (x[:1], x[1:]))
    assert not told(train, test, drawn=True)
    assert "of 1 test sequences 1 equal one in training" in told(train, train, drawn=True)[0]


def test_large_data_is_sampled(monkeypatch):
    monkeypatch.setattr(leaks, "LARGEST", 160 * 20)  # of 160 training sequences 20
    x = windows(100)
    assert counted(Sequences(x[:160], None), Sequences(x[:160], None)) == (20, 0)


def test_ten_thousand_sequences_take_no_time():
    x = windows(250, 500, 10_000, 1)
    began = time.monotonic()
    assert counted(*split(x))[1] == 40
    assert time.monotonic() - began < 4
