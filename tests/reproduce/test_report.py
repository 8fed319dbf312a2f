"""The report, from SYNTHETIC records: no figure in this file was measured."""

import base64
import json
import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from qornn.cli import app
from qornn.errors import SettingsError
from qornn.integer.size import size
from qornn.reproduce import grid
from qornn.reproduce.report import TABLES, report
from qornn.reproduce.report_plots import _curve, _points
from qornn.reproduce.report_records import read_records
from qornn.reproduce.report_tables import places, score_section
from qornn.tasks import TASKS

SYNTHETIC = {"cpu": "SYNTHETIC", "threads": 2, "device": "cpu"}
BASELINES = {"ptb": 4.3, "copy": 0.0204, "adding": 0.167}
HOSTILE = """$x^{$<script>alert(1)</script>"'|`*_ & ![a](http://evil.example/x.png)\n# no heading"""


def record(id, *, variant=None, **changes):
    """A synthetic record of a cell of the paper, as `qornn reproduce` writes one."""
    entry = next(e for e in grid.entries() if e.id == id)
    values = {"copy": 2.0e-3, "ptb": 1.6, "adding": 0.05}
    value = changes.pop("value", values.get(entry.task, 91.0))
    shown = value or 1.0
    curve = [[50 * i, i / 10, shown * (1 + 1 / (i + 1)), shown if i % 3 == 0 else None] for i in range(12)]
    own = {
        "id": id if variant is None else f"{id}--{variant}",
        "cell": id,
        "task": entry.task,
        "strategy": entry.strategy,
        "bits": entry.bits,
        "n_h": entry.recipe.model.n_h,
        "table": entry.tables,
        "variant": variant,
        "settings": entry.recipe.tables(),
        "metric": TASKS[entry.task].metric_name,
        "value": value,
        "baseline": BASELINES.get(entry.task, 10.0),
        "converged": True,
        "paper": entry.paper,
        "difference": None,
        "status": "done",
        "fraction": 0.075,
        "schedule": "compressed",
        "steps": 3000,
        "seconds": 1800.0,
        "seed": entry.recipe.train.seed,
        "version": "0.0.synthetic",
        "machine": SYNTHETIC,
        "sigma_min": 0.9,
        "sigma_max": 1.1,
        "max_h": 3.0,
        "orthogonality": 0.5,
        "integer": None,
        "facts": {},
        "curve": curve,
    }
    return own | changes


def integer(value):
    return {"activation_bits": 12, "value": value, "paper": None, "alpha_h": 4.0, "saturation": 0.0} | {
        "alpha_W": 0.3,
        "alpha_W_alpha_h": 4.0,
    }


def save(results, *records):
    for each in records:
        path = results / "cells" / f"{each['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each), encoding="utf-8")
    return results


def some_records():
    return [
        record("copy-bjorck-k5", converged=False, value=0.0205),
        record("copy-bjorck-k5", variant="rows", value=1.0e-3, integer=integer(1.1e-3)),
        record("copy-bjorck-k8", value=3.2e-5, integer=integer(3.3e-5)),
        record("copy-lstm-fp", status="diverged", value=None, converged=False, note="loss is NaN at step 40", curve=[]),
        record("pmnist-bjorck-k4", value=91.36, integer=integer(91.4)),
        record("pmnist-ptq-k4", value=12.0),
        record("ptb-bjorck-k5", status="partial", schedule="cut", fraction=0.05),
        record("adding-bjorck-k8"),
    ]


