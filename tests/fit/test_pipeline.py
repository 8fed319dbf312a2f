"""End to end on small waves: train, choose, export, verify, write, and go on after an interruption."""

import json
import os
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from fit_waves import asked, waves

import qornn
from qornn.errors import DivergenceError, SettingsError
from qornn.fit import pipeline, width
from qornn.fit.pipeline import choose, fit
from qornn.fit.problem import pose
from qornn.fit.readers import read
from qornn.fit.width import Width
from qornn.verify import verify

KEYS = {"task", "metric", "value", "baseline", "converged", "bits", "activation_bits", "paper", "seconds", "run"}


@pytest.fixture(scope="module")
def made(source, tmp_path_factory):
    out = tmp_path_factory.mktemp("fit") / "out"
    return out, fit(asked(source, out, bits=(4, 2)))


@pytest.mark.slow
def test_the_figures_are_the_contract_s(made):
    out, figures = made
    assert figures.keys() >= KEYS
    assert (figures["task"], figures["metric"], figures["paper"]) == ("classify", "accuracy", None)
    assert figures["activation_bits"] == 12
    assert figures["run"] == str(out)
    assert figures["converged"]
    assert figures["value"] > figures["baseline"] + 20
    assert json.loads((out / "result.json").read_text()) == figures


ROTATIONS = {"map": "rotations", "n_hidden": None, "width": 6, "pairs": 5, "skip": True, "window": 2, "lr": 1e-2}


@pytest.fixture(scope="module")
def stacked(source, tmp_path_factory):
    out = tmp_path_factory.mktemp("fit") / "out"
    return out, fit(asked(source, out, estimator=ROTATIONS))


@pytest.mark.slow
def test_a_stack_of_rotations_ends_with_verified_c(stacked, source):
    out, figures = stacked
    assert figures["converged"]
    assert figures["verified"] is True
    assert (figures["bits"], figures["activation_bits"]) == (4, 8)
    assert figures["value"] == figures["float"]
    program = qornn.load(out / "model.qornn")
    assert figures["true_bytes"] == program.true_bytes
    shape = {name: figures[name] for name in ("layers", "width", "pairs", "skip", "window", "differences")}
    assert shape == {"layers": 2, "width": 6, "pairs": 5, "skip": True, "window": 2, "differences": False}
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "5 rotations of 8 bits, weights of 4 bits, states of 8 bits" in html
    assert "a mix of 6 outputs and a skip" in html
    assert "multiply-accumulates per step" in html
    raw = program.input.from_floats(np.load(source)["x_test"].reshape(80, 8, 2)).clip(-32768, 32767)
    answers = np.array(program.provenance["classes"])[program.run(raw).argmax(1)]
    assert 100 * np.mean(answers == np.load(source)["y_test"]) == figures["value"]


@pytest.mark.slow
def test_a_rerun_of_a_stack_takes_it_from_the_folder(stacked, source, monkeypatch):
    out, figures = stacked
    monkeypatch.setattr(width, "train", None)
    again = fit(asked(source, out, estimator=ROTATIONS))
    assert {**again, "seconds": 0} == {**figures, "seconds": 0}


@pytest.mark.slow
def test_the_figures_of_a_single_layer_have_the_same_keys(made, stacked):
    assert made[1].keys() == stacked[1].keys()
    shape = {name: made[1][name] for name in ("layers", "width", "pairs", "skip", "differences")}
    assert shape == {"layers": 1, "width": 12, "pairs": None, "skip": False, "differences": False}


def test_the_value_is_that_of_the_written_program_on_the_test_data(made, source):
    out, figures = made
    program, data = qornn.load(out / "model.qornn"), np.load(source)
    scale = program.provenance["input"]["raw_scale"]
    raw = np.rint(data["x_test"].reshape(80, -1, program.n_i) / scale).astype(np.int16)
    answers = np.array(program.provenance["classes"])[program.run(raw).argmax(1)]
    assert 100 * np.mean(answers == data["y_test"]) == figures["value"]
    assert program.provenance["metric"] == {"name": "accuracy", "value": figures["value"]}
    assert figures["value"] <= 100 * 77 / 80  # unseen labels are wrong


@pytest.mark.slow
def test_the_c_is_exact_and_named_after_the_data(made):
    out, figures = made
    assert figures["verified"] is True
    assert [check["target"] for check in figures["verification"]] == ["host"]
    assert verify(out / "c").exact
    assert (out / "c" / "src" / "my_waves.h").is_file()


