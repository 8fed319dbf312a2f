"""qornn size: the bytes of a network, by the paper's formula and as stored."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qornn.cli.options import Bits, Json, Map, Model, Set
from qornn.cli.output import bits_text, print_json, print_table
from qornn.errors import SettingsError
from qornn.integer.size import KB

if TYPE_CHECKING:
    from qornn.integer.program import IntegerProgram
    from qornn.recipe import Recipe
    from qornn.tasks import Task


def run(
    what: Annotated[
        str | None,
        typer.Argument(help="A task, a run folder, a program file or zoo:NAME. Default: the paper's whole table."),
    ] = None,
    bits: Bits = "recipe",
    model: Model = "qornn",
    map: Map = None,
    set: Set = None,
    json: Json = False,
) -> None:
    """Sizes in bytes: the paper's formula, and everything that must be stored.

    Example: qornn size pmnist --bits 3 --set model.n_h=360
    """
    from qornn.recipe import AS_THE_RECIPE, find_cell, read_run, resolve
    from qornn.zoo.opening import locate

    if what is None:
        if bits != AS_THE_RECIPE or set or map:
            raise SettingsError(
                "--bits, --map and --set need a task or a run folder, as in `qornn size pmnist --bits 4`"
            )
        _paper_table(json)
        return
    if locate(what).is_file():
        if bits != AS_THE_RECIPE or set or map:
            raise SettingsError(f"{what} is a finished program; --bits, --map and --set are for tasks and runs")
        _print(what, _of_program(locate(what)), json)
        return
    if (Path(what) / "recipe.toml").exists():
        own = [] if bits == AS_THE_RECIPE else [f"model.bits={bits}"]
        own += [] if map is None else [f"model.map={map}"]
        recipe = read_run(Path(what)).override([*own, *(set or [])])
    else:
        recipe = resolve(what, model=model, map=map, bits=bits, settings=set or [])
    figures = _figures(recipe)
    cell = find_cell(recipe)
    figures["paper_kB_published"] = cell.facts.get("paper_kB") if cell else None
    _print(f"{what}, {bits_text(recipe.model.bits)}", figures, json)


def _print(title: str, figures: dict[str, Any], json: bool) -> None:
    if json:
        print_json(figures)
        return
    flat = {key: value for key, value in figures.items() if key != "operations" and not isinstance(value, list)}
    print_table(title, ["", ""], flat.items())
    if not figures["operations"]:
        return
    rows = [
        [column, matrix, ops["mult"], ops["add"], ops["operands"]]
        for column, step in figures["operations"].items()
        for matrix, ops in step.items()
    ]
    print_table("\nOperations per step", ["arithmetic", "matrix", "mult.", "add.", "operands"], rows)


def _of_program(path: Path) -> dict[str, Any]:
    """A program's own figures: bounds and scales from its integers, not only from its shape."""
    from qornn.integer.program_size import of_program
    from qornn.zoo.opening import load_program

    p = load_program(path)
    found, operations = of_program(p)
    return {
        "task": p.provenance.get("task"),
        "n_i": p.n_i,
        "n_h": p.n_out,
        "n_o": p.n_o,
        "bits": p.bits,
        "activation_bits": p.activation_bits,
        "input_bits": p.input.bits,
        "parameters": p.parameters,
        "paper_bytes": found and found.paper_bytes,
        "true_bytes": p.true_bytes,
        "file_bytes": path.stat().st_size,
        **({} if p.numpy_only else asdict(p.memory())),  # as exported to C, without code and stack
        "accumulator_bits": p.accumulator_bits,
        "accumulator_bits_by_shape": found and found.accumulator_bits,
        "paper_kB": None if found is None or found.paper_kB is None else round(found.paper_kB, 2),
        "true_kB": round(p.true_bytes / KB, 2),
        **(_of_layer(p) if found else {"layers": [layer.describe() for layer in p.layers]}),
        "operations": {name: asdict(step) for name, step in operations.items()},
    }


