"""Samples that are remembered: companded differences, and missing ones held."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle, ilog
from program_files import sealed, split
from stacks import make_stack
from strategies import random_input, same

from qornn.errors import ProgramError, SettingsError
from qornn.integer.engine.library import library
from qornn.integer.engine.structs import struct
from qornn.integer.inputs import Samples
from qornn.integer.inputs.memory import COMPANDED_TOP, MISSING, companded
from qornn.integer.simulate import simulate
from qornn.integer.storage import load

KINDS = [{"differences": True}, {"hold": True}, {"differences": True, "hold": True}]
LEAST = -(2**15) + 1


def samples(**changes):
    """Channels that differ in everything."""
    given = {"bits": 8, "alpha": 2.0, "low": -50, "high": 60, "offset": [3, -7], "multiplier": [5, 9], "shift": [2, 3]}
    return Samples(**{**given, **changes})


def start(part, B=1):
    return np.zeros((B, part.n_state), np.int64)


def test_companding_is_the_formula_of_every_difference():
    d = np.arange(-(2**16) + 1, 2**16)
    want = [ilog(v) for v in d.tolist()]
    assert companded(d).tolist() == want
    assert max(want) == COMPANDED_TOP
    assert ilog(2**17 - 1) == 71  # of 17 bits: more than any two samples differ by


@given(
    seed=st.integers(0, 999), kind=st.sampled_from(KINDS), window=st.integers(1, 3), channels=st.integers(1, 3)
)  # fmt: skip
def test_a_step_is_as_by_hand(seed, kind, window, channels):
    program = make_stack(seed, channels=channels, window=window, **kind)
    part, oracle = program.input, Oracle(program)
    raw = part.clip(part.draw(np.random.default_rng(seed), 12))
    want, kept = [oracle.read(row) for row in raw], start(part)
    assert part.sequence(kept, raw[None])[1][0].tolist() == want
    for t, row in enumerate(raw):
        kept, x = part.step(kept, row[None])
        assert x[0].tolist() == want[t]


def test_what_a_step_reads():
    """Samples, then differences; the first is 0, and inside a window they run sample by sample."""
    plain = {"bits": 16, "offset": [0, 0], "multiplier": [1, 1], "shift": [0, 0]}
    part = samples(**plain, window=2, differences=True, hold=True)
    assert (part.n_raw, part.n_i, part.n_state, part.shape) == (4, 8, 2, (4,))
    kept, x = part.step(start(part), np.array([[MISSING, 10, 7, MISSING]]))
    assert x.tolist() == [[0, 10, 7, 10, 0, 0, 0, 0]]  # 7 is the first of its channel
    kept, x = part.step(kept, np.array([[8, 8, MISSING, -50]]))
    assert x.tolist() == [[8, 8, 8, -50, ilog(1), ilog(-2), 0, ilog(-58)]]


def test_the_largest_difference_does_not_overflow():
    part = samples(low=LEAST, high=2**15 - 1, differences=True)
    raw = np.array([[[LEAST, 2**15 - 1], [2**15 - 1, LEAST]]])
    assert part.sequence(start(part), raw)[1][0, 1, 2:].tolist() == [67, -67]


def test_a_sum_reaches_its_bound():
    part = samples(low=LEAST, high=2**15 - 1, offset=[0, 0], differences=True)
    U = np.array([[1, -2, 3, -4]])
    assert part.sum_bound(U).tolist() == [3 * 128 + 7 * COMPANDED_TOP]
    raw = np.array([[[2**15 - 1, LEAST], [LEAST, 2**15 - 1]]])
    assert np.abs(part.sequence(start(part), raw)[1] @ U[0]).max() == 127 * 2 + 128 + 7 * COMPANDED_TOP


def test_floats_that_are_missing_are_held():
    """NaN, and nothing else, is missing."""
    part = samples(low=LEAST, high=2**15 - 1, raw_scale=[1.0, 0.5], hold=True)
    x = np.array([[np.nan, -16384.0], [-32768.0, -1e30], [4.0, np.nan]])
    raw = part.from_floats(x)
    assert raw.tolist() == [[MISSING, LEAST], [LEAST, LEAST], [4, MISSING]]
    assert (part.clip(raw) == raw).all()
    with pytest.raises(SettingsError, match="NaN or infinity"):
        part.from_floats(np.array([[np.inf, 0.0]]))
    with pytest.raises(SettingsError, match="NaN or infinity"):
        replace(part, hold=False).from_floats(x)


def test_a_missing_sample_is_in_range():
    part, x = samples(hold=True), np.array([[[MISSING, 5], [61, MISSING]]])
    raw, clipped = part.accept(x, saturate=True)
    assert (raw.tolist(), clipped) == ([[[MISSING, 5], [60, MISSING]]], 1)
    with pytest.raises(SettingsError, match=r"must lie in -50\.\.60"):
        samples(differences=True).accept(x)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hold": True, "low": MISSING}, "input low must be at least -32767"),
        ({"differences": True, "low": MISSING}, "input low must be at least -32767"),
        ({"differences": True, "bits": 7}, "differences take input_bits of 8 or more, got 7"),
        ({"differences": 1}, "input differences must be true or false, got 1"),
        ({"hold": "yes"}, "input hold must be true or false, got 'yes'"),
    ],
)
def test_what_cannot_be_is_refused(change, why):
    with pytest.raises(ProgramError, match=why):
        samples(**change)


def test_what_a_network_saw_is_read_back():
    """x = step·x_i of both parts; raw samples cannot be made of them."""
    part = samples(differences=True, scale=1.0)
    raw = part.clip(part.draw(np.random.default_rng(0), 9))[None]
    x = part.sequence(start(part), raw)[1]
    assert (part.read(x * part.alpha / 2**7) == x).all()
    with pytest.raises(SettingsError, match="feed this program raw integers"):
        part.from_network(x)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_one_by_one_are_a_run(kind):
    """Also with the engine's initial and final state, of several sequences at once, and after a reset."""
    program = make_stack(3, window=2, channels=3, **kind)
    raw = random_input(program, 0, B=2, T=40).astype(np.int16)
    want = simulate(program, raw)[1]
    session = program.session()
    for _ in range(2):
        for sample in raw[0]:
            y = session.step(sample)
        assert (y == want[0]).all()
        session.reset()
    assert not session.h.any()
    assert len(session.h) == program.n_state == 3 + 4 * 3


