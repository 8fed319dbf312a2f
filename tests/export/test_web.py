"""The page for browsers: its files, and its scripts under node, bit for bit."""

import base64
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from c_programs import make
from drawn_digits import in_node, placed, row
from pages import PROGRAMS, needs_node, needs_zig
from typer.testing import CliRunner

import qornn
from qornn import export
from qornn.cli import app
from qornn.errors import QornnError, SettingsError
from qornn.export.c99 import vectors as test_vectors
from qornn.export.web_page import facts, page, wasm
from qornn.tasks import mnist


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
@pytest.mark.parametrize("name", ["mean of a stack", "floats in double", "samples may be missing"])
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
    assert found[5] == "row 2 of the .csv file must be numbers, got five"
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
    assert (digits.side, digits.order, digits.box) == (8, tuple(range(64)), 8)
    assert (pmnist.side, pmnist.order) == (28, tuple(mnist.permutation()))
    assert forda is None


@pytest.mark.parametrize("said", [{"task": []}, {"recipe": {"task": {"name": "digits", "x": 1}}}, {"recipe": 3}])
def test_files_that_say_something_else_draw_nothing(said):
    assert facts.picture(make(n_i=1).with_provenance(**said)) is None


CSV = {
    "long": ("id,time,b,c,label\n1,0,5,6,up\n1,1,7,8,up\n2,0,9,1,down\n", 2, [[[5, 6], [7, 8]], [[9, 1]]]),
    "rows of numbers": ("5;6\n7;8\n", 2, [[[5, 6], [7, 8]]]),
    "a series per row": ("1,2,3,up\n4,5,,down\n", 1, [[[1], [2], [3]], [[4], [5]]]),
    "one column": ("volt\n1\n-2.5e1\n", 1, [[[1], [-25]]]),
    "by pandas": (",0,1,label\n0,3,4,a\n", 1, [[[3], [4]]]),
    "too many cells": ("1,2\n3,4,5\n", 2, "row 2 of the .csv file has 3 cells of 2 columns"),
    "other channels": (
        "1,2\n3,4\n",
        3,
        "a row must hold 3 numbers, one per channel; the file has 2 columns of samples",
    ),
    "a gap": ("1,2\n3,\n", 2, "sample 2 of sequence 1 is missing or infinite"),
    "empty": ("\n", 1, "the .csv file is empty"),
}


@needs_zig
@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("name", CSV)
def test_tables_are_read_as_fit_reads_them(pages, tmp_path, name):
    text, channels, want = CSV[name]
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    found = in_node(pages("digits"), channels=channels, files=[str(tmp_path / "x.csv")])["files"][0]
    assert found == want
    if name == "a gap":  # JSON has no NaN
        held = in_node(pages("digits"), channels=channels, hold=True, files=[str(tmp_path / "x.csv")])["files"][0]
        assert held == [[[1, 2], [3, None]]]


@needs_zig
@needs_node
@pytest.mark.slow
@pytest.mark.parametrize(("name", "zoo"), [("digits", "digits-k4"), ("mnist", "smnist-hadamard")])
def test_as_many_drawings_are_recognised_as_the_docs_say(pages, name, zoo):
    page = (Path(__file__).parents[2] / "docs" / "browser.md").read_text(encoding="utf-8")
    assert row(zoo, pages(name)) in page.splitlines()


@needs_zig
@needs_node
@pytest.mark.slow
def test_a_framed_drawing_does_not_depend_on_its_size_or_place(pages):
    three = in_node(pages("mnist"), digits=True)["digits"][3]
    hands = [placed(three, size=size, at=at) for size, at in ((0.2, (0, 0)), (0.5, (1, 0)), (1.0, (0.5, 0.5)))]
    pixels = np.array(in_node(pages("mnist"), drawings=hands, frame=True)["pixels"]).reshape(3, 28, 28)
    assert abs(pixels - pixels[0]).max() <= 1  # rounding
    rows, columns = (np.flatnonzero(pixels[0].sum(axis) > 127) for axis in (1, 0))
    assert len(rows) == 20  # the box of MNIST
    assert abs(np.average(np.arange(28), weights=pixels[0].sum(0)) - 13.5) < 0.1  # by its ink
    assert len(columns) < 20