def _of_layer(p: IntegerProgram) -> dict[str, Any]:
    """Figures of the only layer."""
    alphas = {"W": p.W.alpha, "U": p.U.alpha}
    alpha_W, alpha_U = (float(alpha.max()) for alpha in alphas.values())
    rows = {f"alpha_{name}_rows": alpha.tolist() for name, alpha in alphas.items() if alpha.ndim}
    return {
        "W": p.W.kind,
        "bits_U": p.U.bits,
        "scheme": p.scheme,
        "alpha_W": alpha_W,  # of the largest row, where each has its own
        "alpha_U": alpha_U,
        "alpha_h": p.state.alpha,
        "alpha_W_alpha_h": alpha_W * p.state.alpha,
        **rows,
    }


def _figures(recipe: Recipe) -> dict[str, Any]:
    from qornn.integer.size import complexity
    from qornn.integer.structured_size import structured_step
    from qornn.recipe import STACK
    from qornn.reproduce.formulas import size_of
    from qornn.structure import MAPS
    from qornn.tasks import make_task

    settings = dict(recipe.task)
    task, m = make_task(settings.pop("name"), **settings), recipe.model
    found = size_of(recipe)
    if m.kind == "qornn" and m.map in MAPS:
        operations = structured_step(
            m.map, task.n_i, m.n_h, bits=m.bits, one_hot=task.one_hot, input_bits=_input_bits(task), **m.shape
        )
    elif m.kind == "qornn":
        operations = complexity(
            task.n_i, m.n_h, bits=m.bits, bits_U=m.bits_U, one_hot=task.one_hot, input_bits=_input_bits(task)
        )
    else:
        operations = {}  # the paper's table covers only its own recurrence
    return {
        "task": task.name,
        "n_i": task.n_i,
        "n_h": m.n_out,
        "n_o": task.n_o,
        "bits": m.weight_bits,
        **({"layers": m.layers, "pairs": m.n_pairs, "activation_bits": m.activation_bits} if m.kind == STACK else {}),
        **asdict(found),
        "paper_kB": None if found.paper_kB is None else round(found.paper_kB, 2),
        "true_kB": round(found.true_kB, 2),
        "operations": {name: asdict(step) for name, step in operations.items()},
    }


def _input_bits(task: Task) -> int:
    """Bits that lowering gives the inputs, losslessly where it can."""
    from qornn.integer.inputs.make import DEFAULT_BITS, make_samples

    if task.one_hot:
        return 2
    raw = task.raw_input
    return DEFAULT_BITS if raw is None else make_samples(*raw[:4], bits=raw.bits, channels=task.n_i).bits


def _paper_table(json: bool) -> None:
    """Every cell of the paper that has a size: ours by the formula, beside the published figure."""
    from qornn import recipe

    rows = []
    for name in recipe.names():
        for cell in recipe.cells(name):
            if cell.table not in ("performance", "sizes", "pmnist360") or "paper_kB" not in cell.facts:
                continue
            orthogonal = cell.recipe.model.kind == "qornn"
            figures = _figures(cell.recipe) if orthogonal and not cell.post else {}
            rows.append(
                {
                    "task": name,
                    "strategy": cell.strategy,
                    "n_h": cell.recipe.model.n_h if orthogonal else None,
                    "bits": cell.bits,
                    "paper_bytes": figures.get("paper_bytes"),
                    "true_bytes": figures.get("true_bytes"),
                    "paper_kB": figures.get("paper_kB"),
                    "published_kB": cell.facts["paper_kB"],
                    "source": "formula"
                    if figures
                    else f"cited: {cell.facts.get('cited', 'the paper')}, not recomputed",
                }
            )
    if json:
        print_json({"table": rows})
        return
    shown = [[bits_text(v) if k == "bits" else v for k, v in row.items()] for row in rows]
    print_table("Sizes (kB = 1024 B)", list(rows[0]), shown)
