"""What a training step does to a stack's weights before it reads them, as one native call per layer.

In plain torch these are some thirty small operations per layer, which take longer than the network itself on a small
batch. `qornn.model` and `qornn.quant` specify them, and run where `usable` says no. Results are the same bits.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.recurrence.native import PATH, library
from qornn.recurrence.once import once_differentiable

_i64, _pointer = ctypes.c_int64, ctypes.c_void_p


class _MixWeights(ctypes.Structure):  # qornn_mix_weights in weights.h
    _fields_ = (
        *((name, _i64) for name in ("d", "n", "n_skip", "bits", "below", "apart", "largest_bias")),
        *((name, _pointer) for name in ("C", "S", "c", "source_step", "skip_step", "step")),
    )


class _TurnWeights(ctypes.Structure):  # qornn_turn_weights in weights.h
    _fields_ = (
        *((name, _i64) for name in ("p", "n", "bits", "lambda_bits", "finest")),
        *((name, _pointer) for name in ("U", "decay", "radius", "angle", "cosine", "sine", "source_step", "step")),
    )


def usable(*tensors: Tensor) -> bool:
    """float32 on the CPU, row after row; torch.compile makes its own kernels of plain torch."""
    if PATH is None or torch.compiler.is_compiling():
        return False
    return all(t.dtype is torch.float32 and t.is_cpu and t.is_contiguous() for t in tensors)


class MixGrids(NamedTuple):
    """What the grids of a mix depend on besides its weights."""

    source_step: Tensor  # (): of what C reads
    skip_step: Tensor  # (): of what S reads
    step: Tensor | None  # (): of the outputs; None: not set yet
    bits: int
    below: int
    apart: int
    largest_bias: int


class TurnGrids(NamedTuple):
    """The same of rotations."""

    source_step: Tensor | None  # (): of what U reads; None: that is float
    step: Tensor | None  # (p,): of the states; None: not set yet
    bits: int
    lambda_bits: int
    finest: int


def quantized_mix(
    C_raw: Tensor, S_raw: Tensor | None, c_raw: Tensor, grids: MixGrids
) -> tuple[Tensor, Tensor | None, Tensor]:
    """C, S and c on their grids, outside of autograd."""
    (d, n), n_skip = C_raw.shape, 0 if S_raw is None else S_raw.shape[1]
    _expect(c_raw.shape[0] == d and (S_raw is None or S_raw.shape[0] == d), C_raw, c_raw, S_raw)
    source_step, skip_step, step, *how = grids
    tensors = (C_raw, S_raw, c_raw, source_step, skip_step, step)
    problem = _MixWeights(d, n, n_skip, *how, *map(_address, tensors))
    C, S, c = torch.empty_like(C_raw), None if S_raw is None else torch.empty_like(S_raw), torch.empty_like(c_raw)
    _call("qornn_quantize_mix", ctypes.byref(problem), _address(C), _address(S), _address(c))
    return C, S, c


class _QuantizeMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Any, ...]:
        ctx.set_materialize_grads(False)
        return quantized_mix(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return *grads, None


def mix_weights(
    C_raw: Tensor,  # (d, n)
    S_raw: Tensor | None,  # (d, n_skip)
    c_raw: Tensor,  # (d,)
    grids: MixGrids,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """C, S and c of a mix on their grids; gradients pass unchanged."""
    return _QuantizeMix.apply(C_raw, S_raw, c_raw, grids)


class QuantizedTurns:
    """U on its grid, in units of a state's step, and a and b of λ on theirs, outside of autograd.

    Holds what the backward pass needs.
    """

    def __init__(self, U_raw: Tensor, nu: Tensor, phi: Tensor, grids: TurnGrids) -> None:
        source_step, step, *how = grids
        p = nu.shape[0]
        fits = U_raw.shape[0] == 2 * p and phi.shape[0] == p and (step is None or step.numel() == p)
        _expect(fits, U_raw, nu, phi, step)
        decay, angle = torch.exp(nu), torch.exp(phi)  # by torch: other libraries' last bits may differ
        parts = decay, torch.exp(-decay), angle, angle.cos(), angle.sin()
        step = None if step is None else step.clone()  # the backward pass needs it as it is now, and steps move
        tensors = (U_raw, *parts, source_step, step)
        self._how, self._alive = _TurnWeights(p, U_raw.shape[1], *how, *map(_address, tensors)), (parts, step)
        self.U, self.a, self.b = map(torch.empty_like, (U_raw, nu, phi))
        _call("qornn_quantize_turns", ctypes.byref(self._how), *map(_address, (self.U, self.a, self.b)))

    def gradients(self, dU: Tensor, da: Tensor, db: Tensor) -> tuple[Tensor, ...]:
        """Of U_raw, nu and phi."""
        grads = dU, da, db
        found = tuple(map(torch.empty_like, grads))
        _call("qornn_turn_gradients", ctypes.byref(self._how), *map(_address, (*grads, *found)))
        return found


class _QuantizeTurns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        ctx.turns = turns = QuantizedTurns(*inputs)
        return turns.U, turns.a, turns.b

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *ctx.turns.gradients(*(g.contiguous() for g in grads)), None


def turn_weights(
    U_raw: Tensor,  # (2p, n)
    nu: Tensor,  # (p,)
    phi: Tensor,  # (p,)
    grids: TurnGrids,
) -> tuple[Tensor, Tensor, Tensor]:
    """U on its grid, in units of a state's step, and a and b of λ on theirs; gradients pass straight through."""
    return _QuantizeTurns.apply(U_raw, nu, phi, grids)


