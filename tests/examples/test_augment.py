"""Copies with turned sensor axes keep what a turned sensor would keep."""

import numpy as np
from augment import rotations, turned, with_turned_copies


def test_turning_keeps_lengths_and_angles_between_sensors():
    x = np.random.default_rng(0).normal(size=(5, 7, 6))
    y = turned(x, np.random.default_rng(1))
    assert not np.allclose(x, y, atol=0.1)
    for a, b in ((slice(0, 3), slice(0, 3)), (slice(3, 6), slice(3, 6)), (slice(0, 3), slice(3, 6))):
        before, after = ((v[..., a] * v[..., b]).sum(-1) for v in (x, y))
        assert np.allclose(before, after, atol=1e-9)  # round-off of three products


def test_a_larger_deviation_turns_further():
    x = np.random.default_rng(0).normal(size=(200, 1, 3))
    near, far = (turned(x, np.random.default_rng(1), degrees=degrees) for degrees in (5.0, 30.0))
    assert np.abs(far - x).mean() > 3 * np.abs(near - x).mean()


def test_rotations_are_orthogonal_and_turn_by_the_angle():
    angles = np.array([0.0, 0.3, -2.0])
    R = rotations(np.array([[1.0, 2, 3], [0, 0, 1], [-1, 0, 5]]), angles)
    assert np.allclose(R @ R.transpose(0, 2, 1), np.eye(3))
    assert np.allclose(np.trace(R, axis1=1, axis2=2), 1 + 2 * np.cos(angles))
    assert np.allclose(np.linalg.det(R), 1)


def test_copies_keep_labels_and_raw_integers(waves):
    more = with_turned_copies(waves, 2, seed=0)
    n = len(waves.y_train)
    assert (more.x_train[:n] == waves.x_train).all()
    assert more.x_train.dtype == np.int16
    assert more.y_train.tolist() == 3 * waves.y_train.tolist()
    assert not (more.x_train[n : 2 * n] == more.x_train[2 * n :]).all()
    assert with_turned_copies(waves, 0, seed=0).x_train.tolist() == waves.x_train.tolist()
