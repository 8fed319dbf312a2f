"""Pages of programs of every kind, which the tests of the web export share."""

from functools import cache

import numpy as np
import pytest
from c_programs import make
from chromium import CHROMIUM, NODE

import qornn
from qornn._io.zig import zig

needs_zig = pytest.mark.skipif(zig() is None, reason="ziglang is not installed")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@cache
def waves():
    """Sequences of three channels, (24, 40, 3); those of even number are sines, the others squares."""
    rng = np.random.default_rng(0)
    phase = np.arange(40)[:, None] / 9 + rng.uniform(0, 1, (24, 1, 3))
    x = np.sin(2 * np.pi * phase) * [1, 2, 30]
    x[1::2] = np.sign(x[1::2]) * [1, 2, 30]
    return x + rng.normal(0, 0.1, x.shape)


@cache
def fitted(kind="classifier", **settings):
    """A stack of rotations, trained for a moment."""
    made = {"classifier": qornn.QORNNClassifier, "regressor": qornn.QORNNRegressor}[kind]
    y = np.where(np.arange(24) % 2, "square", "sine") if kind == "classifier" else waves()[:, :, 0].max(1) * 10
    estimator = made(width=6, max_epochs=8, window=2, warp=0.0, random_state=0, **settings)
    return estimator.fit(waves(), y)


PROGRAMS = {
    "digits": lambda: qornn.load("zoo:digits-k4"),
    "mnist": lambda: qornn.load("zoo:smnist-hadamard"),
    "mean of a stack": lambda: qornn.load("zoo:forda-stack"),
    "codes": lambda: qornn.load("zoo:copy1000-hadamard"),
    "wide integers": lambda: make("multiplier", "modrelu", k=8, n_h=40, k_a=16, integer=True),
    "floats in double": lambda: make(k=3, n_h=11, n_i=6, normalised=True, window=2),
    "three channels": lambda: fitted().to_program(),
    "samples may be missing": lambda: fitted(missing="hold").to_program(),
    "a value": lambda: fitted("regressor").to_program(),
}


def law(program, floats):
    """Outputs after the last step, by numpy.  # floats (T, channels)"""
    used = len(floats) // program.input.window
    raw = program.input.from_floats(np.asarray(floats, np.float32)[: used * program.input.window].reshape(1, used, -1))
    return qornn.simulate(program, program.input.clip(raw))[1].reshape(-1, program.n_o)[-1]
