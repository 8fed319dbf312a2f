import numpy as np
import pytest
import torch

from qornn.tasks import SPLITS
from qornn.tasks.digits import Digits


@pytest.fixture(scope="module")
def task():
    return Digits()


def test_sizes(task):
    assert [task.size(split) for split in SPLITS] == [1197, 300, 300]


def test_every_image_is_in_one_split(task):
    from sklearn.datasets import load_digits

    parts = [task.batch(split, 0, 2000).x.squeeze(-1).numpy() * 16 for split in SPLITS]
    # lexsort as a canonical order: the two collections are equal, whatever the splits.
    ours, theirs = np.concatenate(parts).astype(int), load_digits().data.astype(int)
    assert np.array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])


@pytest.mark.parametrize("split", SPLITS)
def test_classes_are_in_proportion(task, split):
    counts = np.bincount(task.batch(split, 0, 2000).target, minlength=10)
    whole = np.array([178, 182, 177, 183, 181, 182, 181, 179, 174, 180])  # scikit-learn's documentation, 1797 in all
    assert np.abs(counts - whole * task.size(split) / 1797).max() < 2  # rounding of the other two splits adds up


def test_pixels_keep_their_labels(task):
    from sklearn.datasets import load_digits

    data = load_digits()
    label = {image.astype(np.uint8).tobytes(): target for image, target in zip(data.data, data.target, strict=True)}
    batch = task.batch("validation", 0, 300)
    images = (batch.x.squeeze(-1) * 16).to(torch.uint8).numpy()
    assert [label[image.tobytes()] for image in images] == batch.target.tolist()
