"""Whole stacks: `simulate` against an oracle in Python's integers, their sizes, their files, and what is refused."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle
from program_files import put, put_tensor, sealed, split
from stacks import make_stack, stacks
from strategies import same
from test_mean import random_stack_input

from qornn.errors import ProgramError
from qornn.export.c99.vectors import as_read, probe_states, vectors
from qornn.integer.engine.run import in_use, states
from qornn.integer.program_size import of_program
from qornn.integer.simulate import simulate, step
from qornn.integer.storage import load, save


@given(program=stacks(), seed=st.integers(0, 2**16))
def test_the_law_is_the_formulas(program, seed):
    """States, outputs, and that no sum of any layer passes the bound it has."""
    x = random_stack_input(program, seed, B=2, T=14)
    lengths = np.array([14, 5])
    got, y = simulate(program, x, lengths)
    assert (got.dtype, got.shape) == (np.int16, (2, 14, program.n_shown))
    for row, length in enumerate(lengths):
        oracle = Oracle(program)
        for t in range(length):
            want = oracle.step(x[row, t])
            assert got[row, t].tolist() == oracle.states[program.shown]
            if want is not None and program.readout.every:
                assert y[row, t].tolist() == want
        assert not got[row, length:].any()
        if want is not None and not program.readout.every:
            assert y[row].tolist() == want
        for i, (layer, source) in enumerate(program.walk()):
            assert oracle.largest[i] <= max(int(bound.max()) for bound in layer.bounds(source))
        if program.readout.exact:
            bounds = program.readout.bounds(program.layers[-1].output.top)
            assert oracle.largest["readout"] <= max(int(bound.max()) for bound in bounds)


@given(program=stacks(), seed=st.integers(0, 2**16))
def test_numpy_runs_it_where_the_engine_does_not(program, seed):
    x = random_stack_input(program, seed)
    want = simulate(program, x)
    assert (program.run(x) == want[1]).all()
    assert (states(program, x) == want[0]).all()
    if not program.native:
        assert in_use(program) == "numpy"


def test_states_are_those_of_the_last_layer_that_has_any():
    program = make_stack(3, layers=2, pairs=5, width=4)
    assert [layer.n_state for layer in program.layers] == [0, 10, 0, 10, 0]
    assert (program.shown, program.n_shown, program.n_out, program.n_state) == (3, 10, 4, 20)
    alone = make_stack(3, layers=0)
    assert (alone.shown, alone.n_shown, alone.n_state, alone.activation_bits) == (0, 0, 0, 0)
    x = random_stack_input(alone, 0)
    got, y = simulate(alone, x)
    assert got.shape == (3, 9, 0)
    session = alone.session()
    for x_t in x[0]:
        answer = session.step(x_t)
    assert (answer == y[0]).all()


def test_a_skip_is_what_the_layer_before_was_given():
    """Not what the stem or the mix itself reads: another column of S changes what another input does."""
    program = make_stack(7, stem=False, layers=1, channels=3, skip=True)
    (_, first), (mix, second) = program.walk()
    assert second.skip is first is program.input
    assert first.skip is None
    assert mix.S.integers.shape[1] == 3
    still = replace(mix, S=replace(mix.S, integers=np.zeros_like(mix.S.integers)))
    x = random_stack_input(program, 0)
    changed = replace(program, layers=(program.layers[0], still))
    assert (simulate(program, x)[1] != simulate(changed, x)[1]).any()
    assert (simulate(program, x)[0] == simulate(changed, x)[0]).all()


def test_widths_that_do_not_fit_are_named_with_their_layer():
    program = make_stack(0, layers=1, skip=True, pairs=3, width=4, channels=2)
    stem, turned, mixed = program.layers
    narrow = replace(turned, U=replace(turned.U, integers=np.ones((6, 2), int)))
    with pytest.raises(ProgramError, match="layer 1: S reads 4 numbers, and is given 2"):
        replace(program, layers=(narrow, mixed))
    with pytest.raises(ProgramError, match="layer 1: C reads 6 numbers, and is given 4"):
        replace(program, layers=(stem, mixed))
    with pytest.raises(ProgramError, match="layer 0: U reads 4 numbers, and is given 2"):
        replace(program, layers=(turned, mixed))
    with pytest.raises(ProgramError, match="V must have a column for each of the 6 units"):
        replace(program, layers=(stem, turned))


def test_what_a_stack_weighs():
    """The sum of packed matrices, λ, shifts, biases, normalisation by channel, V and b_o."""
    program = make_stack(
        4, layers=2, pairs=16, width=16, channels=1, window=4, input_bits=8, narrow=True, bits=4, n_o=2
    )
    assert not program.input.plain
    stem, rotations, mix = 16 * 4 // 2 + 16 + 2 * 16, 32 * 16 // 2 + 32 + 32, 16 * 32 // 2 + 16 + 2 * 16
    wide = sum(2 * 16 for layer in program.layers if layer.n_state == 0 and layer.wide_bias)
    assert program.true_bytes == 9 + stem + 2 * (rotations + mix) + wide + 16 * 2 // 2 + 4 * 2
    assert program.parameters == 16 * 4 + 2 * (32 + 32 * 16 + 16 * 32) + 16 * 2
    assert (program.bits, program.activation_bits) == (4, 8)
    assert make_stack(4, bits=3, bits_V=6, state_bits=12).bits == 6
    assert make_stack(4, state_bits=5).activation_bits == 5
    bounds = [bound for layer, source in program.walk() for bound in layer.bounds(source)]
    largest = max(int(bound.max()) for bound in [*bounds, *program.readout.bounds(127)])
    assert program.accumulator_bound == largest < 2**31
    assert of_program(program) == (None, {})
    assert of_program(make_stack(4, stem=False, layers=0 + 1, steps="last")) == (None, {})


def test_qornn_size_knows_no_paper_for_a_stack(tmp_path):
    from qornn.cli.size import _of_program

    program = make_stack(4, skip=True)
    program.save(tmp_path / "net.qornn")
    found = _of_program(tmp_path / "net.qornn")
    assert found["paper_bytes"] is None
    assert (found["true_bytes"], found["parameters"]) == (program.true_bytes, program.parameters)
    assert found["accumulator_bits"] == program.accumulator_bits
    assert "3 rotations of 8 bits" in found["layers"][1]


@given(program=stacks())
def test_a_file_gives_back_the_same_program(tmp_path_factory, program):
    path = tmp_path_factory.mktemp("stack") / "net.qornn"
    save(program, path)
    opened = load(path)
    assert same(opened, program)
    save(opened, path.with_name("again.qornn"))
    assert path.read_bytes() == path.with_name("again.qornn").read_bytes()
    assert same(pickle.loads(pickle.dumps(program)), program)
    assert same(copy.deepcopy(program), program)


def outside(tensor):
    found = tensor.copy()
    found[:, 0] = 127, 30
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put_tensor("layers.1.turns", outside), r"layer 1: lambda must lie in the unit disc.*\(127 \+ 30i\)/128"),
        (put_tensor("layers.1.turns", lambda t: t.astype(np.int32)), "layer 1: turns must be int16, got int32"),
        (put_tensor("layers.1.turns", lambda t: t[:1]), r"layer 1: turns must have shape \(2, any\)"),
        (
            put_tensor("layers.1.turns", lambda t: t[:, :2].copy()),
            "layer 1: U must have 4 rows, two for each pair, got 6",
        ),
        (put_tensor("layers.1.shift", lambda t: t[:3]), r"layer 1: the shifts of U must have shape \(6\)"),
        (put_tensor("layers.1.shift", lambda t: t * 0 + 31), "layer 1: a sum of this layer can reach"),
        (put_tensor("layers.2.bias", lambda t: t * 0 + np.int32(2**31 - 1)), "layer 2: a sum of this layer can reach"),
        (put_tensor("layers.2.apart", lambda t: t[:2]), "layer 2: the shifts between C and S must have shape"),
        (put("layers", 1, "bits", value=17), r"layer 1: state bits must be a whole number in 4\.\.16"),
        (put("layers", 1, "bits", value="8"), r"layer 1: state bits must be a whole number in 4\.\.16"),
        (put("layers", 1, "lambda_bits", value=7), r"layer 1: lambda_bits must be a whole number in 8\.\.12"),
        (put("layers", 1, "extra", value=7), "layer 1 should have U, bits, lambda_bits, not"),
        (put("layers", 2, "S", value=None), "layer 2: a mix with a skip needs S and apart"),
        (put("layers", 2, "C", value=None), "layer 2: C is of an unknown kind"),
        (put("layers", 0, "S", value={"kind": "dense"}), "layer 0: tensor S.integers is missing"),
        (put("readout", "steps_max", value=2**26), r"use a steps_max of at most \d+, not 67108864"),
        (put("readout", "steps_max", value=7), "steps_max of a mean must be even"),
        (put("readout", "steps_max", value=None), "steps_max of a mean must be a whole number"),
        (put("readout", "steps", value="last"), "steps_max is only for the readout of a mean"),
        (put("readout", "steps", value={}), "steps read out are 'last', 'all' or 'mean', got {}"),
        (put("readout", "steps_max", value=[4]), "steps_max of a mean must be a whole number"),
        (put("input", "window", value={}), "samples of a window must be a whole number"),
        (put("input", "window", value=0), "samples of a window must be a whole number in 1"),
        (put("input", "window", value=3), "layer 0: C reads 4 numbers, and is given 6"),
        (put("input", "window", value=2**40), "samples of a window must be a whole number in 1"),
    ],
)
def test_a_hostile_file_is_refused_in_words(tmp_path, change, message):
    program = make_stack(9, skip=True, window=2)
    save(program, tmp_path / "net.qornn")
    _, facts, tensors = split((tmp_path / "net.qornn").read_bytes())
    change(facts, tensors)
    (tmp_path / "edited.qornn").write_bytes(sealed(facts, tensors))
    with pytest.raises(ProgramError, match=message):
        load(tmp_path / "edited.qornn")


def test_a_tensor_that_no_part_has_is_refused(tmp_path):
    program = make_stack(9)
    save(program, tmp_path / "net.qornn")
    _, facts, tensors = split((tmp_path / "net.qornn").read_bytes())
    tensors["layers.0.apart2"] = np.zeros(3, np.int8)
    (tmp_path / "edited.qornn").write_bytes(sealed(facts, tensors))
    with pytest.raises(ProgramError, match=r"tensors that belong to no part: layers\.0\.apart2"):
        load(tmp_path / "edited.qornn")


@given(program=stacks(), seed=st.integers(0, 9))
def test_vectors_are_what_a_stream_gives(program, seed):
    """Sequences from zero and probes from anywhere, the outputs after every step."""
    found = vectors(program, 6 + seed)
    raw = as_read(program, found.inputs)
    assert found.states.shape == (len(raw), program.n_state)
    session = program.session()
    for t in range(2 * found.steps):
        if t % found.steps == 0:
            session.reset()
        y = session.step(raw[t])
        assert (session.h == found.states[t]).all()
        assert (y == found.outputs[t]).all()
    probed, h = step(program, probe_states(program), raw[2 * found.steps :])
    assert (np.concatenate(probed, 1) == found.states[2 * found.steps :]).all()
    readout = program.readout
    assert (readout.outputs(*readout.take(readout.start(len(h)), h)) == found.outputs[2 * found.steps :]).all()
