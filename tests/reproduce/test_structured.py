"""The table beyond the paper: medians over seeds beside the paper's own dense network."""

from pathlib import Path

import pytest

from qornn.reproduce import grid, records
from qornn.reproduce.tables import markdown, renew, table

ROOT = Path(__file__).parents[2]


def record(id, value, *, seed=0, integer=None, narrow=None):
    return {
        "id": id if not seed else f"{id}-s{seed}",
        "cell": id,
        "variant": None,
        "value": value,
        "seconds": 60.0 * (seed + 1),
        "integer": integer and {"value": integer, "bytes": 4976},
        "narrow": narrow and {"value": narrow},
    }


def test_a_row_is_the_median_of_its_seeds_and_the_least_of_their_minutes():
    own = [record("smnist-hadamard-k4", v, seed=s, integer=v - 0.1, narrow=v - 0.3) for s, v in enumerate((96, 97, 99))]
    row = next(r for r in table("structured", own).data if r["id"] == "smnist-hadamard-k4")
    assert row["measured"] == [96, 97, 99]
    assert row["paper"] == {"bits": 8, "value": 96.27, "kB": 35.0}
    text = next(r for r in table("structured", own).rows if r[0] == "sMNIST" and r[3] == "512" and "97" in r[5])
    assert text[4:] == ["4976", "97.00 (96.00 to 99.00)", "3", "96.90", "96.70", "1.0", "96.27 (8 bits, 35.0 kB)"]


def test_what_was_not_run_says_so():
    assert all(row[5] == "not run" for row in table("structured", []).rows)
    assert {row["task"] for row in table("structured", []).data} == {"copy", "smnist", "pmnist", "adding", "ptb"}


def test_a_longer_task_is_compared_with_nothing_shorter():
    rows = {row["id"]: row["paper"] for row in table("structured", []).data}
    assert rows["copy-hadamard-k4"]["value"] == pytest.approx(1.6e-5)
    assert rows["copy-cycle-k4-T5000"] is None


def test_the_page_is_its_records():
    page = (ROOT / "docs" / "structured.md").read_text(encoding="utf-8")
    assert "<!-- table: structured -->" in page
    assert page == renew(page, records.read_all(ROOT / "results"))
    assert markdown("structured", []).startswith("| task | network |")


def test_no_structured_cell_is_the_papers():
    for entry in grid.of("structured"):
        assert entry.tables == ["structured"]
        assert entry.paper is None
