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
    assert Digits(centre=5, spread=6).raw_input == (0, 16, 1 / 6, 5, None)


@pytest.mark.parametrize("centre", [0, 5])
@pytest.mark.parametrize("bits", [2, 3, 4, 9])
def test_pixels_on_few_bits_are_what_the_device_reads(bits, centre):
    """Rounding them again as the integer program does changes nothing."""
    from qornn.integer.inputs import make_samples
    from qornn.tasks.digits import Digits

    whole, task = Digits(centre=centre), Digits(centre=centre, input_bits=bits)
    raw = task.raw_input
    samples = make_samples(*raw[:4], bits=raw.bits, channels=1)
    step = samples.alpha / 2 ** (samples.bits - 1)
    x = task.batch("test", 0, 50).x
    pixels = samples.from_floats(whole.batch("test", 0, 50).x.numpy())
    torch.testing.assert_close(x, torch.from_numpy(samples.integers(pixels) * step).float())
    assert (samples.integers(samples.from_floats(x.numpy())) == samples.integers(pixels)).all()
    assert len(x.unique()) <= 2**bits


@pytest.mark.parametrize("bits", [1, 17, True, "3", 2.5])
def test_pixels_on_no_bits_are_refused(bits):
    with pytest.raises(SettingsError, match=r"input_bits of a pixel must be in 2\.\.16, got"):
        make_task("digits", input_bits=bits)
