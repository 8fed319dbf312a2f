"""The command line as a user meets it; what needs no torch runs in this process, the rest in its own."""

import json

import pytest
from typer.testing import CliRunner

from qornn import __version__
from qornn.cli import app
from qornn.errors import QornnError

runner = CliRunner()


def call(*words):
    result = runner.invoke(app, [str(w) for w in words])
    if isinstance(result.exception, QornnError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def call_json(*words):
    out = call(*words, "--json")
    assert out.count("\n") == 1  # one object, one line
    return json.loads(out)


def test_version():
    assert call("--version") == f"qornn {__version__}\n"


def test_every_command_has_help_with_an_example():
    for command in ("list", "show", "train", "resume", "eval", "size", "reproduce"):
        assert f"Example: qornn {command}" in " ".join(call(command, "--help").split())


def test_list_names_every_recipe():
    listed = {row["recipe"]: row for row in call_json("list")["recipes"]}
    assert set(listed) == {"adding", "copy", "digits", "pmnist", "ptb", "smnist"}
    assert "performance" in listed["copy"]["tables"]
    assert "copy190" in call("list")


def test_show_gives_settings_and_the_paper_s_figures():
    shown = call_json("show", "pmnist")
    assert shown["model"]["n_h"] == 170
    cell = next(c for c in shown["cells"] if (c["table"], c["strategy"], c["bits"]) == ("performance", "bjorck", 4))
    assert (cell["paper"], cell["paper_at"]["12"]) == (92.36, 92.33)  # tab:performance_all
    assert "92.36" in call("show", "pmnist")


def test_size_reproduces_the_paper_s_table():
    rows = call_json("size")["table"]
    computed = [row for row in rows if row["source"] == "formula"]
    assert len(computed) >= 27
    for row in computed:  # to the printed precision
        loose = row["published_kB"] in (275, 4496, 1274, 62)  # printed without decimals
        assert abs(row["paper_kB"] - row["published_kB"]) <= (0.5 if loose else 0.051), row
    cited = [row for row in rows if row["source"].startswith("cited")]
    assert {row["strategy"] for row in cited} == {"lstm", "fastrnn", "fastgrnn"}
    assert "cited: Ardakani et al. 2018" in call("size")


def test_size_of_any_other_network():
    figures = call_json("size", "pmnist", "--bits", 3, "--set", "model.n_h=360")
    assert round(figures["paper_bytes"] / 1024) == 62  # appendix: "62 kBytes"
    assert figures["true_bytes"] > figures["paper_bytes"]
    assert figures["parameters"] == 360 * (360 + 1 + 10)
    assert call_json("size", "copy", "--bits", "fp")["accumulator_bits"] is None
    assert "Operations per step" in call("size", "ptb", "--bits", 8)


BAD = [
    (["size", "--bits", "4"], "need a task or a run folder"),
    (["train", "copy", "--model", "lstm", "--map", "bjorck"], "the model 'lstm' has no orthogonal matrix"),
    (["train", "copy", "--seed", str(2**70)], r"train\.seed must be below 2\^32"),
    (["train", "digits", "--out", "/dev/null"], "could not write"),
    (["show", "copi"], "Did you mean 'copy'"),
    (["train", "copi"], "Did you mean 'copy'"),
    (["train", "copy", "--bits", "12"], r"bits must be in 2\.\.8, got 12"),
    (["train", "copy", "--map", "bjork"], "Did you mean 'bjorck'"),
    (["train", "copy", "--model", "lsmt"], "unknown model 'lsmt'"),
    (["train", "copy", "--set", "train.lrr=1"], "Did you mean 'lr'"),
    (["train", "copy", "--set", "task.T0=0"], "T0 must be a whole number of at least 1, got 0"),
    (["train", "copy", "--set", "model.n_h=0"], "n_h must be at least 1, got 0"),
    (["train", "copy", "--device", "tpu"], "unknown device 'tpu'"),
    (["size", "copy", "--bits", "1"], r"bits must be in 2\.\.8, got 1"),
    (["resume", "nowhere"], "nowhere is not a run folder"),
    (["eval", "nowhere"], "no run folder and no program file"),
    (["reproduce", "instabilty"], "Did you mean 'instability'"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_bad_input_gets_a_clear_error_and_leaves_nothing(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QornnError, match=message):
        call(*words)
    assert not list(tmp_path.iterdir())


def test_errors_are_one_paragraph_on_standard_error(qornn_command):
    done = qornn_command("train", "copi", "--json", check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: unknown recipe 'copi'")
    assert "Traceback" not in done.stderr


def test_missing_data_says_which_file_from_where_and_the_flag(qornn_command, tmp_path):
    environment = {"QORNN_DATA": "", "XDG_CACHE_HOME": str(tmp_path), "QORNN_NO_DOWNLOAD": "1"}
    done = qornn_command("train", "pmnist", "--out", tmp_path / "run", check=False, env=environment)
    assert done.returncode == 1
    for part in ("train-images-idx3-ubyte", "https://", "--data-dir", "$QORNN_DATA"):
        assert part in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_train_eval_and_post_training_quantization(tiny, qornn_command, tmp_path):
    words = [w for s in [*tiny, "train.lr=1e-3"] for w in ("--set", s)]
    done = qornn_command("train", "copy", "--bits", "fp", "--steps", 5, *words, "--out", tmp_path / "run", "--json")
    trained = json.loads(done.stdout)
    wanted = {"task", "metric", "value", "baseline", "converged", "bits", "activation_bits", "paper", "seconds", "run"}
    assert wanted <= trained.keys()
    assert trained["bits"] is None
    plain = json.loads(qornn_command("eval", tmp_path / "run", "--json").stdout)
    assert wanted | {"float", "weights_quantized", "integer"} <= plain.keys()
    assert plain["value"] == plain["float"] == pytest.approx(trained["value"], rel=1e-6)
    rough = json.loads(qornn_command("eval", tmp_path / "run", "--bits", 2, "--json").stdout)
    assert (rough["bits"], rough["float"]) == (2, plain["float"])
    assert rough["value"] == rough["weights_quantized"] != plain["float"]
    sized = json.loads(qornn_command("size", tmp_path / "run", "--json").stdout)
    assert sized["n_h"] == 12


@pytest.mark.slow
@pytest.mark.parametrize("options", [["model.scale=row"], ["model.bits_U=8"], ["model.quantizer=identity-offset"]])
def test_eval_measures_the_network_that_was_trained(options, tiny, tmp_path):
    from qornn.recipe import resolve
    from qornn.train.run import start

    settings = [*tiny, "train.steps=2", *options]
    run = start(resolve("copy", bits=3, settings=settings), tmp_path / "run", quiet=True)
    figures = call_json("eval", tmp_path / "run")
    assert figures["value"] == pytest.approx(run.result["value"], rel=1e-6)
    assert figures["finished"]


def test_dry_run_prints_an_estimate(tiny, qornn_command):
    words = [w for s in tiny for w in ("--set", s)]
    figures = json.loads(qornn_command("train", "copy", "--dry-run", "--steps", 9, *words, "--json").stdout)
    assert figures["steps"] == 9
    assert figures["seconds_per_step"] > 0


@pytest.mark.slow
def test_reproduce_writes_pictures_and_numbers(monkeypatch, tmp_path):
    import qornn.reproduce.instability as module

    real = module.instability
    small = {"n": 10, "matrices": 4, "n_h": 8, "T": 12, "progress": False}
    monkeypatch.setattr(module, "instability", lambda out, seed: real(out, seed=seed, **small))
    printed = call("reproduce", "instability", "--out", tmp_path / "here")
    for name in printed.split():
        assert (tmp_path / "here" / name.rsplit("/", 1)[-1]).stat().st_size > 0
    assert call_json("reproduce", "instability", "--out", tmp_path / "again")["settings"]["n"] == 10


def test_too_little_memory_is_said_in_a_line(qornn_command):
    done = qornn_command("train", "copy", "--dry-run", "--set", "task.T0=1000000000000", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: not enough memory (Unable to allocate")
    assert len(done.stderr.splitlines()) == 1
