"""One layer of a trained network in integers, given what it reads and what its states do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from qornn.errors import SettingsError
from qornn.integer.layers import LAYERS, Layer, Recurrent
from qornn.integer.matrices import Matrix, RecurrentMatrix
from qornn.integer.state import Source, Units
from qornn.lowering.activations import bias_of, check_activation
from qornn.lowering.calibrate import States
from qornn.lowering.check import Factors
from qornn.lowering.choices import state_limit
from qornn.lowering.scales import SCHEMES, factors
from qornn.lowering.weights import matrices
from qornn.model import OrthogonalRecurrence, SequenceLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options that were given. None leaves the choice to the layer."""

    bits: int
    scheme: str | None
    requant: str
    alpha_h: str | float | None
    clip: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A layer of a program, and how it came about."""

    layer: Layer
    unit: float  # the h of one unit of h_i
    exact: Factors | None  # the real factors, where they were rounded
    report: dict[str, Any]
    exactness: dict[str, Any]

    @property
    def output(self) -> Units:
        """What the next layer reads, in its real size."""
        seen = self.layer.output
        return replace(seen, alpha=self.unit * 2 ** (seen.bits - 1))


Lower = Callable[[Source, States, Choices], Lowered]


def lowering_of(layer: SequenceLayer) -> Lower:
    """What lowers the layer once its source is known; what has no integer form is refused at once."""
    made = layer.made_of()
    if made is not None:
        kind, numbers = made
        return partial(_known, LAYERS[kind], numbers)
    if not isinstance(layer, OrthogonalRecurrence):
        raise SettingsError(
            f"{type(layer).__name__} has no integer form; OrthogonalRecurrence, Rotations and Mix have one, and so has "
            f"your own layer if its made_of() names a kind of layer: {', '.join(LAYERS)}"
        )
    check_activation(layer)
    return partial(_recurrent, layer, *matrices(layer))


def _known(kind: type[Layer], numbers: dict[str, Any], source: Source, states: States, chosen: Choices) -> Lowered:
    """A layer that its own numbers make."""
    layer, unit = kind.made(source, **numbers)
    return Lowered(layer=layer, unit=unit, exact=None, report={"kind": layer.kind}, exactness={})


def _recurrent(
    layer: OrthogonalRecurrence, W: RecurrentMatrix, U: Matrix, source: Source, states: States, chosen: Choices
) -> Lowered:
    """The state's grid, the requantization and the activation, by the scheme asked for or the one that suits W."""
    suits = W.scheme if not U.alpha.ndim else "per-row"  # the paper's takes one scale per matrix
    scheme = chosen.scheme or suits
    limit = state_limit(chosen.alpha_h, W, U, source, chosen.bits, states.max_h)
    largest = chosen.clip * (states.max_h if isinstance(limit, str) else states.percentile(limit))
    nearest = limit != "max" or chosen.clip < 1
    scales = SCHEMES[scheme](layer, W, U, source, chosen.bits, largest, chosen.requant, nearest=nearest)
    made = Recurrent(W=W, U=U, state=scales.state, activation=scales.activation, requant=scales.requant)
    exact = (*factors(W, U, source, scales.state), bias_of(layer) / scales.state.step) if scales.rounded else None
    rule = limit if chosen.alpha_h is None else chosen.alpha_h
    report = {"scheme": scheme, "alpha_h": scales.state.alpha, "alpha_h_rule": rule}
    return Lowered(layer=made, unit=scales.unit, exact=exact, report=report, exactness=scales.exactness)
