"""The weights of a trained network as integers: copied from the quantizer, never recomputed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qornn.errors import SettingsError
from qornn.integer.matrices import MATRICES, Dense, Matrix, RecurrentMatrix
from qornn.integer.mean import most_steps
from qornn.integer.readout import FloatReadout, IntReadout, Readout
from qornn.integer.rounding import round_half_away
from qornn.lowering.source import Network
from qornn.model import OrthogonalRecurrence
from qornn.quant import Quantizer


def matrices(layer: OrthogonalRecurrence) -> tuple[RecurrentMatrix, Matrix]:
    """The trained integers, carried and never recomputed."""
    if layer.q_U is None or (layer.q_W is None and not layer.map.structured):
        raise SettingsError("this network has full-precision weights; train it with bits=2..8, or quantize it first")
    with torch.no_grad():
        W = _recurrent(layer)
        U, alpha_U, _ = _integers(layer.q_U, layer.U_raw)
    if not alpha_U.any():
        raise SettingsError("U is all zeros; train the network first")
    if W.driven is not None:
        U, alpha_U = _scattered(U, W), _scattered(alpha_U, W) if alpha_U.ndim else alpha_U
    return W, Matrix(integers=U, bits=layer.q_U.bits, alpha=alpha_U)


def refuse_non_finite(model: Network) -> None:
    """Refuse weights that are NaN or infinite."""
    for name, tensor in model.named_parameters():
        if not bool(tensor.isfinite().all()):
            raise SettingsError(f"{name} holds NaN or infinity; this network cannot be lowered")


def _recurrent(layer: OrthogonalRecurrence) -> RecurrentMatrix:
    if (made := layer.map.made_of(layer.W_raw)) is not None:
        kind, fields = made
        return MATRICES[kind](**fields)
    assert layer.q_W is not None
    W, alpha_W, identity = _integers(layer.q_W, layer.W())
    if not alpha_W.any():
        raise SettingsError("W is all zeros; train the network first")
    return Dense(integers=W, bits=layer.q_W.bits, alpha=alpha_W, identity=identity)


def _scattered(rows: np.ndarray, W: RecurrentMatrix) -> np.ndarray:
    """The rows at the units that inputs reach, zeros at the others."""
    full = np.zeros((W.n_h, *rows.shape[1:]), rows.dtype)
    full[W.driven] = rows
    return full


def _integers(quantizer: Quantizer, weights: Tensor) -> tuple[np.ndarray, np.ndarray, bool]:
    """Integers, scale, and whether the identity is added; another meaning of the integers is refused."""
    integers, alpha = quantizer.to_int(weights)
    step = integers * (alpha / 2 ** (quantizer.bits - 1))
    used = quantizer.dequantize(integers, alpha)
    identity = not torch.equal(step, used)
    if identity and not (step.shape[0] == step.shape[1] and torch.equal(step + torch.eye(len(step)).to(step), used)):
        raise SettingsError(
            f"{type(quantizer).__name__} has no integer form: its weights are not alpha·integers/2^(k−1)"
        )
    rows = alpha.reshape(-1) if alpha.numel() > 1 or alpha.ndim == 2 else alpha.reshape(())
    return integers.cpu().numpy().astype(np.int64), rows.cpu().numpy().astype(np.float64), identity


def readout_of(model: Network, kind: str | None, unit: float, top: int) -> Readout:
    """V and b_o, as floats, as the integers they were trained as, or on 8 bits; h = unit·h_i, |h_i| ≤ top."""
    if model.mix:
        unit /= math.sqrt(model.V.shape[1])  # S h_i in place of S h/√n
    V, b_o = (p.detach().cpu().double().numpy() for p in (model.V_q(), model.b_o))
    seen: dict[str, Any] = {"relu": model.readout_activation == "relu", "mix": model.mix, "steps": model.readout}
    if kind == "float" or (kind is None and model.q_V is None):
        return FloatReadout(V=V, b_o=b_o, scale=unit, **seen)
    if kind is None and model.q_V is not None:
        bits, (integers, alpha, _) = model.q_V.bits, _integers(model.q_V, model.V)
        if alpha.ndim:
            raise SettingsError(
                "V has a scale for each row, and integer outputs must share one to be compared; "
                'quantize V with scale="tensor", or lower with readout="float" or "int8"'
            )
        step = float(alpha) / 2 ** (bits - 1)
    else:
        bits, step = 8, np.abs(V).max() / 128
        integers = round_half_away(V / step).clip(-128, 127) if step else V
    if step == 0:
        raise SettingsError("V is all zeros; train the network first")
    bias = b_o / (unit * step)
    if np.abs(bias).max() >= 2**31:
        raise SettingsError(
            f"an output's bias reaches {np.abs(bias).max():.3g} units, too large for 32 bits; use readout='float'"
        )
    bias = round_half_away(bias)
    if model.readout == "mean":
        seen["steps_max"] = most_steps(integers, bias, top)
    return IntReadout(V=integers, bits=bits, bias=bias, scale=unit * step, **seen)
