"""qornn fit from the shell."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qornn.cli import app
from qornn.errors import QornnError

WANTED = {"task", "metric", "value", "baseline", "converged", "bits", "activation_bits", "paper", "seconds", "run"}
SMALL = ["--n-hidden", 10, "--epochs", 3, "--target", "host", "--no-web"]


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    """A CSV of slow and fast waves."""
    f = np.random.default_rng(0).uniform(0.5, 2.5, 80)
    x = np.sin(2 * np.pi * f[:, None] * np.arange(12) / 12)
    lines = [",".join([*(f"{v:.4f}" for v in row), "slow" if g < 1.5 else "fast"]) for row, g in zip(x, f, strict=True)]
    path = tmp_path_factory.mktemp("csv") / "waves.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def call(*words):
    result = CliRunner().invoke(app, [str(word) for word in ("fit", *words)])
    if isinstance(result.exception, QornnError):
        raise result.exception
    return result


@pytest.mark.slow
def test_json_is_one_object_and_the_rest_is_on_standard_error(waves, tmp_path, qornn_command):
    done = qornn_command("fit", waves, "-o", tmp_path / "out", "--bits", "3,4", *SMALL, "--json")
    figures = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert figures.keys() >= WANTED
    assert figures["verified"] is True
    assert {w["bits"] for w in figures["widths"]} == {3, 4}
    assert "note: column 13, the last, is taken as the label" in done.stderr
    assert "epoch 1 " in done.stderr  # the bar and its lines
    for name in figures["files"]:
        assert (tmp_path / "out" / name).exists()
    header = (tmp_path / "out" / "c" / "src" / "waves.h").read_text()
    assert "fit" in header.split("*/")[0]  # the command that made it


@pytest.mark.slow
def test_a_column_of_groups_and_a_metric_are_named(waves, tmp_path):
    lines = [f"{i % 8},{line}" for i, line in enumerate(waves.read_text().splitlines())]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    words = ["--group", 1, "--metric", "balanced", "--class-weight", "balanced", *SMALL, "--quiet"]
    result = call(tmp_path / "people.csv", "-o", tmp_path / "out", *words)
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    for part in ("balanced accuracy", "split, test", "by group, 2 of 8 groups", "latency, median"):
        assert part in shown


@pytest.mark.slow
def test_people_see_a_table_and_where_to_look(waves, tmp_path):
    result = call(waves, "-o", tmp_path / "out", "--bits", "2,4", *SMALL, "--quiet")
    assert result.exit_code == 0, result.output
    assert "accuracy against bits" in result.stdout
    assert "exact in" in result.stdout
    network, *files, empty, following = result.stdout.splitlines()[-6:]
    assert not empty
    readme = tmp_path / "out" / "c" / "README.md"
    assert following == f"Next: open the report in a browser; {readme} says how to build the C"
    bytes_ = json.loads((tmp_path / "out" / "result.json").read_text())["true_bytes"]
    assert re.fullmatch(rf"accuracy [\d.]+ % on 16 held-out sequences, [24]-bit weights, {bytes_:,} bytes", network)
    assert [line.split() for line in files] == [
        ["network", str(tmp_path / "out" / "model.qornn")],
        ["C", str(tmp_path / "out" / "c")],
        ["report", str(tmp_path / "out" / "report.html")],
    ]
    assert not result.stderr


@pytest.mark.slow
def test_a_web_page_is_written_where_zig_is_installed(waves, tmp_path):
    pytest.importorskip("ziglang")
    words = [word for word in SMALL if word != "--no-web"]
    result = call(waves, "-o", tmp_path / "out", *words)
    assert result.exit_code == 0, result.output
    assert "compiling the network for a web page" in result.stderr
    page = tmp_path / "out" / "web" / "index.html"
    assert f"web page  {page}" in result.stdout.splitlines()
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "web/index.html runs the same C in a browser" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
def test_without_zig_one_line_says_how_to_get_the_web_page(waves, tmp_path, monkeypatch):
    monkeypatch.setattr("qornn.fit.pipeline.zig", lambda: None)
    words = [word for word in SMALL if word != "--no-web"]
    result = call(waves, "-o", tmp_path / "out", *words, "--quiet")
    assert result.exit_code == 0, result.output
    told = [line for line in result.stdout.splitlines() if "web page" in line]
    assert told == ["note: no web page was written: the zig compiler is not installed; pip install 'qornn[mcu]'"]
    assert not (tmp_path / "out" / "web").exists()


@pytest.mark.slow
@pytest.mark.parametrize("map_", ["hadamard", "cycle"])
def test_a_w_that_is_not_stored_ends_with_verified_c_too(map_, waves, tmp_path):
    small = ["--n-hidden", 16, "--epochs", 3, "--target", "host", "--quiet"]
    result = call(waves, "-o", tmp_path / "out", "--map", map_, *small)
    assert result.exit_code == 0, result.output
    assert "exact in" in result.stdout
    assert "additions per step" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_gaps_are_held_and_differences_are_read(waves, tmp_path):
    """result.json says so, and so does the header of the C."""
    lines = waves.read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines]
    for row, line in enumerate(cells):
        line[row % 11] = ""  # never the last sample
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(map(",".join, cells)), encoding="utf-8")
    few = ["--map", "rotations", "--width", 4, "--epochs", 2, "--target", "host", "--quiet", "--json"]
    with pytest.raises(QornnError, match=r"a missing value at row 1, column 1, .*--missing hold"):
        call(path, "-o", tmp_path / "refused", *few)
    result = call(path, "-o", tmp_path / "out", *few, "--missing", "hold", "--differences")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["differences"] is True
    assert figures["verified"] is True
    assert figures["value"] == figures["float"]
    assert "missing samples held" in (tmp_path / "out" / "c" / "src" / "gaps.h").read_text()
    assert "A missing sample is -32768" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--missing", "hold", "--map", "bjorck"], "missing='hold' is only for map='rotations'"),
        (["--differences", "--map", "bjorck"], "differences=True is only for map='rotations'"),
        (["--missing", "drop"], "missing must be 'refuse' or 'hold', got 'drop'"),
    ],
)
def test_what_no_network_has_is_refused_before_the_data_is_read(options, why, tmp_path):
    with pytest.raises(QornnError, match=why):
        call(tmp_path / "none.csv", "-o", tmp_path / "out", *options)


@pytest.mark.slow
def test_a_stack_of_rotations_is_asked_for_by_its_options(waves, tmp_path):
    shape = ["--map", "rotations", "--layers", 1, "--width", 5, "--pairs", 4, "--skip", "--window", 3]
    result = call(waves, "-o", tmp_path / "out", *shape, "--epochs", 2, "--target", "host", "--quiet", "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    found = [figures[name] for name in ("layers", "width", "pairs", "skip", "window", "differences")]
    assert found == [1, 5, 4, True, 3, False]
    assert (figures["verified"], figures["activation_bits"]) == (True, 8)
    assert figures["true_bytes"] > 0


def test_an_interruption_says_what_is_kept(waves, tmp_path, monkeypatch):
    import qornn.fit.pipeline as module

    def stop(asked):
        asked.out.mkdir()
        (asked.out / "k2.qornn").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "fit", stop)
    result = call(waves, "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert "k2.qornn; the same command continues from there" in result.stderr


@pytest.mark.parametrize(
    ("check", "status"),
    [
        ({"target": "host", "exact": True, "steps": 9}, 0),
        ({"target": "host", "exact": False, "steps": 9, "difference": "step 3"}, 1),
        ({"target": "rv32", "exact": None, "error": "no cross compiler"}, 1),
        ({"target": "cortex-m55", "exact": None}, 0),  # compiled, but nothing here can run it
    ],
)
def test_the_exit_status_tells_whether_the_c_is_right(check, status, waves, tmp_path, monkeypatch):
    import qornn.fit.pipeline as module

    network = {"task": "classify", "metric": "accuracy", "value": 90.0, "test": 9, "bits": 4, "true_bytes": 99}
    figures = {"run": str(tmp_path), "verification": [check], "widths": [], "notes": [], "web": None, **network}
    monkeypatch.setattr(module, "fit", lambda asked: figures)
    result = call(waves, "-o", tmp_path / "out")
    assert result.exit_code == status
    assert ("not verified on" in result.stderr) == bool(status)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bits", "fp"], r"--bits takes whole numbers in 2\.\.8, .* got 'fp'"),
        (["--bits", "4,"], "got '4,'"),
        (["--bits", "9"], r"bits must be in 2\.\.8, got 9"),
        (["--map", "bjork"], "Did you mean 'bjorck'"),
        (["--map", "bjorck", "--layers", "3"], "layers=3 is only for map='rotations'"),
        (["--map", "rotations", "--width", "0"], "width must be a whole number of at least 1"),
        (["--metric", "balance"], "unknown metric 'balance'"),
        (["--group", "person"], "--group 'person' is not a column"),
        (["--class-weight", "even"], "balanced or none, got 'even'"),
        (["--target", "cortex"], "unknown target 'cortex'"),
        (["--label", "none"], "--label 'none' is not a column"),
        (["--task", "regress"], "needs numbers"),
        (["--activation-bits", "99"], r"4\.\.16, got 99"),
        (["--test-fraction", "2"], "between 0 and 1, got 2"),
        (["--test", "absent.csv"], "no data at absent.csv"),
    ],
)
def test_bad_input_gets_a_clear_error_and_leaves_nothing(words, message, waves, tmp_path):
    with pytest.raises(QornnError, match=message):
        call(waves, "-o", tmp_path / "out", *words)
    assert not (tmp_path / "out").exists()


def test_help_tells_the_formats_and_an_example():
    text = " ".join(call("--help").stdout.split())
    for part in (
        "Example: qornn fit",
        "lengths_train",
        "id, time and label",
        "CLASS/*.npy",
        "count as wrong",
        "groups_test",
    ):
        assert part in text


def real(name):
    """A file of the user's data folder."""
    path = Path(os.environ.get("QORNN_DATA", "nowhere")) / name
    if not path.is_file():
        pytest.skip(f"{name} not found: set QORNN_DATA")
    return path


@pytest.mark.slow
def test_real_heartbeats_end_with_verified_c(tmp_path, qornn_command):
    source = real("ucr/ECG5000.npz")
    done = qornn_command("fit", source, "-o", tmp_path / "ecg", "--epochs", 12, *SMALL[4:], "--json")
    figures = json.loads(done.stdout)
    assert figures["verified"] is True
    assert (figures["test"], figures["bits"]) == (4500, 4)
    assert figures["value"] > figures["baseline"] + 20


def test_real_recordings_of_another_layout_are_refused_by_name(tmp_path):
    with pytest.raises(QornnError, match=r"holds label, label_names, .*; needed are x_train, y_train"):
        call(real("har/hapt.npz"), "-o", tmp_path / "out")
