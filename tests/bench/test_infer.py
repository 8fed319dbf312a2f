import json
import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from qornn.bench import infer, infer_stack, peers, turns
from qornn.bench.peers import PEERS, Job
from qornn.cli import bench as cli
from qornn.errors import QornnError, SettingsError
from qornn.integer.program import IntegerProgram

JOB = Job(n_h=12, n_o=3, B=2, T=7, threads=1)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    threads = torch.get_num_threads()
    for name, value in {"T": 9, "BATCH": 4, "BATCH_T": 5, "TURNS": 1}.items():
        monkeypatch.setattr(infer, name, value)
    monkeypatch.setattr(turns, "SLOT", 0.0005)
    monkeypatch.setattr(turns, "SETTLE", 0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def emulator(monkeypatch):
    """A stand-in for verify.measure, which needs a cross compiler, and for the export it is given."""
    asked = []

    def c(program, out, *, name, layout):
        return program.n_out, layout

    def measure(folder, target):
        asked.append((*folder, target))
        return {"instructions_per_step": 1000, "flash_bytes": 2000, "ram_bytes": 300, "skipped": ["QEMU"]}

    monkeypatch.setattr("qornn.export.c", c)

    module = ModuleType("qornn.verify")
    module.measure = measure
    monkeypatch.setitem(sys.modules, "qornn.verify", module)
    return asked


def test_float_peers_compute_the_same_network():
    """The same weights in onnxruntime and in torch; float32 sums in two orders."""
    pytest.importorskip("onnxruntime")
    ours, theirs = (np.asarray(PEERS[name](JOB).call()) for name in ("ort_rnn_float", "torch_rnn_float"))
    assert ours.shape == (2, 3)
    assert np.abs(ours).max() > 1e-3
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_quantized_peers_are_smaller_and_quantized():
    pytest.importorskip("onnxruntime")
    job = Job(n_h=64, n_o=3, B=2, T=7, threads=1)
    weights = 4 * 64 * 64
    for name in ("ort_lstm_int8", "torch_lstm_int8"):
        peer = PEERS[name](job)
        assert weights < peer.model_bytes < 2.5 * weights  # float32 would take four times as much
        assert np.asarray(peer.call()).shape == (2, 3)


@pytest.mark.slow
def test_the_report_has_the_figures_that_are_promised(emulator):
    pytest.importorskip("onnxruntime")
    said = []
    figures = infer.bench_infer(sizes=(12, 16), repeats=1, say=said.append)
    json.dumps(figures)
    assert list(figures["host"]) == ["12", "16"]
    for found in figures["host"].values():
        assert found["agrees_with_simulate"]
        assert min(found["us_per_step"], found["us_per_step_session"], found["model_bytes"]) > 0
        for batch in (found, found["batch_4"]):
            assert 0 < batch["fastest_us_per_step"] <= batch["us_per_step"]
            assert batch["skipped"] == {}
            assert set(batch["peers"]) == {*PEERS, "ours_in_ort"}
            for name in PEERS:  # how many times faster we are; figures are rounded
                ratio = batch["peers"][name]["us_per_step"] / batch["us_per_step"]
                assert batch[f"vs_{name}"] == pytest.approx(ratio, rel=0.01, abs=0.006)
    targets = ("cortex-m4", "cortex-m0", "rv32")
    dense = [(12, "packed", target) for target in targets] * 2  # both readouts
    structured = [(256, "packed", target) for target in targets] * len(infer.STRUCTURED)
    assert emulator == [*dense, *structured, *((16, "packed", target) for target in targets)]
    wanted = {"instructions_per_step": 1000, "flash_bytes": 2000, "ram_bytes": 300, "layout": "packed", "n_h": 12}
    assert all(found == wanted for found in figures["mcu"].values())
    assert list(figures["structured"]) == ["hadamard", "cycle"]
    for found in figures["structured"].values():
        assert found["agrees_with_simulate"]
        assert found["us_per_step"] > 0
        assert found["mcu"]["rv32"]["instructions_per_step"] == 1000
    found = figures["stack"]
    assert found["agrees_with_simulate"]
    assert (found["steps"], found["window"], len(found["layers"])) == (125, 4, 5)
    assert (
        0 < found["fastest_us_per_sample"] <= found["us_per_sample"] < found["peers"]["ort_lstm_int8"]["us_per_sample"]
    )
    assert found["vs_ort_lstm_int8"] > 1
    assert found["mcu"]["cortex-m4"]["instructions_per_sample"] == 250


def test_a_program_of_your_own_is_measured_alone(tmp_path, emulator, monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(infer_stack, "STEPS", 7)
    infer_stack.make_stack().save(tmp_path / "net.qornn")
    cli.run("infer", program=tmp_path / "net.qornn", repeats=1, json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["steps"], found["window"]) == (7, 1)  # the file says nothing of windows
    assert found["mcu"]["rv32"]["instructions_per_sample"] == 1000
    cli.run("infer", program=tmp_path / "net.qornn", repeats=1)
    assert "instructions per sample" in capsys.readouterr().out
    with pytest.raises(SettingsError, match="--program"):
        cli.run("train", program=tmp_path / "net.qornn")


def test_no_ratio_when_our_results_are_wrong(monkeypatch, emulator):
    pytest.importorskip("onnxruntime")
    real = IntegerProgram.run
    monkeypatch.setattr(IntegerProgram, "run", lambda *a, **k: real(*a, **k) + 1)  # a wrong engine
    found = infer.bench_infer(sizes=(12,), repeats=1, say=lambda _: None)["host"]["12"]
    assert found["agrees_with_simulate"] is False
    assert all(found[f"vs_{name}"] is None for name in PEERS)


def test_what_is_missing_is_skipped_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "qornn.verify", None)
    monkeypatch.delattr(torch.ao.quantization, "quantize_dynamic", raising=False)
    figures = infer.bench_infer(sizes=(12,), repeats=1, targets=["rv32"], say=lambda _: None)
    found = figures["host"]["12"]
    assert set(found["skipped"]) == {"ort_lstm_int8", "ort_rnn_float", "ours_in_ort", "torch_lstm_int8"}
    assert "qornn[onnx]" in found["skipped"]["ort_rnn_float"]
    assert torch.__version__ in found["skipped"]["torch_lstm_int8"]
    assert found["vs_ort_lstm_int8"] is None
    assert found["vs_torch_rnn_float"] > 0
    assert "verify" in figures["mcu"]["rv32"]["skipped"]


def test_a_compiler_that_is_missing_is_said(emulator, monkeypatch):
    def refuse(*_, **__):
        raise QornnError("no cross compiler: pip install 'qornn[mcu]'")

    monkeypatch.setattr(sys.modules["qornn.verify"], "measure", refuse)
    found = infer._on_device(infer.make_program(12), "cortex-m4", lambda _: None)
    assert found == {"skipped": "no cross compiler: pip install 'qornn[mcu]'"}


def test_the_program_is_the_one_that_is_announced():
    program = infer.make_program(16)
    assert (program.W.bits, program.state.bits, program.scheme, program.steps) == (4, 12, "per-row", "last")
    assert (program.n_i, program.n_o) == (1, 10)
    assert program.requant.M_U.all()
    assert program.run(np.full((1, 20, 1), 200)).any()


def test_the_command_prints_json_or_tables(monkeypatch, capsys):
    host = {"us_per_step": 1.5, "us_per_step_session": 9.0, "vs_ort_lstm_int8": 5.25, "model_bytes": 777, "skipped": {}}
    host["peers"] = {"ort_lstm_int8": {"us_per_step": 7.875, "model_bytes": 888, "threads": 1}}
    host["batch_128"] = {**host, "skipped": {"torch_lstm_int8": "gone"}}
    mcu = {"cortex-m4": {"instructions_per_step": 55, "flash_bytes": 66, "ram_bytes": 77, "layout": "packed"}}
    mcu["rv32"] = {"skipped": "no emulator"}
    cycle = {"n_h": 256, "us_per_step": 0.125, "true_bytes": 999, "mcu": mcu}
    figures = {"bits": 4, "engine": "numpy", "host": {"170": host}, "mcu": mcu, "mcu_int8_readout": mcu}
    figures["structured"] = {"cycle": cycle}
    figures["stack"] = {"layers": ["a", "b"], "true_bytes": 1234, "window": 4, "us_per_sample": 0.0625, "skipped": {}}
    figures["stack"] |= {"vs_ort_lstm_int8": 21.5, "peers": {"ort_lstm_int8": {"us_per_sample": 1.34}}, "mcu": mcu}
    monkeypatch.setattr(infer, "bench_infer", lambda **_: figures)
    cli.run("infer", json=True)
    assert json.loads(capsys.readouterr().out) == figures
    cli.run("infer", json=False)
    shown = capsys.readouterr().out
    for words in (
        "instructions, not cycles",
        "7.875",
        "5.25",
        "888",
        "skipped: gone",
        "skipped: no emulator",
        "55",
        "0.125",
        "21.5",
        "2 layers, 1234 bytes, 4 samples per step",
    ):
        assert words in shown


def test_a_shape_goes_with_training_only():
    with pytest.raises(SettingsError, match="--shape"):
        cli.run("infer", shape=["mnist"])


def test_an_lstm_left_in_float_is_no_int8_peer(monkeypatch):
    quantization = pytest.importorskip("onnxruntime.quantization")
    copy = lambda source, target, **_: target.write_bytes(source.read_bytes())  # noqa: E731
    monkeypatch.setattr(quantization, "quantize_dynamic", copy)
    with pytest.raises(peers.Skipped, match="in float"):
        PEERS["ort_lstm_int8"](JOB)
