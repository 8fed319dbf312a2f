"""Keywords in a stream without an end: exported C with a smoother in C, false alarms per hour and misses.

    python examples/keywords/stream.py --data-dir DATA --program OUT/small.qornn -o C [--record]

Joins all clips of a split in random order, feeds their frames to the network's C, compiled here with stream_main.c and
smoother.c, and counts. The smoother's settings are chosen on the validation split; --record takes the test split.
`train.py --keep OUT` writes the program.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from data import COMMANDS, Clips, noise, words30

import qornn
from qornn._io.files import to_json
from qornn.errors import QornnError, SettingsError
from qornn.integer.program import IntegerProgram
from qornn.verify.build import host_compiler
from qornn.verify.folder import find
from train import recorded, renew

NAME, CHANNELS, FRAMES, EVERY = "keywords", 10, 49, 7  # as stream_main.c has them
SECONDS = 0.02  # per frame
LATE = 35  # frames after a word's clip in which an alarm still counts as that word's
# (answers that are kept, how many must agree, answers of quiet after an alarm)
SETTINGS = [(3, 2, 3), (4, 2, 3), (4, 3, 3), (5, 3, 3), (5, 4, 3), (6, 4, 3), (6, 5, 3)]
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror")
ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "free"}
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True, type=Path, help="Holds kws/gsc_v1_mfcc10x49.npz.")
    parser.add_argument("--program", required=True, type=Path, help="A .qornn file, as train.py --keep writes it.")
    parser.add_argument("-o", "--out", required=True, type=Path, help="The folder for the C.")
    parser.add_argument("--record", action="store_true", help="Measure on the test split too, and record.")
    options = parser.parse_args()
    try:
        program = qornn.load(options.program)
        assert isinstance(program, IntegerProgram)
        executable = build(program, options.out)
        known = joined(options.data_dir, "val")
        answers = by_program(program, known)
        tried = [streamed(executable, known, answers, smoother) for smoother in SETTINGS]
        best = min(tried, key=lambda found: found["misses"] + found["false_alarms"])
        found = {"program": options.program.stem, "validation": tried, "chosen": best["smoother"]}
        found["allocators"] = allocators(options.out)
        if options.record:
            unseen = joined(options.data_dir, "test")
            found["test"] = streamed(executable, unseen, by_program(program, unseen), best["smoother"])
            renew("stream", recorded().get("stream", {}) | {options.program.stem: found})
    except QornnError as error:
        sys.exit(f"error: {error}")
    print(to_json(found, indent=1))


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Clips one after the other."""

    x: np.ndarray  # (clips, 49, 10) int8
    command: np.ndarray  # (clips,) its number, or -1 for another word or noise


def joined(data_dir: Path, split: str) -> Joined:
    """All spoken clips of a split and the seconds of its noise recordings, in random order."""
    words = words30(data_dir)
    spoken: Clips = getattr(words, split)
    numbers = np.array([COMMANDS.index(word) if word in COMMANDS else -1 for word in words.labels])
    silence = noise(data_dir, split)
    x, command = np.concatenate([spoken.x, silence]), np.append(numbers[spoken.y], np.full(len(silence), -1))
    order = np.random.default_rng(0).permutation(len(x))
    return Joined(x[order], command[order])


def streamed(executable: Path, stream: Joined, answers: np.ndarray, smoother: tuple[int, ...]) -> dict[str, Any]:
    """One stream through the C: what was reported, and whether every answer is one of these of Python."""
    frames = stream.x.reshape(-1, CHANNELS)
    lines, sizes = run(executable, frames, smoother)
    alarms = lines[lines[:, 2] >= 0][:, [0, 2]]
    right, false = matched(alarms, stream.command)
    hours, others = len(frames) * SECONDS / 3600, int((stream.command < 0).sum())
    commands = int((stream.command >= 0).sum())
    return {
        "smoother": list(smoother),
        "hours": round(hours, 3),
        "commands": commands,
        "other_clips": others,
        "misses": commands - right,
        "missed_percent": round(100 * (commands - right) / commands, 2),
        "false_alarms": false,
        "false_alarms_per_hour": round(false / hours, 1),
        "differences": int((lines[:, 1] != answers).sum()),
        **sizes,
    }


