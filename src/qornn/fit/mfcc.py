"""MLPerf Tiny's features from 16 kHz int16 sound in numpy: 49 frames of 10 MFCC per second, as int8.

What happens to a clip of one second:

- samples are divided by the largest one of the clip (the maximum, not the largest magnitude);
- frames of 30 ms every 20 ms, each under a Hann window, a Fourier transform of 512 points, its magnitudes;
- 40 triangular filters, evenly spaced on the mel scale from 20 to 4000 Hz; log(energy + 1e-6);
- the first 10 coefficients of their cosine transform, q = trunc(mfcc/0.5847029 + 83) clipped to int8.

The first step needs the whole clip: a stream does not know its maximum yet. A microphone needs a fixed gain instead
(divide by what loud speech reaches), or a running maximum that decays over seconds. Either shifts the first
coefficient by the logarithm of the gain, so train on features made in the same way: `mfcc(x, gain=...)`.
"""

from __future__ import annotations

import os
import wave
from functools import cache
from pathlib import Path

import numpy as np

from qornn.errors import DataError
from qornn.fit.dataset import UNREADABLE

RATE = 16_000  # samples per second, and per clip
WINDOW, STRIDE, FFT = 480, 320, 512
FRAMES = (RATE - WINDOW) // STRIDE + 1  # 49
FILTERS, LOWEST, HIGHEST = 40, 20.0, 4000.0  # Hz
COEFFICIENTS = 10
FLOOR = 1e-6
SCALE, ZERO = 0.5847029089927673, 83  # of the inputs of MLPerf Tiny's reference network
INT8 = (-128, 127)
UNKNOWN = 2**30  # samples: such a length in a header was written before the sound was there, to a pipe


def read_wav(path: str | Path) -> np.ndarray:
    """A wav file of 16-bit PCM, mono, 16 kHz.  # (samples,) int16"""
    try:
        with wave.open(str(path), mode="rb") as file:
            form = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            # A damaged header may promise gigabytes, which would be set aside at once.
            frames = file.getnframes()
            raw = file.readframes(min(frames, os.path.getsize(path)))
    except (*UNREADABLE, wave.Error) as error:
        why = str(error) or "it ends early"
        raise DataError(f"{path} cannot be read as a wav file: {why}; convert it to 16-bit PCM") from error
    if form != (1, 2, RATE):
        channels, width, rate = form
        raise DataError(
            f"{path} has {channels} channels of {8 * width} bits at {rate} Hz; convert it to one channel of 16 bits at "
            f"{RATE} Hz, or save samples that are not sound as .npy"
        )
    if len(raw) != 2 * frames and frames < UNKNOWN:
        raise DataError(
            f"{path} ends early: {len(raw) // 2} of the {frames} samples that its header tells; copy it anew"
        )
    return np.frombuffer(raw[: len(raw) // 2 * 2], "<i2").astype(np.int16)


def one_second(x: np.ndarray) -> np.ndarray:
    """Cut, or filled up with zeros at the end.  # (samples,) -> (16000,)"""
    return np.pad(x[:RATE], (0, max(RATE - len(x), 0)))


def mfcc(x: np.ndarray, *, gain: float | None = None) -> np.ndarray:
    """Frames of 10 coefficients; int16 samples are divided by `gain`, or by their maximum.  # (samples,) -> (T, 10)

    Without a gain x is taken as one clip and made a second long.
    """
    if gain is None:
        x = one_second(x)
        gain = float(x.max())
    scaled = x / np.float32(gain if gain > 0 else 1.0)  # silence stays zero; values may pass -1
    count = (len(scaled) - WINDOW) // STRIDE + 1
    frames = scaled[STRIDE * np.arange(max(count, 0))[:, None] + np.arange(WINDOW)]  # (T, 480)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    spectrum = np.abs(np.fft.rfft(frames * hann, FFT))  # (T, 257)
    return np.log(spectrum @ mel_filters() + FLOOR) @ cosines()


def quantized(coefficients: np.ndarray) -> np.ndarray:
    """As a network reads them.  # int8"""
    return np.trunc(coefficients / SCALE + ZERO).clip(*INT8).astype(np.int8)


@cache
def mel_filters() -> np.ndarray:
    """Weights of the magnitudes in each filter, triangles on the mel scale.  # (257, 40)"""
    edges = np.linspace(_mel(LOWEST), _mel(HIGHEST), FILTERS + 2)
    at = _mel(np.linspace(0.0, RATE / 2, FFT // 2 + 1))[:, None]
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    return np.maximum(0.0, np.minimum((at - lower) / (centre - lower), (upper - at) / (upper - centre)))


@cache
def cosines() -> np.ndarray:
    """The first columns of the cosine transform (DCT-II, orthonormal but for the first, which is √2 larger).

    (40, 10)
    """
    n = np.arange(FILTERS)[:, None] + 0.5
    return np.sqrt(2 / FILTERS) * np.cos(np.pi / FILTERS * n * np.arange(COEFFICIENTS))


def _mel(hertz: float | np.ndarray) -> np.ndarray:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)
