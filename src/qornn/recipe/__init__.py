"""Recipes: what to train and how, read from TOML."""

from qornn.recipe.recipe import (
    AS_THE_RECIPE,
    Cell,
    ModelSettings,
    Recipe,
    TrainSettings,
    cells,
    find_cell,
    from_tables,
    from_toml,
    names,
    read_run,
    resolve,
    setting,
    strategies,
)

__all__ = [
    "AS_THE_RECIPE",
    "Cell",
    "ModelSettings",
    "Recipe",
    "TrainSettings",
    "cells",
    "find_cell",
    "from_tables",
    "from_toml",
    "names",
    "read_run",
    "resolve",
    "setting",
    "strategies",
]
