"""What is held out of a part, and what is refused."""

import numpy as np
import pytest

from qornn.errors import DataError
from qornn.fit.dataset import Labelled
from qornn.fit.split import hold_out, hold_out_test
from qornn.tasks.arrays import Sequences


def part(y, groups=None):
    x = Sequences(np.zeros((len(y), 3, 1)), None)
    return Labelled(x, np.asarray(y), None if groups is None else np.array(groups, str))


def test_one_of_each_class_always_stays():
    assert not hold_out(part([0, 1, 2]), 0.9, 0, stream=1, by_class=True).any()
    assert hold_out(part(np.zeros(10)), 0.2, 0, stream=1, by_class=False).sum() == 2


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (["anna"] * 8, "all sequences are of one group, anna, so no group is left for the test; give a separate"),
        ([0, 1] * 4, "no group can be held out for the test: each has a class that no other group has"),
    ],
)
def test_groups_that_leave_nothing_to_test_on_are_refused(groups, words):
    with pytest.raises(DataError, match=words):
        hold_out_test(part([0, 1] * 4, groups), 0.2, 0, by_class=True)
