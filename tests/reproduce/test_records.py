"""Records: written whole, read back equal, curves thinned."""

import json

import pytest

from qornn.errors import DataError
from qornn.reproduce import records

RECORD = {
    "id": "copy-bjorck-k8",
    "status": "done",
    "value": 1.5e-5,
    "max_h": float("nan"),
    "curve": [[1, 0.1, 2.0, None]],
}


def test_a_record_is_read_back_with_nan_as_null(tmp_path):
    path = records.write(RECORD, tmp_path)
    assert path == tmp_path / "cells" / "copy-bjorck-k8.json"
    assert records.read("copy-bjorck-k8", tmp_path) == RECORD | {"max_h": None}
    assert records.read("another", tmp_path) is None
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_an_empty_curve_is_still_json(tmp_path):
    path = records.write(RECORD | {"curve": []}, tmp_path)
    assert json.loads(path.read_text())["curve"] == []


def test_all_records_come_by_id_from_either_folder(tmp_path):
    for name in ("b", "a"):
        records.write(RECORD | {"id": name}, tmp_path)
    assert [r["id"] for r in records.read_all(tmp_path)] == ["a", "b"]
    assert records.read_all(tmp_path / "cells") == records.read_all(tmp_path)
    assert records.read_all(tmp_path / "nowhere") == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "x"}'])
def test_a_damaged_record_is_named(text, tmp_path):
    path = records.path_of("x", tmp_path)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(DataError, match=r"x\.json.*delete it"):
        records.read_all(tmp_path)


def test_a_curve_keeps_its_ends_and_few_points():
    metrics = [{"step": s, "epoch": s / 100, "loss": 1 / s} for s in range(1, 5001)]
    metrics += [{"step": 5000, "epoch": 50, "loss": 2e-4, "validation": 0.5}, {"step": 5000, "value": 1.0}]
    found = records.curve(metrics)
    assert len(found) <= 2 * records.POINTS
    assert found[0] == [1, 0.01, 1.0, None, None]
    assert found[-1] == [5000, 50, 2e-4, 0.5, None]


def test_training_figures_are_means_between_validations():
    logged = [{"step": s, "epoch": s, "loss": 1.0, "training": 10.0 * s} for s in (1, 2, 3, 4)]
    logged[1]["validation"], logged[3]["validation"] = 1.0, 2.0
    assert [point[4] for point in records.curve(logged)] == [None, 15.0, None, 35.0]


def test_a_machine_has_no_name_and_no_path():
    found = records.machine(2, "cpu")
    assert found.keys() == {"cpu", "threads", "device"}
    assert "/" not in found["device"]


@pytest.mark.parametrize(("value", "paper", "expected"), [(2.0, 1.5, 0.5), (None, 1.5, None), (2.0, "NC", None)])
def test_a_difference_is_of_two_numbers(value, paper, expected):
    assert records.difference(value, paper) == expected
