"""Tables: every cell of the paper, run or not; docs/results.md is made of the records and of nothing else."""

import json
from pathlib import Path

import pytest

from qornn.cli.reproduce import run as command
from qornn.errors import SettingsError
from qornn.reproduce import grid, records, tables

ROOT = Path(__file__).parent.parent.parent
NAMES = [*grid.TRAINED, *grid.UNTRAINED]


def record(entry, **changes):
    """A record as the grid writes it, of invented figures."""
    settings = entry.recipe.tables()
    base = {"id": entry.id, "cell": entry.id, "variant": None, "settings": settings, "n_h": settings["model"]["n_h"]}
    base |= {
        "status": "done",
        "value": 1.4,
        "converged": True,
        "fraction": 0.1,
        "schedule": "compressed",
        "steps": 4000,
    }
    base |= {"seconds": 600.0, "integer": None, "baseline": 4.0, "metric": "", "paper": entry.paper, "curve": []}
    return base | {"machine": {"cpu": "a cpu", "threads": 2, "device": "cpu"}} | changes


def entry(id):
    return next(e for e in grid.entries() if e.id == id)


def test_the_page_of_results_is_its_records():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"<!-- table: {name} -->" in page
    assert tables.renew(page, records.read_all(ROOT / "results")) == page


def test_renewing_follows_a_record():
    page = "a\n<!-- table: copy190 -->\nold\n<!-- /table -->\nz\n"
    without = tables.renew(page, [])
    assert without.startswith("a\n<!-- table: copy190 -->\n| task |")
    assert without.endswith("<!-- /table -->\nz\n")
    assert "old" not in without
    with_one = tables.renew(page, [record(entry("copy-bjorck-k8-nh190"), value=3.3e-5)])
    assert with_one.count(" not run ") == without.count(" not run ") - 1
    assert "| copy | STE-Björck | 8 | 190 | 3.2e-5 | 3.3e-5 | – | – | 10 %, compressed |  |" in with_one


@pytest.mark.parametrize("name", [name for name in grid.TRAINED if name not in ("alphas", "hyper")])
def test_cells_that_were_not_run_are_shown(name):
    made = tables.table(name, [])
    assert [row["id"] for row in made.data] == [e.id for e in grid.of(name)]
    assert all("not run" in row for row in made.rows)
    assert all(len(row) == len(made.columns) for row in made.rows)


def test_a_variant_stands_below_the_papers_setting():
    e = entry("copy-bjorck-k8")
    settings = e.recipe.override(["train.lr=5e-4"]).tables()
    variant = record(e, id="copy-bjorck-k8--lr5e-4", variant="lr5e-4", settings=settings, value=1e-4)
    own = record(e, status="diverged", value=None, converged=False, steps=70)
    rows = [row for row in tables.table("performance", [variant, own]).rows if row[:3] == ["copy", "STE-Björck", "8"]]
    assert [row[5] for row in rows] == ["diverged at step 70", "1.0e-4"]
    assert rows[1][-1] == "variant lr5e-4: train.lr=0.0005"
    alone = [r for r in tables.table("performance", [variant]).rows if r[:3] == ["copy", "STE-Björck", "8"]]
    assert [row[5] for row in alone] == ["not run", "1.0e-4"]


def test_a_readout_trained_again_is_shown_beside_the_integers():
    plain = {"value": 2.2e-4, "alpha_W": 0.3, "alpha_W_alpha_h": 8.0}
    for integer, text in (
        (plain, "| 2.2e-4 |"),
        (plain | {"refit": {"steps": 100, "value": 6.1e-5}}, "| 2.2e-4, refitted 6.1e-5 |"),
    ):
        assert text in tables.markdown(
            "copy190", [record(entry("copy-bjorck-k8-nh190"), value=1.8e-4, integer=integer)]
        )


def test_not_converged_and_unfinished_are_said():
    e = entry("copy-bjorck-k5")
    found = record(e, value=0.021, converged=False, status="partial", schedule="cut", fraction=0.025)
    (row,) = [r for r in tables.table("performance", [found]).rows if "NC (0.021)" in r]
    assert "2.5 %, cut, unfinished" in row


