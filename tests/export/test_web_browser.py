"""The page in a headless Chromium: drawn on by mouse, finger and keyboard, and given files."""

import math
import re

import numpy as np
import pytest
from chromium import drive
from drawn_digits import in_node, placed
from pages import PROGRAMS, fitted, law, needs_chromium, needs_node, needs_zig, waves

import qornn
from qornn.export.web_page import facts

pytestmark = [needs_zig, needs_node, needs_chromium, pytest.mark.full]
RING = [[0.5 + 0.22 * math.sin(a / 20 * math.pi), 0.5 - 0.4 * math.cos(a / 20 * math.pi)] for a in range(41)]


def shown(folder, *, width=1000, **asked):
    """What the page shows, after what every page must be."""
    found = drive(folder / "index.html", width=width, **asked)
    assert found["problems"] == []
    assert all(url.startswith(("file:", "data:")) for url in found["requests"])
    assert found["check"] == "Exact: 160 steps of the test vectors, bit for bit."
    assert found["unlabelled"] == 0
    assert found["width"] <= width  # nothing to scroll sideways
    for scheme in ("light", "dark"):
        contrast = found["contrast"][scheme]
        assert contrast["count"] > 10
        assert contrast["faint"] == []  # below 4.5 : 1
    return found


def answer_of(program, grey):
    """Of the pixels that the canvas shows."""
    pixels = np.rint(np.array(grey) * program.input.limits[1] / 255).astype(np.int64)
    _, y = qornn.simulate(program, pixels[list(facts.picture(program).order)][None, :, None])
    return str(int(np.argmax(y[0])))


@pytest.mark.parametrize(("width", "size"), [(360, 1.0), (1000, 0.4)])
def test_a_drawing_is_read_pixel_by_pixel(pages, width, size):
    program, ring = PROGRAMS["digits"](), placed([RING], size=size, at=(0.0, 1.0))
    found = shown(pages("digits"), width=width, touch=width == 360, speed=2, strokes=ring)
    assert max(found["pixels"]) == 255
    assert re.fullmatch(r"after \d+ of 64 steps", found["seen"])
    assert found["seen"] != found["progress"] == "after 64 of 64 steps"  # the answer was shown on the way
    assert found["answer"] == answer_of(program, found["pixels"]) == "0"


