"""lower(): from a trained network to integers, one step after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from qornn.errors import SettingsError
from qornn.integer.inputs import Input, Samples
from qornn.integer.program import IntegerProgram
from qornn.integer.state import Source
from qornn.lowering.calibrate import SEQUENCES, Calibration, calibrate
from qornn.lowering.check import check_outputs, check_states
from qornn.lowering.choices import PAPER_BITS, check_choices, check_trained_bits, refuse_choices
from qornn.lowering.inputs import check_trained, input_of, lengths_of
from qornn.lowering.layer import Choices, Lower, Lowered, lowering_of
from qornn.lowering.refit import refit as train_readout
from qornn.lowering.source import Network, open_source, provenance_of
from qornn.lowering.weights import readout_of, refuse_non_finite
from qornn.tasks import Batch, Task
from qornn.train.surroundings import own_torch


@own_torch()
def lower(
    source: Any,
    data: Any = None,
    *,
    activation_bits: int | None = None,
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
    """Turn a trained network into an `IntegerProgram` (paper, Fully quantized; the per-row scheme is ours).

    The result's `provenance["lowering"]` reports what was chosen and measured.

    - `source`: a run, or an `OrthogonalRNN` or `Stack`.
    - `data` (None): calibration data: an array (N, T, n_i), codes (N, T), or an iterable of these. None means the data
      of the run's task; a module alone needs data.
    - `activation_bits` (None): bits of the state. None means 12, or the bits that states were rounded to in training.
    - `scheme` (None): "paper", one factor for all rows, mostly a shift; or "per-row", two multipliers and a shift per
      row. None means per-row; where W is not stored, paper.
    - `requant` ("multiplier"): how sums become states: "multiplier", or in the paper's scheme "thresholds" or "table".
    - `readout` (None): "float", or "int8" for V on 8 bits. None means float, or the integers that V was trained as.
    - `alpha_h` (None): "max", or the percentile of |h| at which states saturate, such as 99.99. None means max; where W
      is not stored and rounds states of fewer than 12 bits at every step, 99.99.
    - `clip` (1.0): states saturate at this fraction of `alpha_h`, such as 0.7.
    - `refit` (0): batches of the run's task on which a float readout is trained again, on the integer states.
    - `input` (None): the input part of the program, `Samples`. None makes it from the task, or from the data.
    - `input_bits` (None): bits of the inputs. None means the task's, or those that lose nothing.
    - `input_alpha` (None): range of the inputs; the paper uses 1. None means the range that loses nothing.
    - `calibration` (None): the result of `calibrate`. None calibrates now.
    - `sequences` (10000): at most this many sequences of each split are used to calibrate. None means all.
    - `quiet` (False): no progress bar.
    """
    check_choices(
        requant=requant, activation_bits=activation_bits, clip=clip, scheme=scheme, readout=readout, refit=refit
    )
    model, task = open_source(source)
    check_trained_bits([layer.state_bits for layer in model.layers], activation_bits)
    if all(layer.rounds for layer in model.layers):
        refuse_choices(scheme=scheme, requant=requant, alpha_h=alpha_h, clip=clip)
    _check_refit(refit, model, task, readout)
    refuse_non_finite(model)
    lowerings = [_lowering(i, model) for i in range(len(model.layers))]
    seen = calibration or calibrate(source, data, sequences=sequences, quiet=quiet)
    _check_calibration(seen, model)
    inputs = input or input_of(model, task, seen, input_bits, input_alpha)
    _check_channels(inputs, model.layers[0].n_i)
    check_trained(inputs, model.entry)
    bits = PAPER_BITS if activation_bits is None else activation_bits
    chosen = Choices(bits=bits, scheme=scheme, requant=requant, alpha_h=alpha_h, clip=clip)
    lowered: list[Lowered] = []
    given: Source = inputs
    for lower_one, states in zip(lowerings, seen.layers, strict=True):
        lowered.append(lower_one(given, states, chosen))
        given = replace(lowered[-1].output, skip=given)
    program = IntegerProgram(
        input=inputs,
        layers=tuple(made.layer for made in lowered),
        readout=readout_of(model, readout, lowered[-1].unit, lowered[-1].layer.output.top),
    )
    check_outputs(program)
    if refit:
        assert task is not None  # checked above
        batches = {"seed": source.recipe.train.seed, "start": source.result.get("steps") or 0}
        program = train_readout(program, task, refit, **batches, quiet=quiet)
    report = _report(program, seen, lowered, {"clip": clip, "refit": int(refit)})
    return program.with_provenance(**provenance_of(source, task), lowering=report)


def _lowering(index: int, model: Network) -> Lower:
    """What lowers that layer; a refusal says which of several it is."""
    try:
        return lowering_of(model.layers[index])
    except SettingsError as error:
        raise SettingsError(f"layer {index}: {error}" if len(model.layers) > 1 else str(error)) from error


def _report(
    program: IntegerProgram, seen: Calibration, lowered: list[Lowered], chosen: dict[str, Any]
) -> dict[str, Any]:
    """The report: what was chosen and measured. With several layers, each has its own table."""
    counts = check_states(program, seen, [made.exact for made in lowered])
    layers = [
        {**made.report, **states.report(), **made.exactness, **found.report(made.exact)}
        for made, states, found in zip(lowered, seen.layers, counts, strict=True)
    ]
    common = {**chosen, "sequences": seen.sequences, "checked_sequences": sum(len(part.x) for part in seen.batches)}
    lengths = {int(length) for part in seen.batches for length in _lengths(part)}
    common["steps"] = lengths.pop() if len(lengths) == 1 else None  # of a sequence, where all are equally long
    return {**common, **layers[0]} if len(layers) == 1 else {**common, "layers": layers}


def _lengths(part: Batch) -> Any:
    lengths = lengths_of(part)
    return [part.x.shape[1]] if lengths is None else lengths


def _check_refit(refit: int, model: Network, task: Task | None, readout: str | None) -> None:
    if refit and (task is None or readout == "int8" or (readout is None and model.q_V is not None)):
        raise SettingsError(
            "refit trains a float readout on a task's data; lower a run, not a module alone, and with "
            "readout='float' (--readout float)"
        )


def _check_calibration(seen: Calibration, model: Network) -> None:
    n_i, (x, *_) = model.layers[0].n_i, (part.x for part in seen.batches)
    channels = x.shape[2] if x.ndim == 3 else n_i  # codes have none
    if (channels, len(seen.layers)) != (n_i, len(model.layers)):
        raise SettingsError(
            f"the calibration saw {channels} channels and {len(seen.layers)} layers, the network has {n_i} and "
            f"{len(model.layers)}; calibrate this network"
        )


def _check_channels(inputs: Input, n_i: int) -> None:
    if inputs.n_i != n_i:
        raise SettingsError(f"the network reads {n_i} channels, the input part has {inputs.n_i}")
