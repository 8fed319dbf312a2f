"""The Arduino sketch: it feeds the library, says what samples mean, and begins sequences anew."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from c_programs import make, needs_gcc
from calling import called
from single import changed

import qornn
from qornn import export
from qornn.export.c99 import sketch

ARDUINO = """
#include <stdint.h>
#include <stdio.h>
enum { A0 };
static int sample;
static inline int analogRead(int pin) { return sample++ % 7 * 150 + 40 * pin; }
static struct {
    void begin(long) {}
    void println(double value) { printf("%.9g\\n", value); }
} Serial;
"""


@needs_gcc
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.parametrize(
    ("parts", "steps"),
    [
        ({"integer": True}, None),
        ({"n_o": 1}, 4),
        ({"codes": True, "n_i": 5}, None),
        ({"n_i": 4, "window": 2, "normalised": "narrow", "n_o": 1}, 3),  # floats of two channels
    ],
)
def test_the_sketch_streams_through_the_library(tmp_path, parts, steps):
    """Compiled as the Arduino IDE does: sketch as C++, library as C; with a stand-in for Arduino.h."""
    program = make(n_h=5, **parts).with_provenance(lowering={"steps": steps})
    if parts.get("normalised"):  # raw units so fine that every reading is another
        program = changed(program, input=replace(program.input, raw_scale=np.exp2([-9, -8])))
    folder = export.c(program, tmp_path / "net", name="net", vector_steps=1)
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    (tmp_path / "main.cpp").write_text(
        f'#include <Arduino.h>\n#include "{folder}/examples/net/net.ino"\n'
        "int main() { setup(); for (int t = 0; t < 9; t++) loop(); }\n"
    )
    objects = []
    for source in folder.glob("src/net/*.c"):
        objects.append(tmp_path / f"{source.stem}.o")
        called("gcc", "-std=gnu11", "-c", source, "-o", objects[-1])
    options = ["-std=gnu++11", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", f"-I{folder}/src"]
    called("g++", *options, tmp_path / "main.cpp", *objects, "-o", tmp_path / "sketch")
    said = np.array(called(tmp_path / "sketch").split(), float)
    assert said == pytest.approx(answers_of_the_sketch(program, steps), rel=1e-7)  # nine digits are printed


def answers_of_the_sketch(program, steps):
    """What Python answers to the same readings: from the start of each sequence, at its end."""
    part, answers = program.input, []
    channels, numbers = getattr(part, "channels", 1), part.shape[0] if part.shape else 1
    readings = np.array([i % 7 * 150 + 40 * (i % numbers % channels) for i in range(9 * numbers)]).reshape(9, numbers)
    raw = readings % program.n_i if not part.shape else part.clip(readings)
    if getattr(part, "raw_scale", None) is not None:
        raw = part.clip(part.from_floats(readings.astype(np.float32) * np.float32(5 / 1023)))
        assert len(np.unique(part.integers(raw))) > 9
    for t in range(9):
        if t % (steps or 9) == 0:
            session = program.session()
        y = session.step(raw[t] if part.shape else raw[t, 0])
        if not steps or (t + 1) % steps == 0:
            answers.append(float(y[0]) if program.n_o == 1 else int(np.argmax(y)))
    return answers


@pytest.mark.parametrize(
    ("parts", "facts", "said"),
    [
        ({"normalised": "narrow"}, {}, ["channel 0: -375 to 2500 in units of 0.125\n", "channel 2: -1500 to 10000"]),
        (
            {"normalised": "narrow"},
            {"input": {"mean": [0.5, 2.25, 1.0], "std": [1.0, 2.0, 30.125]}},
            ["channel 2: -1500 to 10000 in units of 0.5; in training the mean was 1, the standard deviation 30.12 */"],
        ),
        ({"normalised": "narrow"}, {"input": {"mean": "*/ x", "std": [None]}}, ["in units of 0.125\n"]),
        ({"normalised": True}, {}, ["as an integer from -3000 to 20000;", " * sample + "]),
        ({"codes": True, "n_i": 5}, {}, ["The next code, from 0 to 4:"]),
        ({"n_i": 12, "normalised": "narrow"}, {}, ["channel 7: ", "and 4 more */"]),
        (
            {"n_i": 6, "window": 2, "normalised": "narrow"},
            {},
            ["2 samples in order of time, all 3 channels of the first sample first */"],
        ),
    ],
)
def test_the_sketch_says_what_samples_mean(tmp_path, parts, facts, said):
    program = make(n_h=5, **parts).with_provenance(**facts)
    text = (export.c(program, tmp_path / "net", name="net", vector_steps=1) / "examples/net/net.ino").read_text()
    for words in said:
        assert words in text


@pytest.mark.parametrize(
    ("report", "steps"),
    [
        ({"steps": 4}, 4),
        ({"steps": None, "states": 5 * 64, "checked_sequences": 8}, None),  # of different lengths
        ({"states": 5 * 64 * 8, "checked_sequences": 8}, 64),  # of before: it did not say its steps
        ({"layers": [{"states": 5 * 64 * 8}], "checked_sequences": 8}, 64),
        ({"states": 5 * 64 * 8 + 5, "checked_sequences": 8}, None),
        *(({"steps": steps}, None) for steps in (0, -3, True, 1.5, "9", 2**31)),
        ({"states": "x", "checked_sequences": 0}, None),
        ({"layers": [3]}, None),
        (7, None),
    ],
)
def test_a_sequence_has_the_steps_of_the_calibration(report, steps):
    assert sketch.steps_of(make(n_h=5).with_provenance(lowering=report)) == steps


def test_where_every_step_is_an_answer_no_sequence_ends():
    program = qornn.load("zoo:copy1000-hadamard")
    assert program.provenance["lowering"]["states"]
    assert sketch.steps_of(program) is None
    assert sketch.steps_of(qornn.load("zoo:digits-k4")) == 64
    assert sketch.steps_of(qornn.load("zoo:forda-stack")) == 500 // 4
