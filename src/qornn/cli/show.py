"""qornn show RECIPE: settings, strategies and the paper's figures."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qornn.cli.options import Json
from qornn.cli.output import bits_text, print_json, print_table


def run(recipe: Annotated[str, typer.Argument(help="A name from `qornn list`.")], json: Json = False) -> None:
    """Show a recipe: its settings, what each strategy changes, and every cell with the paper's figure.

    Example: qornn show copy
    """
    from qornn import recipe as recipes

    base = recipes.resolve(recipe)
    strategies = recipes.strategies(recipe)
    cells = [_facts(cell) for cell in recipes.cells(recipe)]
    if json:
        print_json({"recipe": recipe, **base.tables(), "strategies": strategies, "cells": cells})
        return
    print(base.to_toml())
    print_table("Strategies", ["strategy", "changes"], [[name, _changes(s)] for name, s in strategies.items()])
    columns = ["table", "strategy", "bits", "n_h", "paper", "12-bit states", "kB", "source"]
    print_table("\nCells of the paper", columns, [_row(cell) for cell in cells])


def _facts(cell: Any) -> dict[str, Any]:
    return {
        "table": cell.table,
        "strategy": cell.strategy,
        "bits": cell.bits,
        "paper": cell.paper,
        **cell.facts,
        "settings": cell.recipe.tables(),
    }


def _changes(strategy: dict[str, Any]) -> str:
    return "  ".join(
        f"{table}.{key}={value}" for table in ("model", "train") for key, value in strategy.get(table, {}).items()
    )


def _row(cell: dict[str, Any]) -> list[object]:
    at = cell.get("paper_at", {}).get("12")
    source = f"cited: {cell['cited']}" if "cited" in cell else cell.get("note")
    n_h = cell["settings"]["model"].get("n_h")  # a stack has none
    return [
        cell["table"],
        cell["strategy"],
        bits_text(cell["bits"]),
        n_h,
        cell["paper"],
        at,
        cell.get("paper_kB"),
        source,
    ]
