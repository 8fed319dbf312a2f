"""Consumers ask a part, never which kind it is: the number of questions only falls."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import kinds  # noqa: E402

LEFT = 1  # whether the only layer is a recurrent one, for `program.W` and its like


def test_few_ask_which_kind_of_part_a_program_has():
    found = list(kinds.questions(ROOT / "src" / "qornn"))
    assert len(found) <= LEFT, found


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(program.W, Dense)",
        "isinstance(x, Codes | Samples)",
        "type(program.requant) is PerRow",
        "TABLE[type(program.activation)]",
        'program.scheme == "per-row"',
        'W.kind in ("cycle", "delay")',
        'program.steps != "last"',
        "match part:\n    case FloatReadout():\n        pass",
    ],
)
def test_a_question_is_counted_but_in_the_kinds_own_file(tmp_path, question):
    for place, count in (("export/c.py", 1), ("integer/matrices/dense.py", 0), ("integer/requant.py", 0)):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{question}\n")
        assert len(list(kinds.questions(tmp_path))) == count
        path.unlink()


def test_a_look_into_a_registry_is_no_question(tmp_path):
    (tmp_path / "a.py").write_text("EMITTERS[layer.kind](layer)\nprint(program.W.kind)\nisinstance(x, int)\n")
    assert not list(kinds.questions(tmp_path))
