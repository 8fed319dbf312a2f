"""The page for browsers: its scripts under node, bit for bit, and the whole of it in a headless Chromium."""

import base64
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import make
from typer.testing import CliRunner

import qornn
from qornn import export
from qornn._io.zig import zig
from qornn.cli import app
from qornn.errors import QornnError, SettingsError
from qornn.export.c99 import vectors as test_vectors
from qornn.export.web_page import facts, page, wasm
from qornn.tasks import mnist

HERE = Path(__file__).parent
NODE = shutil.which("node")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_zig = pytest.mark.skipif(zig() is None, reason="ziglang is not installed")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
PROGRAMS = {
    "digits": lambda: qornn.load("zoo:digits-k4"),
    "mean of a stack": lambda: qornn.load("zoo:forda-stack"),
    "codes": lambda: qornn.load("zoo:copy1000-hadamard"),
    "wide integers": lambda: make("multiplier", "modrelu", k=8, n_h=40, k_a=16, integer=True),
    "floats in double": lambda: make(k=3, n_h=11, n_i=6, normalised=True, window=2),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Each is compiled once."""
    made = {}

    def page_of(name):
        if name not in made:
            made[name] = export.web(PROGRAMS[name](), tmp_path_factory.mktemp("page") / "out", name="net")
        return made[name]

    return page_of


def in_node(folder, **asked):
    command = [NODE, str(HERE / "run_page.js"), str(folder)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_zig
@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_states_and_outputs_are_those_of_the_law(pages, name):
    program, steps = PROGRAMS[name](), 24
    want = test_vectors.vectors(program, steps)
    found = in_node(pages(name), steps=want.inputs[:steps].tolist())
    assert found["replay"] == {"exact": True, "text": "exact steps=160"}
    assert np.array_equal(found["states"], want.states[:steps])
    assert np.array_equal(np.array(found["outputs"], want.outputs.dtype), want.outputs[:steps])


@needs_zig
@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mean of a stack", "floats in double"])
def test_floats_become_the_raw_integers_of_the_law(pages, name):
    want = test_vectors.vectors(PROGRAMS[name](), 24)
    n = len(want.samples)
    assert n > 1
    found = in_node(pages(name), steps=want.samples.tolist(), floats=True)
    assert np.array_equal(found["raw"], want.inputs[24 : 24 + n])
    assert np.array_equal(found["states"], want.states[24 : 24 + n])


@needs_zig
@needs_node
@pytest.mark.slow
def test_the_check_tells_the_first_difference(pages, tmp_path):
    broken = shutil.copytree(pages("digits"), tmp_path / "broken")
    text = (broken / "model.js").read_text()
    model = json.loads(text[text.index("{") : text.rindex(";")])
    code = base64.b64decode(model["wasm"])
    inputs = test_vectors.vectors(PROGRAMS["digits"](), 64).inputs.astype("<i2")
    at = code.index(inputs[:64].tobytes())
    changed = code[: at + 14] + bytes([code[at + 14] ^ 7]) + code[at + 15 :]  # the input of step 7
    model["wasm"] = base64.b64encode(changed).decode()
    (broken / "model.js").write_text(f"var QORNN_MODEL = {json.dumps(model)};\n")
    replay = in_node(broken)["replay"]
    assert not replay["exact"]
    assert replay["text"].startswith("differs step=7")


@needs_zig
@needs_node
@pytest.mark.slow
def test_files_are_read_as_numpy_reads_them(pages, tmp_path):
    x = np.arange(24).reshape(2, 4, 3) / 4 - 2
    kinds = {"f8": x, "f4": x.astype("f4"), "i2": (4 * x).astype("i2"), "big": x.astype(">f8")}
    for name, array in kinds.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.savetxt(tmp_path / "one.csv", x[0], delimiter=",", header="a,b,c", comments="")
    (tmp_path / "bad.csv").write_text("1,2,3\n4,five,6\n")
    (tmp_path / "bad.npy").write_bytes(b"something else")
    names = [*(f"{name}.npy" for name in kinds), "one.csv", "bad.csv", "bad.npy"]
    found = in_node(pages("digits"), channels=3, files=[str(tmp_path / name) for name in names])["files"]
    assert [np.array_equal(got, array) for got, array in zip(found, kinds.values(), strict=False)] == [True] * 4
    assert np.array_equal(found[4], x[:1])
    assert found[5] == "row 2 of the .csv file must be 3 numbers, got 4,five,6"
    assert found[6] == "this is no .npy file; numpy.save writes one"


@needs_zig
@pytest.mark.slow
def test_the_page_asks_for_nothing_else(pages):
    folder = pages("digits")
    assert sorted(path.name for path in folder.iterdir()) == sorted([page.INDEX, page.MODEL, *page.PARTS])
    for file in (page.INDEX, *page.PARTS):
        text = (folder / file).read_text(encoding="utf-8")
        assert not re.search(r"https?:|fetch\(|XMLHttp|type=.module|\bimport\b|url\(|@\w+@", text), file


@needs_zig
@pytest.mark.slow
def test_only_pages_of_ours_are_written_over(pages, tmp_path):
    ours = shutil.copytree(pages("digits"), tmp_path / "ours")
    (ours / "notes.txt").write_text("mine")
    export.web(make(), ours, name="other")
    assert "<h1>other</h1>" in (ours / "index.html").read_text()
    assert (ours / "notes.txt").read_text() == "mine"
    (ours / "index.html").write_text("<!doctype html>\n<p>My own page, made by qornn 1.0")
    with pytest.raises(SettingsError, match="no web export"):
        export.web(make(), ours, name="net")


def test_without_the_compiler_one_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(wasm, "zig", lambda: None)
    with pytest.raises(QornnError, match=r"^a web page needs the zig compiler; `pip install 'qornn\[mcu\]'`.*$"):
        export.web(make(), tmp_path / "out", name="net")
    assert not list(tmp_path.iterdir())


@needs_zig
@pytest.mark.slow
def test_the_command_names_the_page_after_the_file(tmp_path):
    words = ["export", "zoo:digits-k4", "--to", "web", "-o", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["name"] == "digits_k4"


def test_the_task_says_how_inputs_are_drawn():
    names = ("digits-k4", "pmnist-k4", "forda-stack")
    digits, pmnist, forda = (facts.picture(qornn.load(f"zoo:{name}")) for name in names)
    assert (digits.side, digits.order) == (8, tuple(range(64)))
    assert (pmnist.side, pmnist.order) == (28, tuple(mnist.permutation()))
    assert forda is None


@pytest.mark.parametrize("said", [{"task": []}, {"recipe": {"task": {"name": "digits", "x": 1}}}, {"recipe": 3}])
def test_files_that_say_something_else_draw_nothing(said):
    assert facts.picture(make(n_i=1).with_provenance(**said)) is None


def in_chromium(folder, profile, *, width=1000, **asked):
    command = [NODE, str(HERE / "drive_chromium.js"), CHROMIUM, str(folder / "index.html"), str(width)]
    asked |= {"profile": str(profile)}
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["problems"] == []
    assert all(url.startswith(("file:", "data:")) for url in found["requests"])
    assert found["check"] == "Exact: 160 steps of the test vectors, bit for bit."
    assert found["unlabelled"] == 0
    assert found["width"] <= width
    return found


def answer_of(program, grey):
    """Of the pixels that the canvas shows."""
    pixels = np.rint(np.array(grey) * program.input.limits[1] / 255).astype(np.int64)
    _, y = qornn.simulate(program, pixels[list(facts.picture(program).order)][None, :, None])
    return str(int(np.argmax(y[0])))


RING = [[0.5 + 0.22 * math.sin(a / 20 * math.pi), 0.5 - 0.4 * math.cos(a / 20 * math.pi)] for a in range(41)]


@needs_zig
@needs_node
@needs_chromium
@pytest.mark.full
@pytest.mark.parametrize("width", [360, 1000])
def test_a_drawing_is_read_pixel_by_pixel(pages, tmp_path, width):
    program = PROGRAMS["digits"]()
    found = in_chromium(pages("digits"), tmp_path, width=width, speed=2, strokes=[RING])
    assert max(found["pixels"]) == 255
    assert re.fullmatch(r"after \d+ of 64 steps", found["seen"])
    assert found["seen"] != found["progress"] == "after 64 of 64 steps"  # the answer was shown on the way
    assert found["answer"] == answer_of(program, found["pixels"]) == "0"


@needs_zig
@needs_node
@needs_chromium
@pytest.mark.full
def test_the_keyboard_draws_too(pages, tmp_path):
    keys = ["ArrowUp", " ", "ArrowDown", " ", "ArrowDown", " ", "Enter"]
    found = in_chromium(pages("digits"), tmp_path, speed=4, keys=keys)
    assert np.count_nonzero(found["pixels"]) >= 3
    assert found["answer"] == answer_of(PROGRAMS["digits"](), found["pixels"])


@needs_zig
@needs_node
@needs_chromium
@pytest.mark.full
def test_a_signal_is_drawn_on_a_strip(pages, tmp_path):
    wave = [[t / 40, 0.5 + 0.1 * math.sin(t)] for t in range(1, 40)]
    found = in_chromium(pages("mean of a stack"), tmp_path, width=360, speed=4, strokes=[wave])
    assert found["progress"] == "after 60 of 60 steps"
    assert found["answer"] in ("-1", "1")


@needs_zig
@needs_node
@needs_chromium
@pytest.mark.full
def test_files_give_the_answers_of_the_law(pages, tmp_path):
    program = PROGRAMS["digits"]()
    image = np.random.default_rng(0).integers(0, 17, (8, 8))
    np.save(tmp_path / "image.npy", image)
    found = in_chromium(pages("digits"), tmp_path / "a", speed=4, file=str(tmp_path / "image.npy"))
    assert found["answer"] == str(int(np.argmax(qornn.simulate(program, image.reshape(1, 64, 1))[1][0])))

    program = PROGRAMS["mean of a stack"]()
    signal = np.sin(np.arange(200) / 3).astype(np.float32)
    np.savetxt(tmp_path / "signal.csv", signal, fmt="%.9g")
    found = in_chromium(pages("mean of a stack"), tmp_path / "b", speed=4, file=str(tmp_path / "signal.csv"))
    raw = program.input.clip(program.input.from_floats(signal.reshape(1, 50, 4)))
    best = int(np.argmax(qornn.simulate(program, raw)[1].reshape(-1, 2)[-1]))
    assert (found["progress"], found["answer"]) == ("after 50 of 50 steps", program.provenance["classes"][best])