def test_seeds_make_a_minimum_a_median_and_a_maximum_once_all_are_there():
    values = {"": 1.49, "-s1": 1.52, "-s2": 1.48, "-s3": 1.50, "-s4": 1.51}
    all_five = [record(entry(f"ptb-bjorck-k5{s}"), value=value) for s, value in values.items()]

    def seeds(found):
        return {r["setting"]: r["measured"] for r in tables.table("hyper", found).data if "seeds" in r["setting"]}

    assert seeds(all_five) == {"min of 5 seeds": 1.48, "median of 5 seeds": 1.50, "max of 5 seeds": 1.52}
    assert set(seeds(all_five[:4]).values()) == {None}
    assert any("4 of 5 seeds run" in row for row in tables.table("hyper", all_five[:4]).rows)


def test_scales_are_those_of_the_integer_network():
    integer = {"value": 1.5, "alpha_W": 0.2604, "alpha_W_alpha_h": 4.0}
    (row,) = [
        r for r in tables.table("alphas", [record(entry("copy-bjorck-k8"), integer=integer)]).rows if r[3] != "not run"
    ]
    assert row[:6] == ["copy", "8", "0.2609", "0.2604", "4", "4"]


def test_sizes_agree_with_the_paper_where_it_counts_the_same_network():
    rows = tables.table("sizes", []).data
    ours = [r for r in rows if r["strategy"] in ("bjorck", "projunn") and isinstance(r["paper_kB"], int | float)]
    assert len(ours) > 20
    # Table 2 prints one decimal, or none: 0.5 is its rounding.
    assert all(r["kB"] == pytest.approx(r["paper_kB"], abs=0.5) for r in ours)
    assert {r["paper_kB"] for r in rows if r["id"] == "copy-lstm-fp"} == {"NC"}


def test_minutes_an_epoch_are_those_of_the_records():
    # A tenth of 10 epochs in 600 s: one epoch in 10 minutes.
    (row,) = [r for r in tables.table("compute", [record(entry("copy-bjorck-k8"))]).data if r["runs"]]
    assert (row["minutes"], row["paper_minutes"], row["machine"]) == (10.0, 38, "a cpu, 2 threads")


def test_the_literature_is_cited_row_by_row():
    made = tables.table("literature", [])
    assert len(made.rows) == 31  # Table results_biblio-tab
    assert all(row[-1] == "cited" for row in made.rows)
    scores = {(r["reference"], r["task"], r["model"], r["weights"]): r["score"] for r in made.data}
    assert scores["Kusupati et al. 2018", "sequential MNIST", "FastGRNN", 8] == 98.20
    assert scores["Hubara et al. 2018", "PTB, characters", "RNN", 2] == 1.67


def test_a_figure_is_no_table():
    with pytest.raises(SettingsError, match="figure"):
        tables.table("instability", [])


@pytest.mark.parametrize("name", list(grid.CURVES))
def test_curves_are_drawn_from_what_there_is(name, tmp_path, capsys):
    e = grid.of(name)[0]
    full = record(e, curve=[[1, 0.0, 2.0, None], [100, 0.5, 1.0, 0.9], [200, 1.0, 0.5, 0.4]], baseline=1.0)
    records.write(full, tmp_path)
    command(name, show=True, results=tmp_path, json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["pictures"] == [str(tmp_path / f"{name}.png")]
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_prints_only_the_cells_asked_for(tmp_path, capsys):
    command("performance", cells="copy-bjorck-k8", show=True, results=tmp_path, json=True)
    assert [row["id"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["copy-bjorck-k8"]


def test_the_command_renews_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- table: literature -->\n<!-- /table -->\n")
    command(docs=page, results=tmp_path)
    assert page.read_text().count("| cited |") == 31
    with pytest.raises(SettingsError, match="cannot read"):
        command(docs=tmp_path / "none.md", results=tmp_path)


def test_a_command_without_a_name_says_what_to_name():
    with pytest.raises(SettingsError, match="qornn reproduce performance"):
        command()
