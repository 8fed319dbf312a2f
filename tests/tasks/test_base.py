import numpy as np
import pytest
import torch

from qornn.errors import SettingsError
from qornn.tasks.base import SPLITS, Batch, check_count, generator, shuffled_rows, split_rows


def test_generators_are_independent():
    keys = [
        (seed, split, index, stream) for seed in (0, 1) for split in SPLITS for index in (0, 1) for stream in (0, 1)
    ]
    draws = {generator(a, b, c, stream=d).bytes(16) for a, b, c, d in keys}
    assert len(draws) == len(keys)


def test_the_shuffle_and_the_data_draw_from_different_streams():
    assert shuffled_rows(100, 0, 100, 0).tolist() != generator(0, "train", 0).permutation(100).tolist()


def test_an_epoch_visits_every_row_once():
    rows = np.concatenate([shuffled_rows(12, i, 4, 0) for i in range(3)])
    assert sorted(rows) == list(range(12))


def test_the_incomplete_batch_is_left_out():
    rows = np.concatenate([shuffled_rows(14, i, 4, 0) for i in range(3)])
    assert len(set(rows)) == 12
    assert len(shuffled_rows(14, 3, 4, 0)) == 4  # the first of the second epoch


def test_a_batch_larger_than_the_split_is_the_whole_split():
    assert sorted(shuffled_rows(5, 0, 8, 0)) == list(range(5))
    assert sorted(shuffled_rows(5, 1, 8, 0)) == list(range(5))


def test_the_cached_order_cannot_be_spoiled():
    with pytest.raises(ValueError, match="read-only"):
        shuffled_rows(12, 0, 4, 0)[0] = 0


def test_the_last_evaluation_batch_is_the_remainder():
    assert split_rows(10, "test", 1, 8, 0).tolist() == [8, 9]


def test_an_empty_split_has_no_batch():
    with pytest.raises(SettingsError, match="the 0 validation sequences make 0 batches of 8"):
        split_rows(0, "validation", 0, 8, 0)


@pytest.mark.parametrize("value", [0, -3, 1.0, "4", True, None])
def test_counts_are_whole_and_positive(value):
    with pytest.raises(SettingsError, match="T0 must be a whole number of at least 1, got"):
        check_count("T0", value)


def test_weight_counts_the_targets():
    codes = torch.zeros(3, 5, dtype=torch.int64)
    lengths = torch.tensor([5, 2, 1])
    assert Batch(codes, codes).weight == 15
    assert Batch(codes, codes, lengths).weight == 8
    assert Batch(codes, codes[:, 0], lengths).weight == 3  # one target per sequence, however long


def test_rows_cut_all_three_tensors():
    codes = torch.arange(15).reshape(3, 5)
    part = Batch(codes, codes + 1, torch.tensor([5, 2, 1])).rows(1, 3)
    assert part.x.tolist() == codes[1:].tolist()
    assert part.target.tolist() == (codes + 1)[1:].tolist()
    assert part.lengths is not None
    assert part.lengths.tolist() == [2, 1]