def test_every_width_is_measured_and_one_is_chosen_on_held_out_training_data(made):
    out, figures = made
    widths = {w["bits"]: w for w in figures["widths"]}
    assert list(widths) == [2, 4]
    assert (figures["train"], figures["choice"], figures["test"]) == (128, 32, 80)
    best = max(w["choice"] for w in widths.values())
    assert figures["bits"] == min(k for k, w in widths.items() if w["choice"] >= best - 1)
    assert figures["value"] == widths[figures["bits"]]["value"]
    assert widths[2]["true_bytes"] < widths[4]["true_bytes"]
    assert qornn.load(out / "k2.qornn").W.bits == 2


def test_the_choice_rests_on_the_held_out_training_data(made, source):
    out, figures = made
    problem = pose(read(source), task="auto", test_fraction=None, seed=0, choose=True)
    program = qornn.load(out / "k2.qornn")
    x = problem.choice.x.windows(figures["window"]).x
    raw = np.rint(x / program.provenance["input"]["raw_scale"]).astype(np.int16)
    answers = np.array(problem.classes)[program.run(raw).argmax(1)]
    assert figures["widths"][0]["choice"] == problem.score(problem.choice.y, answers)
    assert figures["widths"][0]["choice"] != figures["widths"][0]["value"]  # of 32 and of 80 sequences


def found(bits, choice, value=50.0):
    empty = {"key": "", "floating": 0.0, "true_bytes": 1, "seconds": 0.0, "history": [], "table": [], "warnings": []}
    return Width(bits=bits, choice=choice, value=value, **empty)


def test_the_smallest_within_a_point_of_the_best_is_recommended():
    widths = [found(2, 88.9), found(3, 89.0), found(4, 90.0), found(8, 89.5)]
    assert choose(widths, 1.0).bits == 3
    assert choose(widths, 0.1).bits == 4


def test_the_test_data_has_no_say_in_the_choice():
    assert choose([found(2, 80.0, 99.0), found(8, 90.0, 10.0)], 1.0).bits == 8


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.words = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def test_the_report_shows_everything_and_needs_no_network(made):
    out, figures = made
    html = (out / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(html)
    ids = {attrs.get("id") for _, attrs in page.tags}
    assert ids >= {"bits", "confusion", "curves", "memory", "device", "data", "settings"}
    images = [attrs["src"] for tag, attrs in page.tags if tag == "img"]
    assert len(images) == 4
    assert all(src.startswith("data:image/png;base64,") for src in images)
    assert not any(tag in ("script", "link") for tag, _ in page.tags)
    assert "http" not in html
    words = " ".join(page.words)
    assert f"{figures['value']:.2f} %" in words
    assert "exact in" in words
    assert "<odd>" in words  # as text
    assert "<odd>" not in html


def test_a_rerun_takes_finished_widths_and_gives_the_same(made, source, monkeypatch):
    out, figures = made

    def refuse(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr(width, "train", refuse)
    again = fit(asked(source, out, bits=(2, 4)))
    timed = ("seconds",)
    assert {k: v for k, v in again.items() if k not in timed} == {k: v for k, v in figures.items() if k not in timed}


def test_a_damaged_or_other_width_is_trained_again(made, source):
    out, _ = made
    key = json.loads((out / "k4.json").read_text())["key"]
    assert width.find(out, 4, key) is not None
    assert width.find(out, 4, "other") is None
    assert width.find(out, 3, key) is None
    (out / "k9.json").write_text('{"bits": 9')
    assert width.find(out, 9, key) is None
    (out / "k9.json").unlink()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("value", None), ("value", "much"), ("bits", 3), ("seconds", []), ("more", 1)),
        *(("history", []), ("history", [{"epoch": 1}]), ("history", [3]), ("warnings", [1])),
        *(("table", [[1], [1, 2]]), ("table", [["x"]])),
    ],
)
def test_figures_that_no_report_can_show_are_measured_again(name, value, made):
    out, _ = made
    path = out / "k4.json"
    whole = path.read_text()
    figures = json.loads(whole)
    path.write_text(json.dumps(figures | {name: value}))
    found = width.find(out, 4, figures["key"])
    path.write_text(whole)
    assert found is None
    assert width.find(out, 4, figures["key"]) is not None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 1}, "random_state 0, now 1"),
        ({"estimator": {"n_hidden": 13}}, "n_hidden 12, now 13"),
        ({"task": "classify", "name": "other"}, "name my_waves, now other"),
    ],
)
def test_a_folder_of_other_settings_is_refused(changes, words, made, source):
    out, _ = made
    before = (out / "result.json").read_bytes()
    with pytest.raises(SettingsError, match=words):
        fit(asked(source, out, bits=(2, 4), **changes))
    assert (out / "result.json").read_bytes() == before


