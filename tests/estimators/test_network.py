"""The exported C reads what the sensor gives: the same raw samples and the same answers as the estimator's own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from estimator_waves import labels, small, waves

from qornn import QORNNRegressor, load
from qornn.errors import SettingsError
from qornn.verify import verify

sys.path.append(str(Path(__file__).parents[1] / "verify"))
from c_programs import GCC, STRICT, needs_gcc

MAIN = """
#include <stdio.h>
#include "net.h"
int main(void) {
    static net_state s;
    int32_t steps;
    while (fread(&steps, 4, 1, stdin) == 1) {
        net_init(&s);
        for (int32_t t = 0; t < steps; t++) {
            float x[net_N_I];
            int16_t raw[net_N_I];
            if (fread(x, sizeof x, 1, stdin) != 1) {
                return 1;
            }
            net_quantize(x, raw);
            for (unsigned c = 0; c < net_N_I; c++) {
                printf("%d ", raw[c]);
            }
            (void)net_step(&s, raw);
        }
        OUT y[net_N_O];
        net_predict(&s, y);
        for (unsigned o = 0; o < net_N_O; o++) {
            printf("y%.9g ", (double)y[o]);
        }
    }
    return 0;
}
"""


def on_the_device(folder, out, sequences, n_i):
    """What compiled C makes of float32 samples: all raw numbers, and the outputs of each sequence."""
    main = folder / "main.c"
    main.write_text(MAIN.replace("OUT", out))
    sources = [main, folder / "c" / "net.c", *(folder / "c").glob("qornn*.c")]
    words = [GCC, *STRICT, "-O2", f"-I{folder / 'c'}", *map(str, sources), "-o", str(folder / "a.out")]
    subprocess.run(words, check=True)
    data = b""
    for x in sequences:
        steps = len(x) * x.shape[1] // n_i
        data += np.int32(steps).tobytes() + x.astype(np.float32).reshape(-1)[: steps * n_i].tobytes()
    said = subprocess.run([folder / "a.out"], input=data, capture_output=True, check=True).stdout.decode().split()
    raw = [int(word) for word in said if word[0] != "y"]
    return raw, np.array([float(word[1:]) for word in said if word[0] == "y"]).reshape(len(sequences), -1)


def sensor(kind, **how):
    """Sines about a mean far from 0, with a deviation far from 1, as floats or as whole numbers."""
    X, f = waves(40, channels=2, **how)
    X = [x * [10.0, 400.0] + [101.3, -2500.0] for x in X]
    if kind == "int16":
        X = [np.rint(x * [50, 1]).clip(-32768, 32767).astype(np.int16) for x in X]
    if kind == "int32":
        X = [np.rint(x * 1e6).astype(np.int64) for x in X]
    return (X if how.get("lengths") else np.stack(X)), f


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize(
    ("kind", "how", "window", "regress"),
    [
        ("float", {}, 1, False),
        ("float", {}, 5, True),
        ("float", {"lengths": True}, 2, False),
        ("int16", {}, 1, False),
        ("int32", {}, 2, True),
    ],
)
def test_the_C_reads_what_the_sensor_gives(tmp_path, kind, how, window, regress):
    X, f = sensor(kind, **how)
    settings = {"n_hidden": 8, "max_epochs": 3, "random_state": 0, "window": window}
    net = QORNNRegressor(**{"map": "bjorck", **settings}).fit(X, f) if regress else small(**settings).fit(X, labels(f))
    program, window = net.to_program(), net.window_
    net.export_c(tmp_path / "c", name="net", vector_steps=8)
    sequences = [np.asarray(x)[: len(x) // window * window] for x in X]
    out = "float" if program.readout.outputs(np.zeros((1, program.n_h), np.int16)).dtype == np.float32 else "int32_t"
    raw, y = on_the_device(tmp_path, out, sequences, program.n_i)
    assert raw == np.concatenate([part.reshape(-1) for part in net.to_raw(X)]).tolist()
    assert len(np.unique(raw)) > 100
    if regress:
        assert np.array_equal(y[:, 0].astype(np.float32), net.predict(X, integer=True).astype(np.float32))
    else:
        assert np.array_equal(net.classes_[y.argmax(1)], net.predict(X, integer=True))
    # The program alone, and the one that was written, read the same.
    program.save(tmp_path / "net.qornn")
    for one in (program, load(tmp_path / "net.qornn")):
        made = [one.input.from_floats(x.reshape(-1, one.n_i)).clip(-32768, 32767) for x in sequences]
        assert np.concatenate([part.reshape(-1) for part in made]).tolist() == raw


@pytest.mark.slow
@needs_gcc
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("target", ["host", "cortex-m0", "cortex-m4", "rv32"])
def test_verify_replays_from_floats(tmp_path, target):
    if target != "host":
        pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
        pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    X, f = sensor("float")
    clf = small(n_hidden=8, max_epochs=2).fit(X, labels(f))
    clf.export_c(tmp_path / "c", name="net", vector_steps=9)
    assert "#define net_SAMPLED 9" in (tmp_path / "c" / "net_vectors.h").read_text()
    assert verify(tmp_path / "c", target).exact


@needs_gcc
def test_a_quantizer_that_errs_is_named_by_its_input(tmp_path):
    X, f = sensor("float")
    clf = small(n_hidden=8, max_epochs=2, window=1).fit(X, labels(f))
    folder = clf.export_c(tmp_path / "c", name="net", vector_steps=9)
    text = (folder / "net.c").read_text()
    broken = text.replace("mantissa + ((uint32_t)1 << (down - 1))", "mantissa")
    assert broken != text
    (folder / "net.c").write_text(broken)
    words = [GCC, *map(str, folder.glob("*.c")), "-o", str(tmp_path / "a.out")]
    subprocess.run(words, check=True)
    done = subprocess.run([tmp_path / "a.out"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("differs step=9 input=")


@needs_gcc
def test_every_kind_of_float_is_read_alike(tmp_path):
    """Ties, ends, zeros, numbers that are not normal, and what is past int16; infinity saturates, NaN is the lowest."""
    X, f = sensor("float")
    clf = small(n_hidden=4, max_epochs=1, window=1).fit(X, labels(f))
    program = clf.to_program()
    clf.export_c(tmp_path / "c", name="net", vector_steps=2)
    rng = np.random.default_rng(0)
    scale = program.input.raw_scale
    near = (rng.integers(-33000, 33000, (2000, 2)) + rng.choice([0, 0.5, -0.5], (2000, 2))) * scale
    near = np.nextafter(near.astype(np.float32), rng.choice([-1e9, 1e9, 0], near.shape).astype(np.float32))
    bits = rng.integers(0, 2**32, (2000, 2), dtype=np.uint64).astype(np.uint32).view(np.float32)
    ends = np.array([[np.finfo(np.float32).max] * 2, [-0.0, 0.0], [1e-45, -1e-38]], np.float32)
    x = np.concatenate(
        [near, near * 0 + rng.integers(-9, 9, near.shape) * scale / 2, bits[np.isfinite(bits).all(1)], ends]
    )
    x = np.concatenate([x.astype(np.float32), np.array([[np.inf, -np.inf], [np.nan, -np.nan]], np.float32)])
    raw, _ = on_the_device(tmp_path, "float", [x], 2)
    finite = x[:-2]
    assert raw[: finite.size] == program.input.from_floats(finite).clip(-32768, 32767).reshape(-1).tolist()
    assert raw[-4:] == [32767, -32768, -32768, -32768]


def test_samples_that_no_float32_holds_are_refused(tmp_path):
    X, f = waves(30)
    for factor in (1e-40, 1e250):
        with pytest.raises(SettingsError, match="rescale X"):
            small(n_hidden=4, max_epochs=1).fit(X * factor, labels(f)).to_program()


@pytest.mark.parametrize("size", [1e37, 1e38, 1e100])
def test_targets_past_float32_are_refused_when_lowering(size):
    X, f = waves(30)
    net = QORNNRegressor(map="bjorck", n_hidden=8, max_epochs=2, random_state=0).fit(X, f * size)
    assert np.isfinite(net.predict(X)).all()
    with pytest.raises(SettingsError, match="float32"):
        net.to_program()


def test_large_targets_within_float32_are_answered():
    X, f = waves(30)
    net = QORNNRegressor(map="bjorck", n_hidden=8, max_epochs=2, random_state=0).fit(X, f * 1e30)
    assert np.isfinite(net.predict(X, integer=True)).all()


@pytest.mark.parametrize("middle", [20_000, 300, 1e6])  # of 20,000 a raw unit is 1, as that of whole numbers always is
def test_samples_that_int16_cannot_tell_apart_are_told(middle):
    x, f = waves(40)
    model = small(max_epochs=1).fit(middle + 0.001 * x, labels(f))
    with pytest.warns(UserWarning, match="are coarse"):
        model.to_program()
