"""Torch's tensors as arrays."""

from __future__ import annotations

from typing import Any

import torch

from qornn.errors import SettingsError


def from_torch(value: Any, name: str) -> Any:
    """Tensors as arrays, also those in a list, whatever their device, kind and history; anything else as it is."""
    if isinstance(value, list | tuple) and any(isinstance(part, torch.Tensor) for part in value):
        return [from_torch(part, f"{name}[{i}]") for i, part in enumerate(value)]
    if not isinstance(value, torch.Tensor):
        return value
    try:
        value = value.detach().cpu().resolve_conj().resolve_neg()
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()  # which numpy does not have
    except (RuntimeError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise SettingsError(f"{name} is a tensor that cannot be read as numbers: {reason}") from error
