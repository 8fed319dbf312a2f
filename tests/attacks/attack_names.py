"""Folders, files and classes of any name that the system takes, on an output of any encoding: no traceback."""

from __future__ import annotations

import io
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout

import numpy as np

from qornn.cli import main

SIGNS = b"$\\_^{}%*?[~'\"`&<|#; \n\t-.=,\xe9\xff"  # the last two are not UTF-8
WORDS = ["frac", "a", "..", "\x1b[31m", "ü", "σ", "‖", "語", "😀", "\u202e", "\u0301", "\ufeff", "\udced\udca0\udc80"]
PARTS = [bytes([sign]) for sign in SIGNS] + [word.encode("utf-8", "surrogateescape") for word in WORDS]
LONGEST = 240  # bytes, with room for an ending; a few are longer than any system takes


def random_name(rng):
    """Bytes without a slash or a zero, as Python holds them."""
    name = b"".join(PARTS[i] for i in rng.integers(len(PARTS), size=rng.integers(1, 12)))
    if rng.random() < 0.1:
        name = (name * LONGEST)[: rng.choice([LONGEST, 300])]
    return os.fsdecode(b"x" + name if name.strip(b".") == b"" else name)


def call(*words, encoding):
    """The exit code of a command; anything but a result or an error in words raises."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2)]
    before, sys.argv = sys.argv, ["qornn", *map(str, words)]
    code = 0
    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            main()
    except SystemExit as stopped:
        code = stopped.code or 0
    finally:
        sys.argv = before
    streams[1].flush()
    said = streams[1].buffer.getvalue()
    assert not code or b"error: " in said.lower(), f"{words}: exit {code}, {said!r}"
    return code


def attack(rng, folder):
    """One name through a chain of commands."""
    place = folder / "names"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    name, encoding = random_name(rng), str(rng.choice(["utf-8", "ascii", "latin-1"]))
    (place / "name").write_bytes(os.fsencode(name))  # to find it by, should it fail
    chain = (_of_a_run, _of_a_fit)[rng.integers(2)]
    codes = [call(*words, encoding=encoding) for words in chain(place, name, rng)]
    return "worked" if not any(codes) else "refused"


def _of_a_run(place, name, rng):
    run = place / name
    yield "train", "digits", "--steps", 1, "--set", "model.n_h=8", "--bits", 4, "--out", run
    yield "resume", run
    yield "lower", run, "-o", place / f"{name}.qornn"
    yield "size", place / f"{name}.qornn"
    kind = rng.choice(["c", "onnx"])
    yield "export", place / f"{name}.qornn", "--to", kind, "-o", place / f"{name}.{kind}", "--name", "net"
    if kind == "c":
        yield "verify", place / f"{name}.c"


def _of_a_fit(place, name, rng):
    data = place / "data"
    try:
        for label in (name, "other"):
            (data / label).mkdir(parents=True, exist_ok=True)
            for i in range(6):
                np.save(data / label / f"{i}.npy", rng.normal(size=8))
    except OSError:  # no system takes it
        name = "plain"
    yield "fit", data, "-o", place / f"{name}.fit", "--epochs", 1, "--n-hidden", 4, "--target", "host", "--quiet"
