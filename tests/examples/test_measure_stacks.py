"""Stacks on real tasks: held-out parts share nobody with the rest, and a kept program is what was measured."""

import json
from dataclasses import replace

import measure_stacks as stacks
import numpy as np
import pytest

import qornn

TINY = {"map": "rotations", "width": 4, "layers": 1, "window": 4, "max_epochs": 2}


def test_people_are_held_out_whole(waves):
    people = np.arange(len(waves.y_train)) % 10
    numbered = replace(waves, x_train=waves.x_train.copy(), groups=people)
    numbered.x_train[:, 0, 0] = people
    seen = set()
    for part in stacks.folds(numbered, 5):
        kept, held = ({*x[:, 0, 0].tolist()} for x in (part.x_train, part.x_test))
        assert len(held) == 2
        assert not kept & held
        seen |= held
    assert seen == {*people.tolist()}


def test_without_people_a_fifth_of_every_class_is_held_out(waves):
    for part in stacks.folds(replace(waves, groups=None), 3):
        for label in np.unique(waves.y_train):
            all_, held = (int((y == label).sum()) for y in (waves.y_train, part.y_test))
            assert held == all_ // 5


def test_settings_of_the_record_are_not_run_again(waves, monkeypatch):
    ran = []
    monkeypatch.setitem(stacks.TRIED, "har", [{"width": 4}, {"width": 5}, {"width": 6}])
    monkeypatch.setattr(stacks, "tried", lambda name, data, settings: ran.append(settings) or {"settings": settings})
    known = [{"settings": {"width": 9}}, {"settings": {"width": 5}, "accuracy": 90.0}]
    *_, last = stacks.validated("har", waves, known)
    assert ran == [{"width": 4}, {"width": 6}]
    assert last == [{"settings": {"width": 4}}, known[1], {"settings": {"width": 6}}]


def test_settings_of_the_copies_are_not_the_estimators(waves):
    settings = {"width": 4, "turned": 2, "degrees": 0.0}
    data, own = stacks.prepared(waves, settings, seed=0)
    assert own == {"width": 4}
    assert (data.x_train == np.tile(waves.x_train, (3, 1, 1))).all()  # turned by 0°


@pytest.mark.slow
def test_a_kept_program_is_the_one_that_was_measured(waves, tmp_path, monkeypatch):
    found = stacks.measured("har", waves, TINY, [0, 1], tmp_path)
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    record = json.loads((tmp_path / "har-stack.json").read_text())
    program = qornn.load(tmp_path / "har-stack.qornn")
    assert record["value"] == found["runs"][0]["accuracy"] == program.provenance["metric"]["value"]
    assert record["true_bytes"] == program.true_bytes == found["runs"][0]["bytes"]
    raw = program.input.from_floats(waves.x_test.reshape(len(waves.y_test), -1, program.n_i)).clip(
        *program.input.limits
    )
    labels = np.array(program.provenance["classes"])[program.run(raw).argmax(1)]
    right = np.mean(labels == waves.y_test.astype(str))
    assert record["value"] == pytest.approx(100 * right, abs=1e-4)
