"""Folders of .wav files."""

import io
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import DataError, QornnError
from qornn.fit.mfcc import mfcc, quantized
from qornn.fit.readers import read


def sound(n=16000, seed=0):
    return np.random.default_rng(seed).integers(-9000, 9000, n).astype("<i2")


def encoded(x, channels=1, rate=16000):
    raw = io.BytesIO()
    with wave.open(raw, "wb") as file:
        file.setparams((channels, x.dtype.itemsize, rate, 0, "NONE", ""))
        file.writeframes(x.tobytes())
    return raw.getvalue()


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_class_per_folder_and_the_features_of_the_keywords(tmp_path):
    files = {"yes/a.wav": encoded(sound()), "yes/b.WAV": encoded(sound(seed=1)), "no/a.wav": encoded(sound(seed=2))}
    data = read(write(tmp_path, files | {"notes/readme.txt": b"no class"}))
    assert data.train.y.tolist() == ["no", "yes", "yes"]
    assert data.train.x.x.dtype == np.int8
    np.testing.assert_array_equal(data.train.x.x[1], quantized(mfcc(sound())))
    assert len(data.notes) == 1


def test_short_clips_are_filled_and_long_ones_are_read_to_their_end(tmp_path):
    files = {"a/long.wav": encoded(sound(32000)), "b/short.wav": encoded(sound(8000)), "b/one.wav": encoded(sound())}
    data = read(write(tmp_path, files))
    assert [len(part) for part in data.train.for_estimator()] == [99, 49, 49]
    assert "2 clips are not one second long" in data.notes[1]


def test_train_and_test_folders(tmp_path):
    clip = encoded(sound())
    data = read(write(tmp_path, {"train/a/1.wav": clip, "train/b/1.wav": clip, "test/b/1.wav": clip}))
    assert data.train.y.tolist() == ["a", "b"]
    assert data.test.y.tolist() == ["b"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a/p.wav": encoded(sound(), channels=2)}, r"p\.wav has 2 channels of 16 bits at 16000 Hz; convert it"),
        ({"a/p.wav": encoded(sound(), rate=8000)}, r"p\.wav has 1 channels of 16 bits at 8000 Hz"),
        ({"a/p.wav": encoded(sound().astype(np.uint8))}, r"p\.wav has 1 channels of 8 bits"),
        ({"a/p.wav": b"no sound"}, r"p\.wav cannot be read as a wav file"),
        ({"a/p.wav": b""}, r"p\.wav cannot be read as a wav file: it ends early; convert it to 16-bit PCM"),
        ({"a/p.wav": encoded(sound())[:5001]}, r"p\.wav ends early: 2478 of the 16000 samples"),
        ({"a/p.wav": encoded(sound(100))}, r"p\.wav holds 100 samples, less than a frame of 480"),
        ({"a/p.wav": encoded(sound()), "b/p.npy": b""}, r"both \.npy and \.wav files"),
        ({"a/p.wav": encoded(sound()), "train/a/p.wav": encoded(sound())}, "keep one of the layouts"),
    ],
)
def test_bad_folders_are_refused_with_the_file(files, words, tmp_path):
    with pytest.raises(DataError, match=words):
        read(write(tmp_path, files))


def test_an_empty_folder_is_told(tmp_path):
    write(tmp_path, {"a/p.wav": encoded(sound())})
    (tmp_path / "b").mkdir()
    data = read(tmp_path)
    assert data.train.y.tolist() == ["a"]
    assert "the folder 'b' is empty and is no class" in data.notes


def test_a_link_does_not_leave_the_folder(tmp_path):
    write(tmp_path, {"secret.wav": encoded(sound()), "data/a/p.wav": encoded(sound())})
    (tmp_path / "data" / "a" / "q.wav").symlink_to(tmp_path / "secret.wav")
    with pytest.raises(DataError, match=r"q\.wav is a link to a file outside"):
        read(tmp_path / "data")


def test_a_header_that_promises_gigabytes_is_read_to_the_end_of_the_file(tmp_path):
    whole = bytearray(encoded(sound()))
    whole[40:44] = (2**32 - 2).to_bytes(4, "little")
    data = read(write(tmp_path, {"a/p.wav": bytes(whole)}))
    np.testing.assert_array_equal(data.train.x.x[0], quantized(mfcc(sound())))


CLIP = encoded(sound(1000))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=4), st.integers(1, len(CLIP)))
def test_a_damaged_file_is_our_error_or_still_sound(tmp_path_factory, changes, length):
    damaged = bytearray(CLIP)
    for at, byte in changes:
        damaged[at] = byte
    path = write(tmp_path_factory.mktemp("wav"), {"a/p.wav": bytes(damaged[:length])})
    try:
        data = read(path)
    except QornnError:
        return
    assert data.train.x.x.shape[2] == 10
