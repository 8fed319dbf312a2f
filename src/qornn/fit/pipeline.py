"""The whole way: read, train each width, choose, export C, verify it, and write it all down."""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qornn import __version__, export
from qornn._io.files import to_json, write_atomically
from qornn._io.folders import alone
from qornn._io.text import harmless
from qornn.bits import check_bits
from qornn.errors import QornnError, SettingsError, unknown
from qornn.export import c_names
from qornn.fit import place, width
from qornn.fit.reading import read
from qornn.fit.report import write_report
from qornn.fit.task import Problem, pose
from qornn.fit.width import Width
from qornn.integer.parts import check_activation_bits
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import save
from qornn.maps import MAPS
from qornn.tasks.base import check_count
from qornn.verify import TARGETS, VerifyError, verify

EMULATED = "cortex-m4"  # is tried beside the host where its tools are installed
TOOLS = ("ziglang", "unicorn")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What is asked for; an estimator's setting that is not here has the estimator's own default."""

    data: Path
    out: Path
    bits: tuple[int, ...] = (4,)
    task: str = "auto"
    test: Path | None = None
    label: str | None = None
    id: str | None = None
    time: str | None = None
    test_fraction: float | None = None
    seed: int = 0
    name: str | None = None  # of the C
    targets: tuple[str, ...] | None = None  # None: the host, and a microcontroller if it can be emulated
    estimator: dict[str, Any] = field(default_factory=dict)
    quiet: bool = False
    command: str | None = None  # what the C says made it

    def __post_init__(self) -> None:
        """Refuse now what would otherwise be refused after the training."""
        if not self.bits:
            raise SettingsError("bits names no width; give one or several of 2..8, as in --bits 2,4,8")
        for bits in self.bits:
            check_bits(bits)
        for target in self.targets or ():
            if target not in TARGETS:
                raise unknown("target", target, TARGETS)
        check_count("seed", self.seed, least=0)
        for key in ("n_hidden", "max_epochs"):
            if key in self.estimator:
                check_count(key, self.estimator[key])
        if "map" in self.estimator and self.estimator["map"] not in MAPS:
            raise unknown("map", self.estimator["map"], MAPS)
        if "activation_bits" in self.estimator:
            check_activation_bits(self.estimator["activation_bits"])
        if self.name is not None:
            c_names.check(self.name)

    @property
    def c_name(self) -> str:
        """The prefix of every C symbol: asked for, or made from the name of the data."""
        if self.name is not None:
            return self.name
        made = re.sub(r"\W+|_+", "_", self.data.resolve().stem.lower(), flags=re.ASCII).strip("_")[: c_names.LONGEST]
        try:
            return c_names.check(made)
        except SettingsError:
            return "model"


def fit(asked: Fit) -> dict[str, Any]:
    """Do all of it; the figures of `result.json` are returned."""
    began = time.monotonic()
    place.check(asked.out)
    data = read(asked.data, test=asked.test, label=asked.label, id=asked.id, time=asked.time)
    bits = sorted(set(asked.bits))
    problem = pose(data, task=asked.task, test_fraction=asked.test_fraction, seed=asked.seed, choose=len(bits) > 1)
    if problem.kind == "regress" and asked.estimator.get("class_weight") is not None:
        raise SettingsError(
            "--class-weight is for classes, but the labels are values; leave it out, or --task classify"
        )
    window = width.window_for(problem, asked.estimator.get("window", "auto"))
    asked = replace(asked, estimator={**asked.estimator, "window": window})
    facts = _facts(asked, problem, data.digest())
    place.check(asked.out, facts)
    with alone(asked.out, "fit"):
        place.check(asked.out, facts)  # nobody else came first
        return _carry_out(asked, problem, bits, facts, began)


def _carry_out(
    asked: Fit, problem: Problem, bits: Sequence[int], facts: dict[str, Any], began: float
) -> dict[str, Any]:
    say = _silent if asked.quiet else _aloud
    for note in problem.notes:
        say(f"note: {note}")
    widths, programs, failed = _train(asked, problem, bits, facts, say)
    chosen = choose(widths, problem.point)
    program = programs[chosen.bits].with_provenance(task=asked.data.name)
    place.open_again(asked.out)
    save(program, asked.out / "model.qornn", own=True)
    export.c(program, asked.out / "c", name=asked.c_name, command=asked.command)
    checked, skipped = _verify(asked, say)
    notes = [*problem.notes, *chosen.warnings, *(f"{k} bits failed: {why}" for k, why in failed.items()), *skipped]
    figures: dict[str, Any] = {
        "task": problem.kind,
        "metric": problem.metric,
        "value": chosen.value,
        "baseline": problem.baseline(),
        "converged": chosen.value > problem.baseline() + problem.point,
        "bits": chosen.bits,
        "activation_bits": program.state.bits,
        "paper": None,
        "seconds": round(time.monotonic() - began, 1),
        "run": str(asked.out),
        "data": str(asked.data),
        "float": chosen.floating,
        "true_bytes": program.true_bytes,
        "window": asked.estimator["window"],
        "train": len(problem.train),
        "choice": len(problem.choice) if problem.chooses else 0,
        "test": len(problem.test),
        "widths": [_figures(w) for w in widths],
        "verified": all(c["exact"] is True for c in checked) if checked else None,
        "verification": checked,
        "notes": notes,
        "files": ["model.qornn", "c", "report.html", "result.json", *(f"k{w.bits}.qornn" for w in widths)],
    }
    write_report(asked.out / "report.html", problem, widths, program, figures, facts, name=asked.c_name)
    write_atomically(asked.out / place.RESULT, to_json(figures, indent=1), own=True)
    return figures


def choose(widths: Sequence[Width], point: float) -> Width:
    """The smallest width within one point of the best, on the data held out for this choice."""
    best = max(w.choice for w in widths)
    return min((w for w in widths if w.choice >= best - point), key=lambda w: w.bits)


def _facts(asked: Fit, problem: Problem, digest: str) -> dict[str, Any]:
    """What the figures follow from, but for the width."""
    model = width.make_estimator(problem.kind, 4, random_state=asked.seed, **asked.estimator)
    own = {key: value for key, value in model.get_params().items() if key not in ("bits", "verbose", "device")}
    chosen = {"task": problem.kind, "test_fraction": asked.test_fraction, "name": asked.c_name}
    return {"data": digest, "version": __version__, **chosen, **own}


def _train(
    asked: Fit, problem: Problem, bits: Sequence[int], facts: dict[str, Any], say: Callable[[str], None]
) -> tuple[list[Width], dict[int, IntegerProgram], dict[int, str]]:
    """Every width, finished ones from the folder; one that fails is told and left out, unless all do."""
    key = hashlib.sha256(to_json({**facts, "choice": problem.chooses}).encode()).hexdigest()
    settings = {**asked.estimator, "random_state": asked.seed}
    widths: list[Width] = []
    programs: dict[int, IntegerProgram] = {}
    failed: dict[int, str] = {}
    for number, k in enumerate(bits, 1):
        found = width.find(asked.out, k, key)
        if found is not None:
            say(f"{k} bits ({number} of {len(bits)}): finished before, taken from {asked.out / f'k{k}.qornn'}")
        else:
            say(f"{k} bits ({number} of {len(bits)}): training on {len(problem.train)} sequences")
            try:
                found = width.train(problem, k, key=key, estimator=settings, quiet=asked.quiet)
            except QornnError as error:
                if len(failed) + 1 == len(bits):
                    raise
                failed[k] = str(error)
                say(f"{k} bits failed: {error}")
                continue
            place.claim(asked.out, facts)
            found[0].save(asked.out, found[1])
        widths.append(found[0])
        programs[k] = found[1]
        say(f"{k} bits: {problem.metric} {found[0].value:.4g} on {len(problem.test)} held-out sequences, in integers")
    return widths, programs, failed


def _verify(asked: Fit, say: Callable[[str], None]) -> tuple[list[dict[str, Any]], list[str]]:
    """The C replayed on every target; where nobody named targets, what cannot be tried here is told and skipped."""
    targets, skipped = asked.targets or ("host",), []
    if asked.targets is None:
        lacking = [tool for tool in TOOLS if find_spec(tool) is None]
        if lacking:
            skipped.append(
                f"{EMULATED} was not emulated: {' and '.join(lacking)} not installed; pip install 'qornn[mcu]'"
            )
        else:
            targets = (*targets, EMULATED)
    checked = []
    for target in targets:
        say(f"verifying the C on {target}")
        try:
            checked.append(verify(asked.out / "c", target).figures())
        except VerifyError as error:
            if asked.targets is None:
                skipped.append(f"not verified on {target}: {error}")
            else:
                checked.append({"target": target, "exact": None, "error": str(error)})
    return checked, skipped


def _figures(found: Width) -> dict[str, Any]:
    shown = ("bits", "value", "choice", "true_bytes", "seconds")
    epochs = {"float": found.floating, "epochs": len(found.history)}
    return {name: getattr(found, name) for name in shown} | epochs


def _aloud(text: str) -> None:
    print(harmless(text), file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    pass
