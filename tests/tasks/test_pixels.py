import pytest
import torch

from qornn.errors import SettingsError
from qornn.tasks import make_task

NAMES = ["smnist", "pmnist", "digits"]


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_answer_scores_the_share_of_its_class(name, small_task):
    task = small_task(name)
    batch = task.batch("test", 0, 300)
    share = 100 * (batch.target == 3).double().mean().item()
    y = torch.zeros(len(batch.target), 10)
    y[:, 3] = 1
    assert task.metric(y, batch) == pytest.approx(share)
    # Ten classes in proportion: within two points of one in ten.
    assert share == pytest.approx(task.naive_baseline, abs=2)


@pytest.mark.parametrize("name", NAMES)
def test_limit_keeps_the_first_training_images_only(name, small_task):
    whole, few = small_task(name), small_task(name, limit=6)
    assert few.size("train") == 6
    assert few.size("validation") == whole.size("validation")
    everything = {x.numpy().tobytes() for x in whole.batch("train", 0, whole.size("train")).x}
    kept = {x.numpy().tobytes() for x in few.batch("train", 0, 6).x}
    assert len(kept) == 6
    assert kept < everything


@pytest.mark.parametrize("name", NAMES)
def test_limit_of_nothing_is_refused(name):
    with pytest.raises(SettingsError, match="limit must be a whole number of at least 1, got 0"):
        make_task(name, limit=0)


def test_pixels_about_their_centre():
    from qornn.tasks.digits import Digits

    plain, centred = (task.batch("test", 0, 20).x for task in (Digits(), Digits(centre=5, spread=6)))
    torch.testing.assert_close(centred, (16 * plain - 5) / 6)
    assert Digits(centre=5, spread=6).raw_input == (0, 16, 1 / 6, 5)
