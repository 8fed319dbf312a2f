"""Options of a map: one table, checked by the map's own signature; tables of the first edition open as before."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import qornn
from qornn.errors import SettingsError
from qornn.maps import MAPS, Bjorck
from qornn.recipe import resolve
from qornn.recipe.recipe import from_tables, from_toml
from qornn.train.build import build_model, build_task

OLD = Path(__file__).parent / "runs_of_0_1"
OLD_KEYS = {"rank": 2, "penalty": 0.5, "exact": True, "map_seed": 3, "learn": False, "block": 4, "lines": 64}
OPTIONS = {
    "projunn": {"rank": 2},
    "penalty": {"strength": 0.5},
    "bjorck": {"exact": True},
    "hadamard": {"seed": 3},
    "hadamard-block": {"seed": 3, "block": 4},
    "cycle": {"seed": 3},
    "delay": {"seed": 3, "lines": 64},
    "free": {},
}


class Scaled(Bjorck):
    """Somebody's own map, with an option."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor


def built(recipe):
    return build_model(recipe, build_task(recipe)).recurrence.map


@pytest.mark.parametrize(("map_", "options"), OPTIONS.items())
def test_tables_of_the_first_edition_hold_the_same_options(map_, options):
    old = from_tables({"task": {"name": "copy"}, "model": {"map": map_, **OLD_KEYS}})
    new = from_tables({"task": {"name": "copy"}, "model": {"map": map_, "map_options": options}})
    assert old == new
    assert new.model.map_options == options


def test_defaults_of_the_first_edition_leave_the_recipe_as_it_is():
    defaults = {"rank": 1, "penalty": 0.1, "exact": False, "map_seed": 0, "learn": False, "block": 16, "lines": 16}
    for map_ in OPTIONS:
        tables = {"task": {"name": "copy"}, "model": {"map": map_}}
        assert from_tables({**tables, "model": {"map": map_, **defaults}}) == from_tables(tables)
    assert resolve("copy", map="projunn").model.map_options == {}


def test_both_spellings_can_be_set():
    old = resolve("copy", map="hadamard-block", settings=["model.block=4", "model.map_seed=3"])
    new = resolve("copy", map="hadamard-block", settings=["model.map_options.block=4", "model.map_options.seed=3"])
    assert old == new
    assert from_toml(new.to_toml()) == new
    assert "[model.map_options]\nblock = 4\nseed = 3\n" in new.to_toml()
    assert built(new).block == 4
    assert new.override(["model.block=16"]).model.map_options == {"seed": 3}
    assert new.override(["model.map_options.block=null"]).model.map_options == {"seed": 3}


def test_options_of_one_map_are_not_given_to_another():
    delay = resolve("copy", map="delay", settings=["model.lines=4"])
    assert delay.override(["model.map=cycle"]).model.map_options == {}
    with pytest.raises(SettingsError, match=r"unknown option of the map 'delay' 'rank'"):
        built(delay.override(["model.map_options.rank=2"]))


def test_an_own_map_is_set_from_a_recipe(monkeypatch):
    monkeypatch.setitem(MAPS, "scaled", Scaled)
    recipe = resolve("copy", map="scaled", settings=["model.map_options.factor=2.5"])
    assert built(recipe).factor == 2.5
    assert built(from_toml(recipe.to_toml())).factor == 2.5
    with pytest.raises(SettingsError, match=r"unknown option of the map 'scaled' 'facto'.*factor"):
        built(resolve("copy", map="scaled", settings=["model.map_options.facto=2"]))
    with pytest.raises(SettingsError, match=r"the option factor of the map 'scaled' must be float, got 'much'"):
        built(resolve("copy", map="scaled", settings=["model.map_options.factor=much"]))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.rank=x", r"model.rank must be int, got 'x'"),
        ("model.learn=1", r"model.learn must be bool, got 1"),
        ("model.block=99999999999999999999", "model.block must lie within 64 bits"),
        ("model.learn=true", r"model.learn=true is for map='hadamard'"),
        ("model.map_options=3", r"model.map_options must be dict"),
        ("model.map_options.rank=[1]", r"model.map_options.rank must be one value, got \[1\]"),
    ],
)
def test_what_is_no_option_is_refused(setting, message):
    with pytest.raises(SettingsError, match=message):
        resolve("copy", map="projunn", settings=[setting])


@pytest.mark.parametrize("map_", ["hadamard-block", "projunn"])
def test_a_run_of_the_first_edition_resumes_to_the_same_weights(map_, tmp_path):
    """Stopped by qornn 0.1 after 6 of 12 steps; it made the weights beside the folder from there."""
    shutil.copytree(OLD / map_, tmp_path / "run")
    qornn.resume(tmp_path / "run", quiet=True)
    found, wanted = load_file(tmp_path / "run" / "model.safetensors"), load_file(OLD / f"{map_}.safetensors")
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():  # other processors sum in another order
        assert torch.allclose(found[name], tensor, rtol=0, atol=1e-5), name
