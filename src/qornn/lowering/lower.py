"""The only bridge from torch to integers: calibrate() watches the states, lower() makes the IntegerProgram."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from qornn import __version__
from qornn._io.progress import progress
from qornn.errors import SettingsError, unknown
from qornn.integer.inputs import make_samples
from qornn.integer.matrix import Matrix, Recurrent
from qornn.integer.parts import (
    Activation,
    Codes,
    FloatReadout,
    Identity,
    ModReLU,
    ReLU,
    Samples,
    State,
    check_activation_bits,
)
from qornn.integer.program import IntegerProgram, row_sums
from qornn.integer.requant import Paper, differing, make_multiplier, make_per_row, make_table, make_thresholds
from qornn.integer.rounding import round_half_away
from qornn.integer.simulate import input_sums, step
from qornn.integer.structured import Structured
from qornn.lowering.calibrate import SEQUENCES, Calibration, calibrate, open_source
from qornn.lowering.weights import matrices
from qornn.lowering.weights import readout as make_readout
from qornn.model import OrthogonalRNN
from qornn.tasks import Batch, Task
from qornn.tasks.base import check_count
from qornn.train.surroundings import own_torch

SCHEMES = ("paper", "per-row")
REQUANTS = ("multiplier", "thresholds", "table")
READOUTS = ("float", "int8")
FLOAT32 = float(np.finfo(np.float32).max)
NARROW, WIDE = 99.99, 12  # the percentile at which states of fewer bits saturate: a finer grid is worth more
TRAINED = ("metric", "value", "steps", "sigma_min", "sigma_max", "max_h")  # what a program says of its training


@own_torch()
def lower(
    source: Any,
    data: Any = None,
    *,
    activation_bits: int = 12,
    scheme: Literal["paper", "per-row"] | None = None,
    requant: Literal["multiplier", "thresholds", "table"] = "multiplier",
    readout: Literal["float", "int8"] | None = None,
    alpha_h: str | float | None = None,
    clip: float = 1.0,
    refit: int = 0,
    input: Samples | None = None,
    input_bits: int | None = None,
    input_alpha: float | None = None,
    calibration: Calibration | None = None,
    sequences: int | None = SEQUENCES,
    quiet: bool = False,
) -> IntegerProgram:
    """The network as integers (MATHS: paper, Fully quantized; our per-row scheme).

    `scheme` is per-row for a stored W and the paper's for a structured one, whose factor is then mostly a shift, unless
    said otherwise; `readout` is float, or the trained integers of V where it has them.
    `alpha_h` is "max", or the percentile of |h| at which states saturate, as in 99.99 (None: max, or 99.99 where a
    structured W rounds states of fewer than 12 bits at every step); `clip` takes that part of it, as
    in 0.7. `refit` trains a readout of floats on so many batches of the run's task, on the states of the integers.
    `input` says what raw samples are; without it the task or the data does.
    The result's `provenance["lowering"]` is the report.
    """
    _check_choices(requant=requant, activation_bits=activation_bits, clip=clip, scheme=scheme, readout=readout)
    check_count("refit", refit, least=0)
    model, task = open_source(source)
    if refit and (task is None or readout == "int8" or (readout is None and model.q_V is not None)):
        raise SettingsError(
            "refit trains a readout of floats on a task's data; lower a run, not a module alone, and with "
            "readout='float' (--readout float)"
        )
    if model.recurrence.activation not in ("relu", "modrelu", "identity"):
        raise SettingsError(f"{model.recurrence.activation} has no integer form; train with relu, modrelu or identity")
    W, U = matrices(model)
    if scheme is None:
        scheme = "paper" if isinstance(W, Structured) and not U.alpha.ndim else "per-row"
    seen = calibration or calibrate(source, data, sequences=sequences, quiet=quiet)
    inputs = input or _input(model, task, seen, input_bits, input_alpha)
    if isinstance(inputs, Samples) and inputs.n_i != model.recurrence.n_i:
        raise SettingsError(f"the network reads {model.recurrence.n_i} channels, the input part has {inputs.n_i}")
    if alpha_h is None:
        alpha_h = NARROW if activation_bits < WIDE and _rounds(W, U, inputs, activation_bits, seen.max_h) else "max"
    largest = clip * (seen.max_h if alpha_h == "max" else seen.percentile(_percent(alpha_h)))
    build = partial(_paper, nearest=alpha_h != "max" or clip < 1) if scheme == "paper" else _per_row
    state, activation, requantized, unit, exactness = build(model, W, U, inputs, activation_bits, largest, requant)
    program = IntegerProgram(
        W=W,
        U=U,
        state=state,
        input=inputs,
        activation=activation,
        requant=requantized,
        readout=make_readout(model, readout, unit),
        steps=model.readout,
    )
    _check_outputs(program)
    if refit:
        from qornn.lowering.refit import refit as train_readout

        batches = {"seed": source.recipe.train.seed, "start": source.result.get("steps") or 0}
        assert task is not None  # checked above
        program = train_readout(program, task, refit, **batches, quiet=quiet)
    chosen = {"scheme": scheme, "alpha_h": state.alpha, "alpha_h_rule": alpha_h, "clip": clip, "refit": int(refit)}
    report = {**chosen, **seen.report(), **exactness, **_check(program, seen, model)}
    return program.with_provenance(**_provenance(source, task), lowering=report)


def score(
    program: IntegerProgram,
    task: Task,
    split: Literal["train", "validation", "test"] = "test",
    *,
    batch: int = 512,
    quiet: bool = False,
) -> float:
    """The task's metric of the program over one pass of the split, by the native engine."""
    weighted = weight = 0.0
    parts = -(-task.size(split) // batch)
    for part in progress(task.batches(split, batch), total=parts, what="integers", quiet=quiet):
        y = program.readout.values(program.run(raw_input(program, part), _array(part.lengths)))
        weighted += task.metric(torch.from_numpy(y), part) * part.weight
        weight += part.weight
    return weighted / weight


def raw_input(program: IntegerProgram, part: Batch) -> np.ndarray:
    """What a device would be fed for this batch; pixels that a task has rounded past black or white stay in range."""
    raw = program.input.from_network(part.x.cpu().numpy())
    return raw.clip(program.input.low, program.input.high) if isinstance(program.input, Samples) else raw


def _input(
    model: OrthogonalRNN, task: Task | None, seen: Calibration, bits: int | None, alpha: float | None
) -> Codes | Samples:
    n_i = model.recurrence.n_i
    if seen.batches[0].x.ndim == 2:
        return Codes(size=n_i)
    raw = None if task is None else task.raw_input
    if raw is not None:
        if raw.bits is not None and (bits not in (None, raw.bits) or alpha is not None):
            raise SettingsError(
                f"the network was trained on inputs of {raw.bits} bits (task.input_bits); lower it without input_bits "
                "and input_alpha, or train it on others"
            )
        return make_samples(*raw[:4], channels=n_i, bits=raw.bits if bits is None else bits, alpha=alpha)
    top = 2**15 - 1
    return make_samples(-top, top, max(seen.max_x, 1e-30) / top, channels=n_i, bits=bits, alpha=alpha)


def _paper(
    model: OrthogonalRNN,
    W: Recurrent,
    U: Matrix,
    inputs: Codes | Samples,
    k_a: int,
    largest: float,
    form: str,
    *,
    nearest: bool,
) -> tuple[State, Activation, Paper, float, dict[str, Any]]:
    """λ = 1/(α_i α_U), the smallest α_h ≥ max|h| with α_W α_h = 2^m, and one factor c = α_W/2^(k−1+s).

    Where states are clipped anyway, the `nearest` α_h.
    """
    if W.alpha.ndim or U.alpha.ndim or W.identity:
        raise SettingsError('scheme="paper" takes one scale a matrix and no identity offset; use scheme="per-row"')
    alpha_W, alpha_U = float(W.alpha), float(U.alpha)
    rescaled = Fraction(largest) / (Fraction(inputs.alpha) * Fraction(alpha_U))
    m = (_log2_nearest if nearest else _log2_ceil)(Fraction(alpha_W) * rescaled)
    e = W.bits + k_a - U.bits - inputs.bits - m
    s = max(0, -e)
    state = State(bits=k_a, alpha=2.0**m / alpha_W)
    b_acc = _bias(model) / (inputs.alpha * alpha_U) * 2.0 ** (W.bits + k_a - 2 - m + s)
    below = _bits_below(model, W, row_sums(W, U, inputs, state), (s, e + s), b_acc) if form == "multiplier" else 0
    s, b_acc = s + below, b_acc * 2**below
    c = Fraction(alpha_W) / 2 ** (W.bits - 1 + s)
    shifts = {"shift_W": s, "shift_U": e + s}
    if max(shifts.values()) > 30:
        raise SettingsError(
            f"the input and the state are 2^{e} apart, past a 32-bit accumulator; use other activation or input bits, "
            'or scheme="per-row"'
        )
    if form == "multiplier":
        requant: Paper = make_multiplier(c, **shifts)
    else:
        requant = (make_thresholds if form == "thresholds" else make_table)(c, state.top, **shifts)
    wrong, values = differing(requant, c, state.top)
    if np.abs(b_acc).max(initial=0) >= 2**31:
        raise SettingsError(f"a bias reaches {np.abs(b_acc).max():.3g} accumulator units, past 32 bits; use fewer bits")
    unit = inputs.alpha * alpha_U * state.step
    exactness = {"accumulator_values": values, "differing": wrong, "lambda": 1 / (inputs.alpha * alpha_U), "m": m}
    bias = 2 * np.floor(b_acc / 2).astype(np.int64) + 1 if below else round_half_away(b_acc)
    return state, _activation(model, bias), requant, unit, exactness


def _bits_below(
    model: OrthogonalRNN, W: Recurrent, sums: tuple[np.ndarray, np.ndarray], shifts: tuple[int, int], b_acc: np.ndarray
) -> int:
    """Bits below the sums of a linear recurrence, for an odd bias; none where there is no room.

    Whole numbers over a power of two often end halfway. Away from zero, where halves go, states would grow at every
    step, and an orthogonal W forgets none of it: an odd bias keeps sums off the halves. Over other numbers a bias of
    three more bits is a finer one, and what it loses is lost at every step as well.
    """
    if model.recurrence.b is None:
        return 0
    below = 1 if math.frexp(float(W.alpha))[0] == 0.5 else 3
    largest = sum(int(part.max()) << shift for part, shift in zip(sums, shifts, strict=True)) + np.abs(b_acc).max() + 1
    return below if largest * 2**below < 2**31 and max(shifts) + below <= 30 else 0


def _per_row(
    model: OrthogonalRNN, W: Recurrent, U: Matrix, inputs: Codes | Samples, k_a: int, largest: float, form: str
) -> tuple[State, Activation, Any, float, dict[str, Any]]:
    """No λ and no power of two: two multipliers and a shift for each row."""
    if form != "multiplier":
        raise SettingsError(
            f'requant={form!r} exists only in scheme="paper"; scheme="per-row" takes requant="multiplier"'
        )
    state = State(bits=k_a, alpha=largest)
    c_W, c_U = _factors(W, U, inputs, state)
    c_b = _bias(model) / state.step
    sums = np.stack(row_sums(W, U, inputs, state), 1)
    requant, B, errors = make_per_row(c_W, c_U, c_b, sums, identity=W.identity, top=state.top)
    return state, _activation(model, B), requant, state.step, {"error_bound": float(errors.max())}


def _factors(W: Recurrent, U: Matrix, inputs: Codes | Samples, state: State) -> tuple[np.ndarray, np.ndarray]:
    """c_W and c_U of every row: states a unit of either sum.  # two (n_h,) float64"""
    rows = np.ones(W.n_h)
    c_U = U.alpha * inputs.alpha / (state.step * 2.0 ** (U.bits + inputs.bits - 2))
    return W.alpha / 2 ** (W.bits - 1) * rows, c_U * rows


def _rounds(W: Recurrent, U: Matrix, inputs: Codes | Samples, k_a: int, max_h: float) -> bool:
    """Whether a structured W rounds at every step; the cycle does where states on the grid of its inputs do not fit."""
    if not isinstance(W, Structured):
        return False
    unit = U.alpha * inputs.alpha / 2.0 ** (U.bits + inputs.bits - 2)
    return W.kind != "cycle" or bool(unit.ndim) or max_h > 2 ** (k_a - 1) * unit


def _bias(model: OrthogonalRNN) -> np.ndarray:
    layer = model.recurrence
    b = layer.b if layer.modrelu is None else layer.modrelu.b
    return np.zeros(layer.n_h) if b is None else b.detach().cpu().double().numpy()


def _activation(model: OrthogonalRNN, bias: np.ndarray) -> Activation:
    if model.recurrence.activation == "modrelu":
        return ModReLU(bias=bias)
    if model.recurrence.activation == "relu":
        return ReLU()
    return Identity(bias=None if model.recurrence.b is None else bias)


def _check(program: IntegerProgram, seen: Calibration, model: OrthogonalRNN) -> dict[str, Any]:
    """Run the program on calibration data: how many states saturate, and how many are not those of exact factors."""
    states = saturated = wrong = 0
    factors = (*_factors(program.W, program.U, program.input, program.state), _bias(model) / program.state.step)
    for part in seen.batches:
        raw, lengths, _ = program.accept(raw_input(program, part), _array(part.lengths), saturate=True)
        drive = input_sums(program, raw)
        h = np.zeros((len(raw), program.n_h), np.int64)
        for t in range(raw.shape[1]):
            before, h = h, step(program, h, drive[:, t])
            running = t < lengths
            states += int(running.sum()) * program.n_h
            saturated += int((np.abs(h[running]) == program.state.top).sum())
            if program.scheme == "per-row":
                wrong += int((_exact(program, factors, before, drive[:, t])[running] != h[running]).sum())
    checked = sum(len(part.x) for part in seen.batches)
    found = {"checked_sequences": checked, "states": states, "saturation": saturated / states}
    return found | ({"differing": wrong} if program.scheme == "per-row" else {})


def _check_outputs(program: IntegerProgram) -> None:
    """Outputs of floats must stay below infinity, whatever the states."""
    readout = program.readout
    if not isinstance(readout, FloatReadout):
        return
    top = program.state.top * (program.n_h if readout.mix else 1)
    sums = np.abs(readout.V.astype(np.float64)).sum(1) * top
    largest = max(sums.max(), (sums * readout.scale + np.abs(readout.b_o)).max())
    if largest > FLOAT32:
        raise SettingsError(
            f"sums of the readout can reach {largest:.3g}, past {FLOAT32:.3g}, the largest float32; divide the targets "
            "by a constant before training, and multiply the answers by it"
        )


def _exact(
    program: IntegerProgram, factors: tuple[np.ndarray, np.ndarray, np.ndarray], h: np.ndarray, drive: np.ndarray
) -> np.ndarray:
    """The next state with the real factors in place of their multipliers."""
    c_W, c_U, bias = factors
    z = c_W * program.W.product(h) + c_U * drive + (h if program.W.identity else 0)
    if isinstance(program.activation, ReLU):
        return np.minimum(round_half_away(np.maximum(z, 0)), program.state.top)
    if isinstance(program.activation, Identity):
        z, bias = z + bias, np.zeros_like(bias)
    size = round_half_away(np.maximum(np.abs(z) + bias, 0))
    return np.sign(z).astype(np.int64) * np.minimum(size, program.state.top)


def _provenance(source: Any, task: Task | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"version": __version__}
    if task is not None:
        trained = {key: source.result[key] for key in TRAINED if key in source.result}
        facts |= {
            "recipe": source.recipe.portable_tables(),
            "seed": source.recipe.train.seed,
            "task": task.name,
            "trained": trained,
        }
    return facts


def _check_choices(*, requant: str, activation_bits: int, clip: float, scheme: str | None, readout: str | None) -> None:
    for kind, name, choices in (
        ("scheme", scheme, SCHEMES),
        ("requant", requant, REQUANTS),
        ("readout", readout, READOUTS),
    ):
        if name not in choices and (name is not None or kind == "requant"):
            raise unknown(kind, name, choices)
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip <= 1:
        raise SettingsError(f"clip is the part of alpha_h at which states saturate, in (0, 1], got {clip!r}")
    check_activation_bits(activation_bits)


def _percent(alpha_h: str | float) -> float:
    try:
        return float(alpha_h)
    except (TypeError, ValueError) as error:
        raise SettingsError(f'alpha_h is "max" or a percentile such as 99.99, got {alpha_h!r}') from error


def _log2_ceil(x: Fraction) -> int:
    """The least m with 2^m ≥ x, exactly."""
    m = x.numerator.bit_length() - x.denominator.bit_length() - 1
    while Fraction(2) ** m < x:
        m += 1
    return m


def _log2_nearest(x: Fraction) -> int:
    """The m with 2^m nearest to x in ratio, exactly."""
    m = _log2_ceil(x)
    return m - 1 if x * x < Fraction(2) ** (2 * m - 1) else m


def _array(lengths: Tensor | None) -> np.ndarray | None:
    return None if lengths is None else lengths.cpu().numpy()
