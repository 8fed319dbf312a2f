"""Keyword clips: no speaker and no noise recording is in two splits, and labels mean the same in every file."""

import itertools

import numpy as np
import pytest

FILE = "kws/gsc_v1_mfcc10x49.npz"


@pytest.fixture
def made(keywords, tmp_path):
    """A data folder in the format of the real one: 30 words, of each 6 clips per split."""
    rng = np.random.default_rng(0)
    words = [*keywords.data.COMMANDS, *(f"word{i}" for i in range(20))]
    arrays = {"label_names": np.array(words)}
    for i, split in enumerate(keywords.data.SPLITS):
        y = np.repeat(np.arange(30), 6).astype(np.uint8)
        arrays[f"x_{split}"] = rng.integers(-128, 128, (180, 49, 10)).astype(np.int8)
        arrays[f"x_{split}"][:, 0, 0] = y  # tells which word it is
        arrays[f"y_{split}"], arrays[f"speaker_{split}"] = y, (1000 * i + np.arange(180)).astype(np.uint32)
        for level, name in enumerate(keywords.data.NOISES[split]):
            arrays[f"noise1s_{name}"] = rng.integers(20 * level, 20 * level + 5, (4, 49, 10)).astype(np.int8)
    (tmp_path / "kws").mkdir()
    np.savez(tmp_path / FILE, **arrays)
    names = ["Down", "Go", "Left", "No", "Off", "On", "Right", "Stop", "Up", "Yes", "Silence", "Unknown"]
    y = np.arange(12).astype(np.uint8)
    files = np.array([f"tst_{i:06}.bin" for i in range(12)])
    x = np.zeros((12, 49, 10), np.int8)
    np.savez(tmp_path / "kws" / "mlperf_tiny_kws01.npz", x=x, y=y, label_names=np.array(names), files=files)
    return tmp_path


def test_commands_keep_their_words_and_the_others_are_unknown(keywords, made):
    found = keywords.data.keywords12(made)
    assert found.labels == ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "unknown", "silence")
    for clips in (found.train, found.val, found.test):
        words, spoken = clips.x[:, 0, 0], clips.y < keywords.data.SILENCE
        assert (words[clips.y < 10] == clips.y[clips.y < 10]).all()
        assert (words[clips.y == 10] >= 10).all()
        assert np.bincount(clips.y[spoken]).tolist() == [6] * 11
        assert len(clips.x) == len(clips.y) == len(clips.source)


def test_training_silence_is_varied_and_test_silence_is_as_recorded(keywords, made):
    found = keywords.data.keywords12(made)
    kinds = keywords.data.NOISES
    assert (found.test.y == keywords.data.SILENCE).sum() == 4 * len(kinds["test"])
    np.testing.assert_array_equal(found.test.x[found.test.y == 11], keywords.data.noise(made, "test"))
    silence = found.train.x[found.train.y == keywords.data.SILENCE]
    assert len(silence) == 6 // len(kinds["train"]) * len(kinds["train"])
    recorded = keywords.data.noise(made, "train").reshape(-1, 10).astype(int)
    starts, shifted = range(len(recorded) - 48), 0
    for clip in silence.astype(int):  # a stretch of a recording, and one constant per coefficient
        apart = [clip - recorded[i : i + 49] for i in starts]
        found = [d for d in apart if np.ptp(d, axis=0).max() <= 1]
        assert found
        shifted += int(np.abs(found[0]).max() > 1)
    assert shifted


def test_unknown_words_and_silence_are_drawn_the_same_every_time(keywords, made):
    first, second = (keywords.data.keywords12(made).train for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)


def test_mlperfs_labels_are_ours(keywords, made):
    clips = keywords.data.mlperf(made)
    names = [keywords.data.LABELS[y] for y in clips.y]
    assert names == ["down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "silence", "unknown"]


def test_thirty_words_have_no_silence(keywords, made):
    found = keywords.data.words30(made)
    assert len(found.labels) == 30
    assert (found.test.x[:, 0, 0] == found.test.y).all()


def test_shifted_copies_are_the_clips_a_little_earlier_or_later(keywords):
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (50, 49, 10)).astype(np.int8)
    clips = keywords.data.Clips(x=x, y=np.arange(50), source=np.arange(50).astype(str))
    found = keywords.data.with_shifted_copies(clips, 2, 0)
    np.testing.assert_array_equal(found.x[:50], x)
    assert found.y.tolist() == 3 * [*range(50)]
    seen = set()
    for copy, y in zip(found.x[50:], found.y[50:], strict=True):
        padded = np.pad(x[y], ((5, 5), (0, 0)), mode="edge")
        seen |= {i - 5 for i in range(11) if (padded[i : i + 49] == copy).all()}
    assert seen == {*range(-5, 6)}
    assert keywords.data.with_shifted_copies(clips, 0, 0).x.shape == x.shape


def test_a_missing_file_says_where_clips_come_from(keywords, tmp_path):
    with pytest.raises(Exception, match=r"gsc_v1_mfcc10x49\.npz; docs/keywords\.md .*speech_commands_v0\.01"):
        keywords.data.keywords12(tmp_path)


def shared_sources(data):
    """Speakers and noise recordings that two splits have in common."""
    sources = [{*clips.source.tolist()} for clips in (data.train, data.val, data.test)]
    assert all(sources)
    return set().union(*(a & b for a, b in itertools.combinations(sources, 2)))


@pytest.mark.parametrize("task", ["keywords12", "words30"])
def test_no_speaker_and_no_noise_recording_is_in_two_splits(keywords, made, task):
    assert not shared_sources(getattr(keywords.data, task)(made))
    assert sum(map(len, keywords.data.NOISES.values())) == 6


@pytest.mark.parametrize("task", ["keywords12", "words30"])
def test_the_real_splits_share_no_speaker_and_no_noise_recording(keywords, real_data, task):
    assert not shared_sources(getattr(keywords.data, task)(real_data(FILE)))


def test_the_real_clips_are_counted_as_documented(keywords, real_data):
    found = keywords.data.keywords12(real_data(FILE))
    commands = np.bincount(found.test.y)[:10].sum()
    assert commands == 2567  # as TensorFlow's own split of Speech Commands v0.01
    assert (found.test.y == 10).sum() == round(commands / 10)
