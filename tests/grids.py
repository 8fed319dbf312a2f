"""Grids of parameters of which `make test` runs a part, and `make test-all` the whole."""

from itertools import combinations, product

import pytest


def covering(*axes, together=2):
    """Every combination; those that are not needed for any `together` values of different axes to meet are `full`.

    With `together=1` every value is met once.
    """
    every = list(product(*(range(len(axis)) for axis in axes)))
    missing = set().union(*(_met(one, together) for one in every))
    chosen = set()
    while missing:
        best = max(every, key=lambda one: len(missing & _met(one, together)))
        missing -= _met(best, together)
        chosen.add(best)
    values = {one: [axis[i] for axis, i in zip(axes, one, strict=True)] for one in every}
    return [pytest.param(*values[one], marks=() if one in chosen else pytest.mark.full) for one in every]


def some(cases, step):
    """One case of every `step`; the others are `full`."""
    return [case if i % step == 0 else pytest.param(case, marks=pytest.mark.full) for i, case in enumerate(cases)]


def _met(one, together):
    return {frozenset(group) for group in combinations(enumerate(one), together)}
