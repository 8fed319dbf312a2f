"""Features in numpy are MLPerf Tiny's: against the stored ones of a thousand clips, and by what they must do."""

import wave
from collections import Counter

import numpy as np
import pytest

from qornn.fit import mfcc as features

RAW = "kws/gsc_v1_commands_raw16k_test1000.npz"
STORED = "kws/gsc_v1_mfcc10x49.npz"


def test_features_of_raw_clips_are_those_stored(real_data):
    """On at least 99.5 % of the values, the others within 1: float32 there, float64 here, and then cut to integers.

    The raw file fills short clips with zeros in front, and the features were made with zeros at the end. Of a clip that
    itself begins with zeros nobody knows how many were filled in: the usual numbers are tried, and a few stay open.
    """
    root = real_data(RAW)
    with np.load(root / RAW) as raw, np.load(real_data(STORED) / STORED) as mfcc:
        x, y, speaker = (raw[f"{name}_test"] for name in ("x", "y", "speaker"))
        assert raw["label_names"].tolist() == mfcc["label_names"][:10].tolist()
        stored, words, speakers = (mfcc[f"{name}_test"] for name in ("x", "y", "speaker"))
    zeros = (x != 0).argmax(1)
    usual = [n for n, count in Counter(zeros.tolist()).items() if count > 1]  # recorders cut at few lengths
    equal, unknown = [], 0
    for i in range(len(x)):
        own = stored[(speakers == speaker[i]) & (words == y[i])].astype(int)  # (utterances, 49, 10)
        filled = {0, int(zeros[i]), *(n for n in usual if n < zeros[i])}
        found = [features.quantized(features.mfcc(np.roll(x[i], -n))) for n in filled]
        apart = min((np.abs(own - q).reshape(len(own), -1) for q in found), key=lambda d: (d > 0).mean(1).min())
        apart = apart[(apart > 0).mean(1).argmin()]
        equal.append((apart == 0).mean())
        unknown += int(apart.max() > 1)
    assert np.mean(equal) >= 0.995
    assert unknown <= 5


def test_a_tone_is_loudest_in_the_filter_around_it():
    """Filters follow the mel scale; what is above 4 kHz is not heard."""
    filters = features.mel_filters()
    assert filters.shape == (257, 40)
    peaks = filters.argmax(0) * 16000 / 512
    assert (np.diff(peaks) >= 0).all()
    assert peaks[0] == 62.5  # the second line: its centre is at 64 Hz
    assert 3700 < peaks[-1] < 4000
    assert not filters[0].any()
    assert not filters[129:].any()  # 4000 Hz is line 128


def test_a_clip_is_the_same_at_any_volume():
    """It is divided by its maximum; a fixed gain shifts the first coefficient alone."""
    x = np.random.default_rng(0).integers(-1000, 1000, 16000).astype(np.int16)
    one, loud = (features.mfcc(gain * x) for gain in (1, 8))
    np.testing.assert_allclose(one, loud, atol=1e-6)  # float32 division
    near, far = (features.mfcc(gain * x, gain=32768.0) for gain in (1, 8))
    shift = np.log(8) * np.sqrt(2 / 40) * 40
    np.testing.assert_allclose((far - near)[:, 0], shift, atol=0.01)  # the 1e-6 under the logarithm
    np.testing.assert_allclose((far - near)[:, 1:], 0, atol=0.01)


def test_features_are_49_frames_of_int8_whatever_the_clip():
    f = features
    for x in (np.zeros(16000, np.int16), np.ones(5000, np.int16), np.full(20000, -5, np.int16)):
        q = f.quantized(f.mfcc(x))
        assert q.shape == (f.FRAMES, 10) == (49, 10)
        assert q.dtype == np.int8
    assert f.quantized(f.mfcc(np.zeros(16000, np.int16)))[:, 0].tolist() == [-128] * 49


def test_numbers_are_cut_towards_zero_after_the_zero_point():
    f = features
    scaled = f.SCALE * (np.array([0.9, -0.9, -83.5, -84.2, 1000.0]))
    assert f.quantized(scaled).tolist() == [83, 82, 0, -1, 127]


def write(path, x, channels=1, rate=16000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(x.astype("<i2").tobytes())


def test_a_wav_file_is_read_as_it_was_written(tmp_path):
    x = np.random.default_rng(0).integers(-32768, 32768, 12345).astype(np.int16)
    write(tmp_path / "a.wav", x)
    np.testing.assert_array_equal(features.read_wav(tmp_path / "a.wav"), x)


def test_other_files_are_refused_with_what_they_are(tmp_path):
    write(tmp_path / "stereo.wav", np.zeros(100), channels=2)
    write(tmp_path / "slow.wav", np.zeros(100), rate=8000)
    (tmp_path / "text.wav").write_text("no sound")
    for name, told in {"stereo": "2 channels", "slow": "8000 Hz", "text": "cannot be read", "none": "No such"}.items():
        with pytest.raises(Exception, match=told):
            features.read_wav(tmp_path / f"{name}.wav")