def matched(alarms: np.ndarray, command: np.ndarray) -> tuple[int, int]:
    """Commands with an alarm of their own, and alarms of no command.  # alarms (A, 2): frame, keyword

    An alarm counts for the clip it falls in, or for the one before within LATE frames; a second alarm for the same clip
    is a false one.
    """
    heard: set[int] = set()
    false = 0
    for t, keyword in alarms.tolist():
        clip = t // FRAMES
        near = [clip, clip - 1] if t % FRAMES < LATE else [clip]
        own = [k for k in near if 0 <= k < len(command) and command[k] == keyword and k not in heard]
        heard.update(own[-1:])  # the earlier one has waited longer
        false += not own
    return len(heard), false


def by_program(program: IntegerProgram, stream: Joined) -> np.ndarray:
    """The answers of every sliding window in Python.  # (answers,)"""
    frames, window = stream.x.reshape(-1, CHANNELS), program.n_i // CHANNELS
    starts = np.arange(0, len(frames) - FRAMES + 1, EVERY)
    steps = FRAMES // window
    found = []
    for part in np.array_split(starts, -(-len(starts) // 2000)):
        x = frames[part[:, None] + np.arange(steps * window)].reshape(len(part), steps, -1)
        found.append(program.run(x.astype(np.int64)).argmax(1))
    return np.concatenate(found)


def build(program: IntegerProgram, out: Path) -> Path:
    """The exported folder with the smoother and stream_main.c in it, compiled."""
    if program.n_i % CHANNELS or len(program.provenance.get("classes", ())) != len(COMMANDS) + 2:
        raise SettingsError("the program must read 10 features per frame and know 12 classes; train it with train.py")
    qornn.export.c(program, out, name=NAME)
    for name in ("smoother.h", "smoother.c", "stream_main.c"):
        shutil.copy(HERE / name, out)
    executable = (out / "stream").absolute()
    own = [str(out / name) for name in ("smoother.c", "stream_main.c")]
    _call([*host_compiler(), *STRICT, f"-I{out / 'src'}", *_sources(out), *own, "-o", str(executable)])
    return executable


def run(executable: Path, frames: np.ndarray, smoother: tuple[int, ...]) -> tuple[np.ndarray, dict[str, int]]:
    """Frame, answer and alarm (-1: none) of every answer (answers, 3), and the sizes that the program states."""
    done = _call([str(executable), *map(str, smoother)], frames.astype(np.int8).tobytes())
    sizes = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", done.stderr.decode())}
    return np.array(done.stdout.split(), np.int64).reshape(-1, 3), sizes


def allocators(out: Path) -> list[str] | None:
    """Functions that allocate memory among what the network and the smoother call; None where there is no nm."""
    if shutil.which("nm") is None:
        return None
    called: set[str] = set()
    for source in [*_sources(out), str(out / "smoother.c")]:
        _call([*host_compiler(), *STRICT, "-c", source, "-o", str(out / "part.o")])
        undefined = _call(["nm", "-u", str(out / "part.o")]).stdout.decode()
        called |= {line.split()[-1].lstrip("_") for line in undefined.splitlines() if line.split()}
    (out / "part.o").unlink()
    return sorted(ALLOCATORS & called)


def _sources(out: Path) -> list[str]:
    return [str(out / name) for name in find(out).files if name.startswith("src/") and name.endswith(".c")]


def _call(words: list[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(words, input=given, capture_output=True, timeout=600)
    if done.returncode:
        told = done.stderr.decode(errors="replace")[-1000:]
        raise QornnError(f"`{' '.join(words[:3])} ...` ended with status {done.returncode}: {told}")
    return done


if __name__ == "__main__":
    main()
