"""Weights fixed for torch.export: eval() computes them, and the exported program holds them as constants.

A map decides on the numbers of W_raw, which torch.export does not see while it traces. It would also compute every
weight again at each call of the program.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

import torch
from torch import Tensor, nn

from qornn.errors import SettingsError
from qornn.recurrence import exporting

Weights = tuple[Tensor | None, ...]


class FixesWeights(nn.Module):
    """A module whose weights are computed from its parameters.

    Outside of torch.export they are computed at every call, from the parameters as they are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._fixed: _Fixed | None = None
        self.register_load_state_dict_post_hook(_fix_again)

    def before_fixing(self) -> None:
        """Called by eval() before it computes the weights."""

    def computed(self) -> Weights:
        """The weights that the network uses, computed from its parameters."""
        return ()

    def used(self) -> Weights:
        """The same. While torch.export traces, the ones that eval() computed."""
        if not exporting():
            return self.computed()
        if self.training:
            raise SettingsError("torch.export takes a network in evaluation mode; call model.eval() first")
        if self._fixed is None or self._fixed.stale(self):
            raise SettingsError("the weights have changed since model.eval(); call it again before torch.export")
        return self._fixed.weights()

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self._fixed = None if mode else _Fixed(self)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fixed": None}  # a copy has parameters of its own

    def __prepare_scriptable__(self) -> NoReturn:
        raise SettingsError(
            "torch.jit.script cannot read this network; torch.export.export(model.eval(), (x,)) gives a program of it"
        )


class _Fixed:
    """Weights, and the parameters that they were computed from."""

    def __init__(self, part: FixesWeights) -> None:
        self._parameters = [(p, _state(p)) for p in part.parameters(recurse=False)]
        self._parts = list(part.children())  # another number of bits is another quantizer
        self._weights: Weights | SettingsError = ()
        if any(p.is_meta for p in part.parameters()):
            self._weights = SettingsError("a network on the meta device has no weights to export")
            return
        part.before_fixing()
        try:
            with torch.inference_mode(False), torch.no_grad():
                self._weights = tuple(None if w is None else w.detach().clone() for w in part.computed())
        except SettingsError as error:  # such as weights that training has made infinite: evaluation says so itself
            self._weights = error

    def stale(self, part: FixesWeights) -> bool:
        """Whether parameters or quantizers are others by now."""
        changed = any(_state(p) != before for p, before in self._parameters)
        return changed or [id(child) for child in part.children()] != [id(child) for child in self._parts]

    def weights(self) -> Weights:
        if isinstance(self._weights, SettingsError):
            raise self._weights
        return tuple(None if w is None else w.clone() for w in self._weights)  # a clone is known to the tracer


def _state(parameter: Tensor) -> tuple[object, ...]:
    """What tells whether a parameter was written to, or moved to another type or device."""
    version = 0 if parameter.is_inference() else parameter._version
    return version, parameter.dtype, parameter.device


def _fix_again(part: FixesWeights, _: object) -> None:
    if not part.training:
        part._fixed = _Fixed(part)
