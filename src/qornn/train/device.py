"""Where a training runs."""

from __future__ import annotations

import os

import torch

from qornn.errors import SettingsError, unknown

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str | torch.device) -> torch.device:
    """The device of that name; "auto" takes CUDA, then MPS, then the CPU."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    kind, _, number = str(name).partition(":")
    known = isinstance(name, str | torch.device) and kind in DEVICES
    if not known or not (number.isdecimal() or not number):
        raise unknown("device", name, DEVICES)
    if kind == "auto":
        kind = next(device for device in ("cuda", "mps", "cpu") if there[device])
    if not there[kind]:
        raise SettingsError(
            f"device {str(name)!r} is not available here; choose {', '.join(d for d in there if there[d])}"
        )
    if kind == "cuda" and not number:
        number = os.environ.get("LOCAL_RANK", "0")  # one card for each process of torchrun
    return torch.device(f"{kind}:{number}" if number else kind)