def quantized_readout(V_raw: Tensor, b_raw: Tensor, step: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """V and b_o on their grids, outside of autograd."""
    _expect(b_raw.shape[0] == V_raw.shape[0], V_raw, b_raw)
    V, b = torch.empty_like(V_raw), torch.empty_like(b_raw)
    _call("qornn_quantize_readout", *V_raw.shape, bits, *map(_address, (V_raw, b_raw, step, V, b)))
    return V, b


class _QuantizeReadout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return quantized_readout(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return *grads, None, None


def readout_weights(V_raw: Tensor, b_raw: Tensor, step: Tensor, *, bits: int) -> tuple[Tensor, Tensor]:
    """V on one grid and b_o on that of V's sums, where V reads whole numbers times `step`; gradients pass unchanged."""
    return _QuantizeReadout.apply(V_raw, b_raw, step, bits)


def move_steps(peak: Tensor, step: Tensor, top: int, low: float, within: tuple[float, float]) -> Tensor | None:
    """Move steps in place by one power of two where peak leaves low..1 of their range; old over new, if some moved."""
    _expect(peak.shape == step.shape, peak, step)
    factors = torch.empty_like(step)
    moved = _function("qornn_move_steps")
    return factors if moved(step.numel(), top, low, *within, *map(_address, (peak, step, factors))) else None


def see_peak_(
    peak: Tensor,  # (n,)
    step: Tensor,
    seen: Tensor,
    top: int,
    decay: float,
    within: tuple[float, float],
    *,
    in_steps: bool,
) -> None:
    """peak = max(seen, decay·peak) in place; where it was 0, also the smallest step that reaches it."""
    _expect(peak.shape == seen.shape == step.shape, peak, seen, step)
    _call("qornn_see_peak", peak.numel(), top, decay, *within, in_steps, *map(_address, (seen, step, peak)))


def round_inputs(x: Tensor, gain: float, step: float, top: int) -> Tensor:
    """step·clamp(R(x·gain), −top, top − 1); has no gradient."""
    y = torch.empty_like(x)
    _call("qornn_round_inputs", x.numel(), gain, step, top, _address(x), _address(y))
    return y


def _address(t: Tensor | None) -> int | None:
    return None if t is None else t.data_ptr()


_TYPES: dict[str, tuple[Any, ...]] = {
    "qornn_quantize_mix": (_pointer,) * 4,
    "qornn_quantize_turns": (_pointer,) * 4,
    "qornn_turn_gradients": (_pointer,) * 7,
    "qornn_quantize_readout": (_i64,) * 3 + (_pointer,) * 5,
    "qornn_move_steps": (_i64, _i64, *(ctypes.c_double,) * 3, *(_pointer,) * 3),
    "qornn_see_peak": (_i64, _i64, *(ctypes.c_double,) * 3, ctypes.c_int, *(_pointer,) * 3),
    "qornn_round_inputs": (_i64, ctypes.c_double, ctypes.c_double, _i64, _pointer, _pointer),
}


def _function(name: str) -> Any:
    function = getattr(library(), name)
    if function.argtypes is None:
        function.argtypes = _TYPES[name]
    return function


def _call(name: str, *arguments: Any) -> None:
    _function(name)(*arguments)


def _expect(fits: bool, *tensors: Tensor | None) -> None:
    """Refuse what would be read or written past its end."""
    if not fits:
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors if t is not None)
        raise SettingsError(f"the shapes of these weights do not belong together: {shapes}")
