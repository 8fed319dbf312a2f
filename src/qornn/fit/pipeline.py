"""The whole pipeline: read, train each width, choose, export C, verify it, and write a page and the report."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from qornn import __version__, export
from qornn._io.files import to_json, write_atomically
from qornn._io.folders import alone
from qornn._io.text import harmless
from qornn._io.zig import zig
from qornn.errors import QornnError, SettingsError
from qornn.fit import latency, output, width
from qornn.fit.classes import per_class
from qornn.fit.problem import Problem, pose
from qornn.fit.readers import read
from qornn.fit.report import write_report
from qornn.fit.settings import Fit
from qornn.fit.width import Width
from qornn.integer.program import IntegerProgram
from qornn.integer.storage import save
from qornn.verify import VerifyError, verify

EMULATED = "cortex-m4"  # is tried beside the host where its tools are installed
TOOLS = ("ziglang", "unicorn")
WEB = "web"


def fit(asked: Fit) -> dict[str, Any]:
    """Do all of it; the figures of `result.json` are returned."""
    began = time.monotonic()
    output.check(asked.out)
    hold = asked.estimator.get("missing") == "hold"
    named = {"label": asked.label, "id": asked.id, "time": asked.time, "group": asked.group}
    data = read(asked.data, test=asked.test, hold=hold, paired=asked.test_fraction is None, **named)
    bits = sorted(set(asked.bits))
    problem = pose(
        data,
        task=asked.task,
        test_fraction=asked.test_fraction,
        seed=asked.seed,
        choose=len(bits) > 1,
        metric=asked.metric,
    )
    if problem.kind == "regress" and asked.estimator.get("class_weight") is not None:
        raise SettingsError(
            "--class-weight is for classes, but the labels are values; leave it out, or --task classify"
        )
    window = width.window_for(problem, asked.design)
    asked = replace(asked, estimator={**asked.estimator, "window": window})
    facts = _facts(asked, problem, data.digest())
    output.check(asked.out, facts)
    with alone(asked.out, "fit"):
        output.check(asked.out, facts)  # nobody else came first
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
    output.open_again(asked.out)
    save(program, asked.out / "model.qornn", own=True)
    export.c(program, asked.out / "c", name=asked.c_name, command=asked.command)
    checked, skipped = _verify(asked, say)
    page, why = _page(asked, program, say)
    waited = latency.measured(program, problem, program.provenance["window"]) if problem.kind == "classify" else None
    notes = [
        *problem.notes,
        *chosen.warnings,
        *(f"{k} bits failed: {reason}" for k, reason in failed.items()),
        *skipped,
        *why,
    ]
    figures: dict[str, Any] = {
        "task": problem.kind,
        "metric": problem.metric,
        "value": chosen.value,
        "baseline": problem.baseline(),
        "converged": chosen.value > problem.baseline() + problem.point,
        "bits": chosen.bits,
        "activation_bits": program.activation_bits,
        "paper": None,
        "seconds": round(time.monotonic() - began, 1),
        "run": str(asked.out),
        "data": str(asked.data),
        "float": chosen.floating,
        "true_bytes": program.true_bytes,
        **asked.design.shape,
        "window": program.provenance["window"],
        "differences": program.provenance["input"].get("differences", False),
        "train": len(problem.train),
        "choice": len(problem.choice) if problem.chooses else 0,
        "test": len(problem.test),
        "split": {**problem.split, "validation": chosen.validation},
        "classes": per_class(problem, chosen),
        "latency": waited.figures() if waited else None,
        "widths": [_figures(w) for w in widths],
        "verified": all(c["exact"] is True for c in checked) if checked else None,
        "verification": checked,
        "notes": notes,
        "web": page,
        "files": ["model.qornn", "c", "report.html", "result.json", *(f"k{w.bits}.qornn" for w in widths)],
    }
    write_report(asked.out / "report.html", problem, widths, program, figures, facts, waited, name=asked.c_name)
    write_atomically(asked.out / output.RESULT, to_json(figures, indent=1), own=True)
    return figures


def choose(widths: Sequence[Width], point: float) -> Width:
    """The smallest width within one point of the best, on the data held out for this choice."""
    best = max(w.choice for w in widths)
    return min((w for w in widths if w.choice >= best - point), key=lambda w: w.bits)


def _facts(asked: Fit, problem: Problem, digest: str) -> dict[str, Any]:
    """Everything the figures depend on, except the width."""
    model = width.make_estimator(problem.kind, 4, random_state=asked.seed, **asked.estimator)
    own = {key: value for key, value in model.get_params().items() if key not in ("bits", "verbose", "device")}
    chosen = {
        "task": problem.kind,
        "metric": problem.metric,
        "test_fraction": asked.test_fraction,
        "name": asked.c_name,
    }
    return {"data": digest, "version": __version__, **chosen, **own}


def _train(
    asked: Fit, problem: Problem, bits: Sequence[int], facts: dict[str, Any], say: Callable[[str], None]
) -> tuple[list[Width], dict[int, IntegerProgram], dict[int, str]]:
    """Train every width, or load it if finished. A width that fails is noted and left out, unless all fail."""
    key = hashlib.sha256(to_json({**facts, "choice": problem.chooses}).encode()).hexdigest()
    settings = {**asked.estimator, "random_state": asked.seed}
    widths: list[Width] = []
    programs: dict[int, IntegerProgram] = {}
    failed: dict[int, str] = {}
    for number, k in enumerate(bits, 1):
        found = width.find(asked.out, k, key)
        if found is not None:
            say(f"{k} bits ({number} of {len(bits)}): finished earlier, loaded from {asked.out / f'k{k}.qornn'}")
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
            output.claim(asked.out, facts)
            found[0].save(asked.out, found[1])
        widths.append(found[0])
        programs[k] = found[1]
        say(f"{k} bits: {problem.metric} {found[0].value:.4g} on {len(problem.test)} held-out sequences, in integers")
    return widths, programs, failed


def _verify(asked: Fit, say: Callable[[str], None]) -> tuple[list[dict[str, Any]], list[str]]:
    """Replay the C on every target. Default targets that cannot run here are noted and skipped."""
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


def _page(asked: Fit, program: IntegerProgram, say: Callable[[str], None]) -> tuple[str | None, list[str]]:
    """The page for browsers, where it is wanted and its compiler is installed; else why there is none."""
    if not asked.web:
        return None, []
    if zig() is None:
        return None, ["no web page was written: the zig compiler is not installed; pip install 'qornn[mcu]'"]
    say("compiling the network for a web page")
    try:
        export.web(program, asked.out / WEB, name=asked.c_name, command=asked.command)
    except QornnError as error:
        return None, [f"no web page was written: {error}"]
    return f"{WEB}/index.html", []


def _figures(found: Width) -> dict[str, Any]:
    shown = ("bits", "value", "choice", "true_bytes", "seconds")
    epochs = {"float": found.floating, "epochs": len(found.history)}
    return {name: getattr(found, name) for name in shown} | epochs


def _aloud(text: str) -> None:
    print(harmless(text), file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    pass
