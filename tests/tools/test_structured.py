"""The pictures of docs/structured.md: their points are the records."""

import json
from pathlib import Path

import structured

ROOT = Path(__file__).parents[2]


def test_the_recorded_points_are_those_of_the_records():
    recorded = json.loads(structured.RECORD.read_text(encoding="utf-8"))["points"]
    made = [{key: value for key, value in point.items() if key != "settings"} for point in structured.points()]
    assert [{k: v for k, v in p.items() if k != "instructions"} for p in recorded] == made
    assert all(point["instructions"] > 0 for point in recorded)


def test_both_pictures_are_drawn(tmp_path):
    recorded = json.loads(structured.RECORD.read_text(encoding="utf-8"))["points"]
    for what in structured.PICTURES:
        structured.draw(tmp_path / f"{what}.png", what, recorded)
        assert (tmp_path / f"{what}.png").read_bytes().startswith(b"\x89PNG")