@pytest.mark.skipif(library() is None, reason="installed without the native integer engine")
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_goes_on_where_it_was(kind):
    from qornn.integer.engine.model import model_of

    program = make_stack(3, window=2, channels=3, **kind)
    raw = np.ascontiguousarray(random_input(program, 0, B=2, T=40).astype(np.int16))
    want, engine, model = simulate(program, raw)[1], library(), model_of(program, "bytes")
    h = np.zeros((2, program.n_state), np.int16)
    sums, counts = np.zeros((2, program.n_out), np.int32), np.zeros(2, np.uint32)
    y, work = np.zeros((2, program.n_o), np.int32), np.empty(engine.qornn_work_bytes(model.address), np.uint8)
    for part in np.split(raw, [17, 18], 1):  # more than the steps that go through a layer at once, one, and the rest
        part, lengths = np.ascontiguousarray(part), np.full(2, part.shape[1])
        arrays = {"x": part, "lengths": lengths, "h": h, "sums": sums, "counts": counts, "y": y, "work": work}
        where = {name: array.ctypes.data for name, array in arrays.items()}
        batch = struct("qornn_batch")(B=2, T=part.shape[1], **where)
        assert engine.qornn_run(model.address, batch_address(batch), -1) == 0
    assert (y == want).all()


def batch_address(batch):
    import ctypes

    return ctypes.addressof(batch)


def test_a_session_without_the_engine_is_the_same(monkeypatch):
    program = make_stack(5, window=2, differences=True, hold=True)
    raw = random_input(program, 1, B=1, T=30)
    monkeypatch.setattr("qornn.integer.engine.session.runs_native", lambda program: False)
    session = program.session()
    for sample in raw[0]:
        y = session.step(sample)
    assert (y == simulate(program, raw)[1][0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_it(kind, tmp_path):
    program = make_stack(1, **kind)
    program.save(tmp_path / "net.qornn")
    again = load(tmp_path / "net.qornn")
    assert same(again, program)
    assert (again.input.differences, again.input.hold) == (program.input.differences, program.input.hold)


def test_a_file_of_schema_4_remembers_nothing(tmp_path):
    program, path = make_stack(1), tmp_path / "net.qornn"
    program.save(path)
    _, facts, tensors = split(path.read_bytes())
    facts["schema"] = 4
    assert facts["input"].pop("differences") is facts["input"].pop("hold") is False
    path.write_bytes(sealed(facts, tensors))
    assert same(load(path), program)


def test_memory_is_ram_not_flash():
    one = samples()
    assert one.n_state == 0
    for kind in KINDS:
        part = samples(**kind)
        assert (part.stored_bytes, part.n_state) == (one.stored_bytes, 2)
    assert samples(differences=True, hold=True, window=4).describe() == (
        "2 channels, 4 samples of each per step, with companded differences, missing samples held"
    )
