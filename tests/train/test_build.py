"""A stack of a recipe: what its inputs are, and what is refused."""

import numpy as np
import pytest
import torch

from qornn.errors import SettingsError
from qornn.maps import MAPS
from qornn.maps.bjorck import Bjorck
from qornn.recipe import resolve
from qornn.tasks import make_task
from qornn.train.build import build_model, build_task

TINY = ["model.width=6", "model.pairs=4"]


@pytest.fixture
def images(tmp_path):
    """A data folder with a small MNIST."""
    rng = np.random.default_rng(1)
    (tmp_path / "mnist").mkdir()
    for part in ("train", "t10k"):
        for name, array in (("images-idx3", rng.integers(0, 256, (32, 28, 28))), ("labels-idx1", np.arange(32) % 10)):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (tmp_path / f"mnist/{part}-{name}-ubyte").write_bytes(header + array.astype(np.uint8).tobytes())
    return tmp_path


def test_full_precision_rounds_nothing():
    recipe = resolve("digits", model="stack", bits="fp", settings=TINY)
    assert (recipe.model.bits, recipe.model.activation_bits) == (None, None)
    model = build_model(recipe, build_task(recipe))
    assert model.entry is None
    assert all(layer.bits is None and getattr(layer, "steps", None) is None for layer in model.layers)
    rounded = resolve("digits", model="stack", bits="fp", activation_bits=8)
    assert (rounded.model.bits, rounded.model.activation_bits) == (None, 8)


@pytest.mark.parametrize(("task", "bits", "drop"), [("smnist", 9, 0), ("digits", 6, 0), ("adding", 12, 4)])
def test_raw_samples_stay_whole_numbers(task, bits, drop):
    recipe = resolve(task, model="stack", settings=TINY)
    made = build_task(recipe)
    entry, raw = build_model(recipe, made).entry, made.raw_input
    assert (entry.bits, int(entry.drop), float(entry.step)) == (bits, drop, 2.0 ** (1 - bits))
    samples = np.arange(raw.low, raw.high + 1)
    seen = entry(torch.from_numpy((samples * raw.scale).astype(np.float32))) / entry.step
    # On a device: (raw + half) >> drop, saturated (integer/inputs/samples.py).
    assert seen.tolist() == ((samples + (1 << drop >> 1)) >> drop).clip(max=2 ** (bits - 1) - 1).tolist()


def test_pixels_that_the_task_has_rounded_keep_its_bits(images):
    recipe = resolve(
        "smnist", model="stack", settings=[*TINY, f"task.data_dir={images}", "task.validation=8", "task.input_bits=4"]
    )
    task = build_task(recipe)
    entry = build_model(recipe, task).entry
    assert (entry.bits, int(entry.drop)) == (4, 5)
    x = task.batch("train", 0, 8).x
    assert torch.equal(entry(x), x * 255 / 2**5 * 2.0**-3)  # lossless
    with pytest.raises(SettingsError, match="the task leaves 4 bits of an input"):
        build_model(recipe.override(["model.input_bits=8"]), task)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.width=0", r"model\.width must be at least 1, got 0"),
        ("model.pairs=0", r"model\.pairs must be at least 1, got 0"),
        ("model.layers=-1", r"model\.layers must be at least 1, got -1"),
        ("model.activation_bits=3", r"activation_bits of a stack must be in 4\.\.16, or fp for float states, got 3"),
        ("model.activation_bits=17", r"activation_bits of a stack must be in 4\.\.16"),
        ("model.pool=max", "unknown model.pool 'max'"),
        ("model.pool=all", "model.pool=all is not for the task digits; set mean or last"),
        ("model.lambda_bits=7", r"lambda_bits must be in 8\.\.12, got 7"),
        ("model.integrators=99", r"integrators must be a number of pairs in 0\.\.4, got 99"),
        ("model.dropout=1", r"dropout must be a share in \[0, 1\), got 1"),
        ("model.r_max=2", "ring must be two radii in 0..1"),
        ("model.input_bits=17", r"input_bits must be in 2\.\.16, got 17"),
        ("model.bits=9", r"bits must be in 2\.\.8, got 9"),
        ("model.n_h=64", r"model\.n_h=64 has no effect on a stack; its size is model\.width"),
        ("model.map=projunn", r"model\.map='projunn' has no effect on a stack"),
        ("model.width=10000000000", r"model\.width=10000000000 and model\.pairs=4 needs .* GB"),
        ("train.optimizer=adam", r"train\.decay=0\.01 needs the optimizer adamw, not 'adam'"),
    ],
)
def test_bad_settings_are_refused_in_one_line(setting, message):
    with pytest.raises(SettingsError, match=message) as raised:
        built([*TINY, setting])
    assert "\n" not in str(raised.value)


def built(settings):
    recipe = resolve("digits", model="stack", settings=settings)
    return build_model(recipe, build_task(recipe))


def test_an_option_of_a_map_with_the_name_of_a_parameter_is_refused(monkeypatch):
    class Scaled(Bjorck):
        def __init__(self, scale: float = 1.0):
            super().__init__()

    monkeypatch.setitem(MAPS, "scaled", Scaled)
    settings = ["model.map_options={scale=0.5}"]
    with pytest.raises(SettingsError, match=r"option scale of the map 'scaled' has the name of a parameter"):
        build_model(resolve("digits", map="scaled", settings=settings), make_task("digits"))