def test_a_folder_of_other_data_is_refused(made, tmp_path):
    x, f = waves(160, 5)
    np.savez(tmp_path / "my waves.npz", x=x, y=np.where(f < 1.5, "slow", "fast"))
    with pytest.raises(SettingsError, match="other settings or data"):
        fit(asked(tmp_path / "my waves.npz", made[0]))


def test_a_folder_or_file_of_somebody_else_is_refused_before_training(source, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(SettingsError, match="does not hold a fit"):
        fit(asked(source, tmp_path / "mine"))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    with pytest.raises(SettingsError, match="is a file"):
        fit(asked(source, tmp_path / "mine" / "thesis.tex"))
    with pytest.raises(SettingsError, match=r"thesis\.tex is a file"):
        fit(asked(source, tmp_path / "mine" / "thesis.tex" / "fit"))


def test_a_place_that_cannot_be_written_is_refused_before_training(source, tmp_path, monkeypatch, trained):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)  # root may write anywhere
    with pytest.raises(SettingsError, match="cannot be written"):
        fit(asked(source, tmp_path / "a" / "b"))
    assert trained[0] == []


@pytest.fixture
def trained(monkeypatch):
    """The widths that were trained, and what to raise instead of training some."""
    real, calls, raises = width.train, [], {}

    def train(problem, bits, **options):
        calls.append(bits)
        if bits in raises:
            raise raises[bits]
        return real(problem, bits, **options)

    monkeypatch.setattr(width, "train", train)
    return calls, raises


@pytest.mark.slow
def test_an_interruption_keeps_finished_widths_and_the_same_command_goes_on(source, tmp_path, trained):
    calls, raises = trained
    raises[3] = KeyboardInterrupt()
    wanted = asked(source, tmp_path / "out", bits=(2, 3), estimator={"max_epochs": 2})
    with pytest.raises(KeyboardInterrupt):
        fit(wanted)
    assert (tmp_path / "out" / "k2.qornn").is_file()
    assert not (tmp_path / "out" / "result.json").exists()
    raises.clear()
    assert [w["bits"] for w in fit(wanted)["widths"]] == [2, 3]
    assert calls == [2, 3, 3]


@pytest.mark.slow
def test_a_width_that_diverges_is_told_and_left_out(source, tmp_path, trained):
    _, raises = trained
    raises[2] = DivergenceError("training diverged at step 7")
    figures = fit(asked(source, tmp_path / "out", bits=(2, 3), estimator={"max_epochs": 2}))
    assert [w["bits"] for w in figures["widths"]] == [3]
    assert "2 bits failed: training diverged at step 7" in figures["notes"]


def test_when_every_width_fails_nothing_is_left(source, tmp_path, trained):
    _, raises = trained
    raises[2] = raises[3] = DivergenceError("training diverged")
    with pytest.raises(DivergenceError):
        fit(asked(source, tmp_path / "out", bits=(2, 3)))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_one_width_trains_on_all_training_data_and_not_what_a_comparison_left(made, source, tmp_path, trained):
    shutil.copytree(made[0], tmp_path / "out")
    figures = fit(asked(source, tmp_path / "out", bits=(4,)))
    assert (figures["train"], figures["choice"]) == (160, 0)
    assert trained[0] == [4]


@pytest.mark.usefixtures("one_emulator")
def test_an_emulated_device_is_measured_where_its_tools_are(made, source):
    pytest.importorskip("ziglang")
    pytest.importorskip("unicorn")
    checked, skipped = pipeline._verify(asked(source, made[0], targets=None), lambda text: None)
    assert [(check["target"], check["exact"]) for check in checked] == [("host", True), ("cortex-m4", True)]
    assert checked[1]["flash_bytes"] > 0
    assert not skipped