class Page(HTMLParser):
    """The tables of a page as lists of lists, its sections, and whether every tag is closed in its order."""

    VOID = ("meta", "img", "link", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.sections, self.tables, self.attributes = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "section":
            self.sections.append(dict(attributes)["id"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += text


def markdown_tables(text):
    tables, inside = [], False
    for line in text.splitlines():
        if line.startswith("|"):
            if not inside:
                tables.append([])
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            tables[-1].append([re.sub(r"\\(.)", r"\1", cell.strip()) for cell in cells])
        inside = line.startswith("|")
    for table in tables:
        assert set(table.pop(1)) <= {"---", "---:"}
    entities = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
    return [[[re.sub("&(lt|gt|amp);", lambda m: entities[m[0]], c) for c in row] for row in t] for t in tables]


def squeezed(tables):
    return [[[" ".join(cell.split()) for cell in row] for row in table] for table in tables]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    figures = report(save(folder / "results", *some_records()), folder / "report.html")
    return folder, figures, (folder / "report.html").read_text(encoding="utf-8")


def rows_of(html, first):
    """Rows of every table whose name starts so."""
    return [row for table in Page(html).tables for row in table if row[0].startswith(first)]


@pytest.mark.slow
def test_the_page_holds_every_table_of_the_paper(made):
    assert Page(made[2]).sections == ["bytes", *TABLES, "curves"]
    assert set(TABLES) == {*grid.TRAINED, *grid.UNTRAINED}
    assert all(len(table) > 1 and len({len(row) for row in table}) == 1 for table in Page(made[2]).tables)


def test_the_page_needs_nothing_but_itself(made):
    html = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", made[2])
    assert "http" not in html
    assert "url(" not in html
    assert "@import" not in html
    page = Page(made[2])
    assert "script" not in page.tags
    assert {value.partition(",")[0] for key, value in page.attributes if key == "src"} == {"data:image/png;base64"}
    assert all(value.startswith("#") for key, value in page.attributes if key == "href")
    assert "prefers-color-scheme: dark" in html


def test_tables_are_marked_up_for_screen_readers(made):
    page = Page(made[2])
    assert page.tags.count("caption") == page.tags.count("table") == len(page.tables)
    assert page.attributes.count(("scope", "col")) == sum(len(table[0]) for table in page.tables)
    assert page.attributes.count(("scope", "row")) == sum(len(table) - 1 for table in page.tables)
    pictures = [value for key, value in page.attributes if key == "alt"]
    assert len(pictures) == page.tags.count("img") == 5
    assert all(pictures)


def test_figures_stand_to_the_right_and_words_to_the_left(made):
    text = (made[0] / "report.md").read_text(encoding="utf-8")
    rule = text.partition("| network |")[2].splitlines()[1]
    assert rule.split("|")[1:-1] == [" --- ", *[" ---: "] * 8, " --- ", *[" ---: "] * 2, " --- "]


def test_a_cell_shows_measured_paper_difference_integers_and_budget(made):
    copy8 = next(r for r in rows_of(made[2], "STE-Björck") if r[1:3] == ["8", "256"])
    # tab:performance_all: 1.6e-5, with 12-bit activations 1.7e-5
    figures = ["3.2e-5", "1.6e-5", "× 2", "3.3e-5", "1.7e-5"]
    assert copy8[3:] == [*figures, "7.5 %", "compressed", "3 000", "30", "done"]
    pmnist4 = next(r for r in rows_of(made[2], "STE-Björck") if r[3] == "91.36")
    assert pmnist4[4:8] == ["92.36", "−1.00", "91.40", "92.33"]  # tab:performance_all
    ptb = next(r for r in rows_of(made[2], "STE-Björck") if r[3] == "1.600")
    assert ptb[4:] == ["1.490", "+0.110", "–", "1.490", "5 %", "cut", "3 000", "30", "partial"]


def test_what_failed_is_shown_as_it_failed(made):
    assert next(r for r in rows_of(made[2], "LSTM"))[-1] == "diverged: loss is NaN at step 40"
    assert next(r for r in rows_of(made[2], "STE-Björck") if r[1:3] == ["5", "256"])[3] == "2.1e-2 NC"


def test_cells_not_run_stand_there_with_the_paper_s_figure(made):
    row = next(r for r in rows_of(made[2], "STE-projUNN") if r[1:3] == ["8", "256"])
    assert row[3:] == ["–", "2.0e-10", *["–"] * 7, "not run"]  # tab:performance_all
    published = [e for e in grid.entries() if not set(e.tables) & set(grid.BEYOND)]
    absent = len(published) - 3 - len(some_records()) + 1  # three of them are sizes alone, one record is a variant
    shown = [row for row in rows_of(made[2], "") if row[-1] == "not run"]
    assert len(shown) >= absent


def test_a_variant_is_marked_and_not_counted(made):
    variant = next(r for r in rows_of(made[2], "STE-Björck, variant rows"))
    assert variant[3:6] == ["1.0e-3", "2.5e-3", "× 0.4"]  # tab:performance_all, copy, k = 5
    assert (made[1]["measured"], made[1]["variants"]) == (7, 1)
    assert made[1]["cells"] == len([e for e in grid.entries() if set(e.tables) & set(grid.TRAINED)])
    summary = f"7 of {made[1]['cells']} cells of the paper's tables measured (5 done, 1 partial, 1 diverged)"
    assert made[1]["summary"].startswith(summary)
    assert "SYNTHETIC (2 threads, cpu); qornn 0.0.synthetic" in made[1]["summary"]


def test_what_a_variant_changes_is_told(tmp_path):
    changed = record("copy-bjorck-k5", variant="rows")
    changed["settings"]["model"]["scale"] = "row"
    figures = report(save(tmp_path, changed), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert rows_of(html, "STE-Björck, variant")[0][0] == "STE-Björck, variant rows: model.scale=row"
    assert (figures["measured"], figures["variants"]) == (0, 1)
    cell = next(row for row in rows_of(html, "STE-Björck") if row[1:3] == ["5", "256"])
    assert (cell[0], cell[-1]) == ("STE-Björck", "not run")


def test_markdown_and_html_hold_the_same_tables(made):
    text = (made[0] / "report.md").read_text(encoding="utf-8")
    assert squeezed(markdown_tables(text)) == squeezed(Page(made[2]).tables)
    assert len(markdown_tables(text)) > len(TABLES)
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    inline = re.findall(r"base64,([A-Za-z0-9+/=]+)", made[2])
    assert [(made[0] / name).read_bytes() for name in pictures] == [base64.b64decode(data) for data in inline]


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes(made, tmp_path):
    save(tmp_path / "elsewhere", *reversed(some_records()))
    report(tmp_path / "elsewhere", tmp_path / "report.html")
    first = {path.name: path.read_bytes() for path in made[0].iterdir() if path.is_file()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == first


def test_a_hostile_record_adds_no_markup(made, tmp_path):
    own = record("copy-bjorck-k8", status=HOSTILE, schedule=HOSTILE, version=HOSTILE, note=HOSTILE)
    own["machine"] = {"cpu": HOSTILE, "threads": HOSTILE, "device": HOSTILE}
    variant = record(
        "pmnist-bjorck-k4", variant="x", strategy=HOSTILE, curve=[[1, 2], "x", [HOSTILE] * 4, [1, 1, 1, 1e40]]
    )
    variant["variant"] = HOSTILE
    drawn = record("pmnist-bjorck-k8", variant="y")
    drawn["variant"] = HOSTILE
    report(save(tmp_path, own, variant, drawn), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    page, text = Page(html), (tmp_path / "report.md").read_text(encoding="utf-8")
    assert set(page.tags) == set(Page(made[2]).tags)
    assert "<script" not in html + text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert not any(key.startswith("on") for key, _ in page.attributes)
    assert squeezed(markdown_tables(text)) == squeezed(page.tables)
    assert "![a]" not in text
    assert "\n# no heading" not in text


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda text: text[:100], "cannot read"),
        (lambda text: "[]", "not a record"),
        (lambda text: text.replace('"value"', '"valeu"'), "no 'value'"),
        (lambda text: text.replace("91.0", '"91"', 1), "'value' is '91'"),
        (lambda text: text.replace('"steps": 3000', f'"steps": 1{"0" * 400}'), "'steps' is"),
        (lambda text: text.replace('"cell": "pmnist', '"cell": "mnist'), "not a cell of the paper"),
        (lambda text: text.replace('"kind"', '"knid"'), "not a valid recipe"),
        (lambda text: text.replace('"integer": null', '"integer": {"refit": 3.5}'), "'integer.refit' is '3.5'"),
        (lambda text: text.replace('"integer": null', '"integer": {"refit": {"value": "x"}}'), "refit.value' is 'x'"),
        (lambda text: text.replace('"id": "pmnist', '"id": "other'), "its id is"),
    ],
)
def test_a_damaged_record_is_named_and_left_out(tmp_path, damage, told):
    save(tmp_path, record("pmnist-bjorck-k8"), record("copy-bjorck-k8"))
    path = tmp_path / "cells" / "pmnist-bjorck-k8.json"
    whole = path.read_text(encoding="utf-8")
    assert damage(whole) != whole
    path.write_text(damage(whole), encoding="utf-8")
    records, (warning,) = read_records(tmp_path)
    assert [r["id"] for r in records] == ["copy-bjorck-k8"]
    assert "pmnist-bjorck-k8.json" in warning
    assert told in warning


def test_the_five_seeds_give_least_middle_and_largest(tmp_path):
    ids = ["ptb-bjorck-k5", *(f"ptb-bjorck-k5-s{i}" for i in range(1, 5))]
    values = (1.50, 1.46, 1.58, 1.49, 1.52)
    found = places([record(id, value=value) for id, value in zip(ids, values, strict=True)])
    rows = {row.texts[0]: row.texts for row in score_section("hyper", found).grids[0].rows}
    seeds = [rows[f"STE-Björck ({which} of 5 seeds)"][3:5] for which in ("min", "median", "max")]
    assert seeds == [("1.460", "1.484"), ("1.500", "1.490"), ("1.580", "1.494")]  # tab:hyper
    assert rows["STE-Björck (seed 3)"][3:5] == ("1.490", "–")
    section = score_section("performance", found)
    assert not any("seeds" in row.texts[0] for each in section.grids for row in each.rows)


def test_an_empty_folder_gives_a_report_of_cells_not_run(tmp_path):
    (tmp_path / "results").mkdir()
    figures = report(tmp_path / "results", tmp_path / "out" / "r.html")
    assert figures["summary"].startswith("Nothing measured yet")
    html = (tmp_path / "out" / "r.html").read_text(encoding="utf-8")
    assert Page(html).sections == ["bytes", *TABLES, "curves"]
    assert "No run has a learning curve yet." in html
    scored = [row for row in rows_of(html, "STE-") if len(row) == 13 and not row[-1].startswith("not run")]
    assert not scored
    assert (tmp_path / "out" / "r-bytes.png").exists()


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="no folder"):
        report(tmp_path / "reslts", tmp_path / "report.html")
    with pytest.raises(SettingsError, match=r"report\.html"):
        report(tmp_path, tmp_path / "report.md")


def test_points_lie_at_the_paper_s_bytes():
    found = places([record("pmnist-bjorck-k4", value=91.36, integer=integer(91.4))])
    place = next(p for p in found if p.entry.id == "pmnist-bjorck-k4" and p.table == "performance")
    points = {point.source: point for point in _points(place)}
    assert {source: point.value for source, point in points.items()} == {
        "paper": 92.36,
        "measured": 91.36,
        "integer": 91.4,
    }
    assert {point.bytes for point in points.values()} == {size(1, 170, 10, bits=4).paper_bytes}  # 20.8 kB


def test_curves_leave_out_what_no_axis_holds():
    rows = [[1, 0, 2.0, None], [2, 0, -1.0, None], [3, 0, float("nan"), 0.01], [4, 0, 1e300, None], [5, 0, None, 0.0]]
    curve = _curve(record("copy-bjorck-k8", curve=rows), "copy")
    assert curve.loss == ((1.0, 2.0),)
    assert curve.validation == ((3.0, 0.01),)
    assert _curve(record("copy-bjorck-k8", curve=[]), "copy") is None


@pytest.mark.slow
def test_the_command_prints_json_or_the_summary(tmp_path):
    save(tmp_path, record("copy-bjorck-k8"))
    (tmp_path / "cells" / "broken.json").write_text("{", encoding="utf-8")
    words = ["report", "--results", str(tmp_path), "-o", str(tmp_path / "report.html")]
    told = CliRunner().invoke(app, [*words, "--json"])
    assert told.exit_code == 0, told.output
    figures = json.loads(told.stdout)
    assert (figures["measured"], figures["files"][0]) == (1, str(tmp_path / "report.html"))
    assert "broken.json" in told.stderr
    told = CliRunner().invoke(app, words)
    assert told.stdout.startswith("1 of ")
    assert str(tmp_path / "report.md") in told.stdout
    assert "broken.json" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Example: qornn report" in CliRunner().invoke(app, ["report", "--help"]).stdout


@pytest.mark.slow
def test_a_text_of_somebody_else_beside_the_page_is_not_replaced(tmp_path):
    report(tmp_path, tmp_path / "thesis.html")
    report(tmp_path, tmp_path / "thesis.html")  # its own
    (tmp_path / "thesis.md").write_text("# Years of work")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(SettingsError, match=r"thesis\.md exists and is not a report.*choose another name"):
        report(tmp_path, tmp_path / "thesis.html")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