def test_digits_of_all_sizes_are_recognised(pages):
    digits = in_node(pages("mnist"), digits=True)["digits"]
    drawings = [placed(strokes, size=size, at=at) for strokes in digits for size, at in ((0.3, (0, 1)), (0.8, (1, 0)))]
    found = shown(pages("mnist"), drawings=drawings)
    right = [answer == str(n // 2) for n, answer in enumerate(found["answers"])]
    assert sum(right) >= 19, found["answers"]


def test_the_keyboard_draws(pages):
    keys = [" ", *["ArrowDown"] * 4, *["ArrowRight"] * 2, " ", "ArrowUp", "Enter"]
    found = shown(pages("digits"), focus=True, keys=keys)
    assert np.count_nonzero(found["pixels"]) >= 8
    assert found["answer"] == answer_of(PROGRAMS["digits"](), found["pixels"])


def test_the_keyboard_alone_is_enough(pages):
    found = shown(pages("digits"), keys=["Tab", "Tab", "Tab", "Tab", "Tab", "Tab", "Tab", "Tab", "Enter"])
    assert found["stops"] == ["input", "run", "clear", "speed", "0", "1", "2", "3"]
    assert found["answer"] == answer_of(PROGRAMS["digits"](), found["pixels"]) == "3"


def test_every_control_is_reached_by_the_keyboard(pages):
    found = shown(pages("three channels"), keys=["Tab"] * 5 + [" "] + ["Tab"] * 4)
    assert found["stops"] == ["input", "run", "clear", "speed", "Sine", "Square", "Noise", "file", "units"]
    assert found["progress"] == "after 120 of 120 steps"


@pytest.mark.parametrize("name", ["mean of a stack", "three channels", "a value", "codes"])
def test_signals_are_those_of_the_law(pages, name):
    program = PROGRAMS[name]()
    found = shown(pages(name), width=360, script="[...document.querySelectorAll('#samples button')][1].click()")
    low, high = program.input.ranges.T
    channels, samples = len(low), -(-240 // program.input.window) * program.input.window
    phase = 6 * np.arange(samples)[:, None] / samples + np.arange(channels) / channels
    square = (low + high) / 2 + np.where(phase % 1 < 0.5, 1, -1) * (high - low) / 4
    if program.input.takes_floats:
        want = law(program, square)
    else:
        want = qornn.simulate(program, np.floor(square + 0.5).astype(np.int64).reshape(1, -1))[1][0, -1]
    np.testing.assert_allclose(found["outputs"], want, rtol=0, atol=0 if program.readout.exact else 6e-4)  # 3 decimals
    assert found["progress"] == f"after {samples // program.input.window} of {samples // program.input.window} steps"


def test_a_lane_is_drawn_in_by_itself(pages):
    strokes = [[[t / 40, (lane + 0.5 + 0.3 * math.sin(t)) / 3] for t in range(1, 40)] for lane in range(3)]
    lone, all_ = (shown(pages("three channels"), width=360, touch=True, strokes=s) for s in (strokes[2:], strokes))
    assert lone["answer"] in ("sine", "square")
    assert lone["outputs"] != all_["outputs"]


def test_dropped_files_give_the_answers_of_the_law(pages, tmp_path):
    program = PROGRAMS["digits"]()
    image = np.random.default_rng(0).integers(0, 17, (8, 8))
    np.save(tmp_path / "image.npy", image)
    found = shown(pages("digits"), drop=str(tmp_path / "image.npy"))
    assert found["answer"] == str(int(np.argmax(qornn.simulate(program, image.reshape(1, 64, 1))[1][0])))

    program = PROGRAMS["mean of a stack"]()
    signal = np.sin(np.arange(200) / 3).astype(np.float32)
    np.savetxt(tmp_path / "signal.csv", signal, fmt="%.9g")
    found = shown(pages("mean of a stack"), drop=str(tmp_path / "signal.csv"))
    assert found["progress"] == "after 50 of 50 steps"
    assert found["outputs"] == law(program, signal[:, None]).tolist()


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_sequences_of_a_file_are_chosen(pages, tmp_path, kind):
    x, file = waves()[:4], tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(file, x)
    else:
        lines = [
            f"{n},{t},{a!r},{b!r},{c!r},{'up' if n else 'down'}"
            for n in range(4)
            for t, (a, b, c) in enumerate(x[n].tolist())
        ]
        file.write_text("\n".join(["id,time,a,b,c,label", *lines]), encoding="utf-8")
    choose = "which.value = 3; which.dispatchEvent(new Event('change'))"
    found = shown(pages("three channels"), width=360, drop=str(file), then=choose)
    assert found["outputs"] == law(PROGRAMS["three channels"](), x[2]).tolist()
    assert found["answer"] == fitted().predict(x[2:3], integer=True)[0]
    assert found["said"] == ("" if kind == "npy" else "The file says: up")


def test_missing_samples_are_held(pages, tmp_path):
    x = waves()[0].copy()
    x[5:9, 1] = np.nan
    np.savetxt(tmp_path / "gaps.csv", x, delimiter=",", fmt="%.9g")
    found = shown(pages("samples may be missing"), file=str(tmp_path / "gaps.csv"))
    assert found["outputs"] == law(PROGRAMS["samples may be missing"](), x).tolist()
    found = shown(pages("three channels"), file=str(tmp_path / "gaps.csv"))
    assert found["message"] == "gaps.csv: sample 6 of sequence 1 is missing or infinite"
    assert found["answer"] == "–"


def test_a_value_is_given_in_its_units(pages, tmp_path):
    np.save(tmp_path / "x.npy", waves()[3])
    found = shown(pages("a value"), width=360, drop=str(tmp_path / "x.npy"))
    want = fitted("regressor").predict(waves()[3:4], integer=True)[0]
    assert float(found["answer"]) == pytest.approx(want, rel=1e-4)  # five digits are shown
