"""Sines to tell apart, and a classifier small enough to train on them in a blink."""

import numpy as np

from qornn import QORNNClassifier


def waves(n=60, T=20, *, lengths=False, channels=1, seed=0):
    """Slow and fast sines, and their frequency."""
    random = np.random.default_rng(seed)
    f = random.uniform(0.5, 2.5, n)
    steps = random.integers(T // 2, T + 1, n) if lengths else np.full(n, T)
    X = [np.sin(2 * np.pi * f[i] * np.arange(steps[i]) / T)[:, None] * np.arange(1, channels + 1) for i in range(n)]
    return (X if lengths else np.stack(X)), f


def labels(f):
    return np.where(f < 1.5, "slow", "fast")


def small(**settings):
    return QORNNClassifier(
        **{"map": "bjorck", "n_hidden": 16, "max_epochs": 40, "lr": 1e-2, "random_state": 0, **settings}
    )
