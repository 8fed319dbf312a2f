"""Recipes: what to train and how.

A recipe file (data/*.toml) holds a task's shared settings, what each strategy changes, and every cell of the paper's
tables. A run folder holds one resolved recipe. Unknown keys are refused with the nearest known one.
"""

from qornn.recipe.files import AS_THE_RECIPE, names, resolve, strategies
from qornn.recipe.paper import Cell, cells, find_cell
from qornn.recipe.recipe import Recipe, from_tables, from_toml, read_run, setting
from qornn.recipe.settings import STACK, ModelSettings, TrainSettings

__all__ = [
    "AS_THE_RECIPE",
    "STACK",
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
