"""The figures of a trained network: from its result, or measured now if it has none or is quantized afterwards."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

from qornn.errors import ProgramError, SettingsError
from qornn.integer.program import IntegerProgram
from qornn.lowering.calibrate import calibrate
from qornn.lowering.lower import lower
from qornn.lowering.refit import refit
from qornn.lowering.score import score
from qornn.recipe import STACK
from qornn.reproduce.grid import Job
from qornn.tasks.base import Task
from qornn.train.evaluate import diagnostics, evaluate, quantized
from qornn.train.run import Run

ACTIVATION_BITS = 12
REFIT = 300  # batches that the readout is trained on, on integer states
NARROW_BITS = 8  # of states that a structured W lives with
DIAGNOSTICS = ("sigma_min", "sigma_max", "max_h", "orthogonality")
PROGRAM = "program"  # key of the integer network, which a record names and keeps beside itself
OWN = ("value", "converged", "steps", "seconds", "version", *DIAGNOSTICS)


def measure(job: Job, run: Run) -> dict[str, Any]:
    """Value on the test set, singular values, states, and the same network in integers."""
    bits, task = job.entry.bits, run.task()
    if not job.entry.post and "value" in run.result:
        return {key: run.result.get(key) for key in OWN} | _integer(job, run, task)
    with quantized(run.model, bits) if job.entry.post else nullcontext():
        trained = {key: run.result[key] for key in ("steps", "seconds", "version") if key in run.result}
        figures = trained | _evaluated(run, task) | _integer(job, run, task)
    if job.entry.post:
        figures["full_precision"] = run.result.get("value")
    return figures


def _evaluated(run: Run, task: Task) -> dict[str, Any]:
    batch = run.recipe.train.batch
    value = evaluate(run.model, task, "test", batch)
    found = diagnostics(run.model, next(task.batches("test", batch)))
    return {"value": value, "converged": task.converged(value), **{k: found[k] for k in DIAGNOSTICS if k in found}}


def _integer(job: Job, run: Run, task: Task) -> dict[str, Any]:
    """The integer network and its figures; a network that has no integer form says why."""
    if job.entry.bits is None or run.recipe.model.kind not in ("qornn", STACK):
        return {"integer": None}
    try:
        return _of_stack(job, run, task) if run.recipe.model.kind == STACK else _of_layer(job, run, task)
    except (SettingsError, ProgramError) as error:
        return {"integer": None, "note": f"not lowered: {error}"}


def _of_stack(job: Job, run: Run, task: Task) -> dict[str, Any]:
    """A stack was trained with rounded states: nothing is left to choose."""
    program = lower(run, quiet=job.quiet)
    return {"integer": _figures(program, task, job), PROGRAM: program}


def _of_layer(job: Job, run: Run, task: Task) -> dict[str, Any]:
    """The paper's layer with states of 12 bits, its readout trained again, and 8 bits where W is not stored."""
    seen = calibrate(run, quiet=job.quiet)
    program = lower(run, activation_bits=ACTIVATION_BITS, calibration=seen, quiet=job.quiet)
    alpha_W, alpha_U = float(program.W.alpha.max()), float(program.U.alpha.max())
    # The paper's own scheme divides states by alpha_i·alpha_U and takes the next power of two for alpha_W·alpha_h.
    power = 2.0 ** math.ceil(math.log2(alpha_W * seen.max_h / (program.input.alpha * alpha_U)))
    figures = _figures(program, task, job) | {
        "paper": (job.entry.fact("paper_at") or {}).get(str(ACTIVATION_BITS)),
        "alpha_h": program.state.alpha,
        "saturation": program.provenance["lowering"]["saturation"],
        "alpha_W": alpha_W,
        "alpha_W_alpha_h": power,
    }
    if not program.readout.exact:
        batches = {"seed": run.recipe.train.seed, "start": run.result.get("steps") or 0}
        again = refit(program, task, REFIT, **batches, quiet=job.quiet)
        figures["refit"] = {"steps": REFIT, "value": score(again, task, quiet=job.quiet)}
    found = {"integer": figures, PROGRAM: program}
    if program.W.stored:
        return found
    narrow = lower(run, activation_bits=NARROW_BITS, calibration=seen, quiet=job.quiet)
    report = {key: narrow.provenance["lowering"][key] for key in ("alpha_h_rule", "clip", "saturation")}
    return found | {"narrow": {"activation_bits": NARROW_BITS, "value": score(narrow, task), **report}}


def _figures(program: IntegerProgram, task: Task, job: Job) -> dict[str, Any]:
    value = score(program, task, quiet=job.quiet)
    return {"activation_bits": program.activation_bits, "value": value, "bytes": program.true_bytes}
