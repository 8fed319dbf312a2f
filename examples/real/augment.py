"""More training data from what a sensor's mounting leaves open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from data import Data

DEGREES = 20.0  # deviation of the angle: a phone sits askew in a pocket
INT16 = np.iinfo(np.int16)


def with_turned_copies(data: Data, copies: int, seed: int, *, degrees: float = DEGREES) -> Data:
    """The training data, and so many copies of it, each sequence with its sensor axes turned at random.

    Channels are axes in threes: x, y, z of the accelerometer, then of the gyroscope, which turn together.
    """
    rng = np.random.default_rng(seed)
    x = [data.x_train, *(turned(data.x_train, rng, degrees=degrees) for _ in range(copies))]
    groups = None if data.groups is None else np.tile(data.groups, copies + 1)
    return replace(data, x_train=np.concatenate(x), y_train=np.tile(data.y_train, copies + 1), groups=groups)


def turned(x: np.ndarray, rng: np.random.Generator, *, degrees: float = DEGREES) -> np.ndarray:
    """Every sequence about its own axis, by an angle of 0 ± degrees; integers stay integers.  # (N, T, 3k)"""
    R = rotations(rng.normal(size=(len(x), 3)), np.deg2rad(degrees) * rng.normal(size=len(x)))
    axes = x.reshape(*x.shape[:2], -1, 3)
    found = np.einsum("nij,ntkj->ntki", R, axes.astype(np.float64)).reshape(x.shape)
    return np.rint(found).clip(INT16.min, INT16.max).astype(x.dtype) if x.dtype.kind == "i" else found.astype(x.dtype)


def rotations(axes: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Matrices that turn about these axes (N, 3) by these angles (N,), by Rodrigues' formula.  # (N, 3, 3)"""
    a, b, c = (axes / np.linalg.norm(axes, axis=1, keepdims=True)).T
    zero = np.zeros_like(a)
    K = np.array([[zero, -c, b], [c, zero, -a], [-b, a, zero]]).transpose(2, 0, 1)
    return np.eye(3) + np.sin(angles)[:, None, None] * K + (1 - np.cos(angles))[:, None, None] * (K @ K)
