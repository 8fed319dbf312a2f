"""Waves of two classes, and a fit to them that takes seconds."""

import numpy as np

from qornn.fit.settings import Fit


def waves(n, seed, channels=1):
    random = np.random.default_rng(seed)
    f = random.uniform(0.5, 2.5, n)
    x = np.sin(2 * np.pi * f[:, None] * np.arange(16) / 16)[:, :, None] * np.arange(1, channels + 1)
    return x.astype(np.float32), f


def asked(source, out, **changes):
    settings = {"map": "bjorck", "n_hidden": 12, "max_epochs": 30, "lr": 2e-2} | changes.pop("estimator", {})
    return Fit(**{"data": source, "out": out, "targets": ("host",), "estimator": settings, "quiet": True} | changes)
