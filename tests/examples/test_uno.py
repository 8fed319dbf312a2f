"""Human activity at the protocol of a published network for the Arduino Uno."""

import numpy as np
import pytest
import uno
from data import har_windows

from qornn import QORNNClassifier


@pytest.fixture
def hapt(tmp_path):
    """Two recordings: of person 3, parts of 300, 127 and 128 samples and a transition; of person 25, one of 200."""
    label = np.concatenate([np.full(300, 1), np.full(127, 2), np.full(128, 6), np.full(150, 7), np.full(200, 4)])
    x = np.arange(len(label))[:, None] + np.arange(6) * 1000
    (tmp_path / "har").mkdir()
    np.savez(
        tmp_path / "har" / "hapt.npz",
        x=x.astype(np.int16),
        label=label.astype(np.uint8),
        rec_start=np.array([0, 705, 905]),
        rec_user=np.array([3, 25], np.uint8),
        label_names=np.array(["NONE", "WALKING", "WALKING_UPSTAIRS", "A", "B", "C", "LAYING"] + ["T"] * 6),
    )
    return tmp_path


def test_windows_overlap_by_half_and_stay_within_one_activity(hapt):
    x, y, users, labels = har_windows(hapt)
    assert x[:, 0, 0].tolist() == [0, 64, 128, 427, 705, 769]
    assert y.tolist() == [1, 1, 1, 6, 4, 4]
    assert users.tolist() == [3, 3, 3, 3, 25, 25]
    assert (labels[1], len(labels)) == ("walking upstairs", 6)


def test_the_protocol_is_three_axes_and_people_above_21_are_tested(hapt):
    data = uno.by_protocol(hapt)
    assert data.x_train.shape == (4, 128, 3)
    assert data.x_test.shape == (2, 128, 3)
    assert data.groups.tolist() == [3] * 4


def test_the_real_data_have_as_many_windows_as_were_published(real_data):
    data = uno.by_protocol(real_data("har/hapt.npz"))
    assert (len(data.y_train), len(data.y_test)) == (7012, 3399)


def test_scores_and_latency_are_of_the_integers(waves):
    settings = {"width": 4, "pairs": 4, "window": 2, "max_epochs": 3, "turned": 1, "validation_fraction": 0.0}
    found, clf = uno.run(waves, settings, 0)
    answers = clf.predict(waves.x_test, integer=True)
    assert found["accuracy"] == pytest.approx(100 * np.mean(answers == waves.y_test), abs=1e-3)
    assert 0 < found["f1"] <= 1
    assert isinstance(clf, QORNNClassifier)
    seen = uno.warm_up(clf, waves)
    assert seen["sequences"] == uno.STREAMED
    assert seen["median"] % 2 == 0
