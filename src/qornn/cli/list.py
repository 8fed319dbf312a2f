"""qornn list: every recipe, one per line."""

from __future__ import annotations

from qornn.cli.options import Json
from qornn.cli.output import print_json, print_table


def run(json: Json = False) -> None:
    """List the recipes: one per task, with every cell of the paper's tables.

    Example: qornn list
    """
    from qornn import recipe
    from qornn.tasks import TASKS

    rows = []
    for name in recipe.names():
        cells = recipe.cells(name)
        rows.append(
            {
                "recipe": name,
                "metric": TASKS[name].metric_name,
                "n_h": recipe.resolve(name).model.n_h,
                "strategies": list(recipe.strategies(name)),
                "cells": len(cells),
                "tables": sorted({cell.table for cell in cells}),
            }
        )
    if json:
        print_json({"recipes": rows})
        return
    shown = [[", ".join(v) if isinstance(v, list) else v for v in row.values()] for row in rows]
    print_table("Recipes (`qornn show NAME` for one)", list(rows[0]), shown)
