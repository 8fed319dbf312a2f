"""Human activity sample by sample: raw int16 sensor values into generated C, every answer as in Python.

    python examples/real/stream_har.py --data-dir DATA -o OUT [--program OUT/har.qornn] [--user 2 --reset 128]
    python examples/real/stream_har.py --data-dir DATA -o OUT --record      # for docs/real-data.md

Trains the stack of measure_stacks.py (or takes a program), exports C to OUT, compiles it there with stream_main.c, and
feeds it whole recordings of people the network has never seen. Says how many answers are right, and after how many
samples of a sequence the answer stays right (warm-up latency).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from data import RATE, SAMPLES, Recording, har, har_recordings
from measure_stacks import COMMON, TRIED, prepared
from methods import MEASURED, TARGET, fitted

import qornn
from qornn import QORNNClassifier, __version__
from qornn._io.files import to_json, write_atomically
from qornn.errors import QornnError, SettingsError
from qornn.fit.latency import Latency, until_it_stays
from qornn.integer.program import IntegerProgram
from qornn.verify import measure
from qornn.verify.build import host_compiler
from qornn.verify.folder import find

NAME, CHANNELS = "har", 6  # as stream_main.c has them
SETTINGS = COMMON | TRIED["har"][0]
RECORD = Path(__file__).parent.parent.parent / "results" / "stream-har.json"
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror")
ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "free", "alloca", "sbrk", "mmap"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-dir", required=True, type=Path, help="Holds har/hapt.npz, see docs/real-data.md.")
    parser.add_argument("-o", "--out", required=True, type=Path, help="The folder for the C.")
    parser.add_argument("--program", type=Path, help="A .qornn file of an earlier run. Default: a network is trained.")
    parser.add_argument("--user", type=int, help="One test person. Default: all of them.")
    parser.add_argument("--reset", type=int, default=SAMPLES, help="Samples per sequence; 0: no end. Default: 128.")
    parser.add_argument("--seed", type=int, default=0, help="Of the training. Default: 0.")
    parser.add_argument("--record", action="store_true", help="Write the figures to results/stream-har.json.")
    options = parser.parse_args()
    if options.record and (options.program or options.user is not None or options.reset != SAMPLES):
        parser.error("--record is of the trained network, all test people and sequences of 128 samples")
    try:
        recordings = of_user(har_recordings(options.data_dir), options.user)
        source: QORNNClassifier | IntegerProgram
        if options.program is None:
            print("training", file=sys.stderr)
            source, _ = fitted(*prepared(har(options.data_dir), SETTINGS, options.seed), options.seed)
        else:
            source = qornn.load(options.program)
        found = stream(source, recordings, options.out, reset=options.reset)
    except QornnError as error:
        sys.exit(f"error: {error}")
    print(to_json(found, indent=1))
    if options.record:
        facts = {"version": __version__, "settings": SETTINGS, "seed": options.seed}
        write_atomically(RECORD, to_json(facts | found, indent=1) + "\n")
    sys.exit(0 if found["differences"] == 0 and not found["allocators"] else 1)


def of_user(recordings: list[Recording], user: int | None) -> list[Recording]:
    """That person's; None: everybody's."""
    found = [r for r in recordings if user in (None, r.user)]
    if not found:
        users = ", ".join(map(str, sorted({r.user for r in recordings})))
        raise SettingsError(f"user {user} is not in the test set; choose from {users}")
    return found


def stream(
    source: QORNNClassifier | IntegerProgram, recordings: list[Recording], out: Path, *, reset: int
) -> dict[str, Any]:
    """Everything this example shows, as figures."""
    program = source.to_program() if isinstance(source, QORNNClassifier) else source
    check(program)
    executable = build(program, out)
    differences, asked, right, said = 0, 0, 0, {}
    warm_up: list[int | None] = []
    for recording in recordings:
        in_c, said = run(executable, recording.x, reset)
        in_python = by_session(program, recording.x, reset)
        differences += int((in_c != in_python).sum())
        if isinstance(source, QORNNClassifier):
            differences += int((source.classes_[in_c] != by_estimator(source, recording.x, reset)).sum())
        at, wanted = asked_at(program, recording, reset)
        asked, right = asked + len(at), right + int((in_c[at] == wanted).sum())
        warm_up += warm_ups(program, recording, in_c, reset)
    external = external_symbols(out)
    return {
        "people": len({recording.user for recording in recordings}),
        "recordings": len(recordings),
        "samples": sum(len(recording.x) for recording in recordings),
        "differences": differences,
        "window": program.input.n_raw // CHANNELS,
        "reset": reset,
        "true_bytes": program.true_bytes,
        "accuracy": round(100 * right / asked, 2) if asked else None,
        "warm_up": latency(warm_up),
        "state_bytes": said["state_bytes"],  # sizeof, by the compiler of this machine
        "window_bytes": said["window_bytes"],
        "external_symbols": external,
        "allocators": None if external is None else sorted(ALLOCATORS & set(external)),
        TARGET: on_device(out),
    }


def check(program: IntegerProgram) -> None:
    """The program must read raw samples of six channels."""
    scale = program.provenance.get("input", {}).get("raw_scale", [1])
    if program.input.n_raw % CHANNELS or set(scale) != {1}:
        raise SettingsError(
            f"the program reads {program.input.n_raw} numbers per step, in units of {max(scale):g}; this example "
            f"streams raw int16 samples of {CHANNELS} channels: fit on such integers"
        )


def build(program: IntegerProgram, out: Path) -> Path:
    """The exported folder with stream_main.c in it, compiled."""
    qornn.export.c(program, out, name=NAME)
    shutil.copy(Path(__file__).with_name("stream_main.c"), out)
    executable = (out / "stream").absolute()
    sources = [*_sources(out), str(out / "stream_main.c")]
    _call([*host_compiler(), *STRICT, f"-I{out / 'src'}", *sources, "-o", str(executable)])
    return executable


def run(executable: Path, x: np.ndarray, reset: int) -> tuple[np.ndarray, dict[str, int]]:
    """The class, 0.., after every sample, and the sizes that the compiled code states."""
    lines = "\n".join(" ".join(map(str, sample)) for sample in x.tolist())
    done = _call([str(executable), str(reset)], input=lines + "\n")
    sizes = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", done.stderr)}
    return np.array(done.stdout.split(), np.int64), sizes


def by_session(program: IntegerProgram, x: np.ndarray, reset: int) -> np.ndarray:
    """The same by the program in Python."""
    session, window, found = program.session(), program.input.n_raw // CHANNELS, []
    for start, stop in _sequences(len(x), reset):
        session.reset()
        answer = int(session.y.argmax())
        for t in range(start, stop):
            if (t - start + 1) % window == 0:
                # clipped as in the C: a sensor may give -32768, which is kept for missing samples
                raw = program.input.clip(x[t - window + 1 : t + 1].reshape(-1))
                answer = int(session.step(raw).argmax())
            found.append(answer)
    return np.array(found)


def by_estimator(clf: QORNNClassifier, x: np.ndarray, reset: int) -> np.ndarray:
    """The same by the estimator, in its own labels."""
    live, found = clf.stream(integer=True), []
    for start, stop in _sequences(len(x), reset):
        live.reset()
        found += [live.step(sample) for sample in x[start:stop]]
    return np.array(found)


def asked_at(program: IntegerProgram, recording: Recording, reset: int) -> tuple[np.ndarray, np.ndarray]:
    """Where an answer is due and known: a sequence's last sample, or without ends every window's; and the answers."""
    every = reset or program.input.n_raw // CHANNELS
    ends = np.arange(every - 1, len(recording.x), every)
    names = classes(program)
    at = ends[np.isin(recording.label[ends], names)]
    return at, np.searchsorted(names, recording.label[at])


def warm_ups(program: IntegerProgram, recording: Recording, answers: np.ndarray, reset: int) -> list[int | None]:
    """Of each whole sequence of one activity, the samples until its answer stays right; None where it ends wrong."""
    names, window, found = classes(program), program.input.n_raw // CHANNELS, []
    for start, stop in _sequences(len(recording.x), reset):
        label = recording.label[start]
        if stop - start == reset and label in names and (recording.label[start:stop] == label).all():
            # after every step of the network: before the first one there is no answer
            steps = until_it_stays(names[answers[start + window - 1 : stop : window]] == label)
            found.append(None if steps is None else steps * window)
    return found


def latency(warm_up: list[int | None]) -> dict[str, Any]:
    """Median and 90th percentile of the sequences that end right, in samples and in seconds, beside the accuracy."""
    ends_right = np.array([samples for samples in warm_up if samples is not None], np.int64)
    figures = Latency(ends_right, len(warm_up)).figures()
    seconds = {f"{key}_seconds": figures[key] and round(figures[key] / RATE, 2) for key in ("median", "p90")}
    return figures | seconds | {"accuracy": round(100 * len(ends_right) / len(warm_up), 2) if warm_up else None}


def classes(program: IntegerProgram) -> np.ndarray:
    """The labels, in the order of the program's outputs."""
    return np.array([int(name) for name in program.provenance.get("classes", [])], np.int64)


def external_symbols(out: Path) -> list[str] | None:
    """What the model and its runtime take from elsewhere, of their object files; None where there is no nm."""
    if shutil.which("nm") is None:
        return None
    objects = [out / f"{Path(source).stem}.o" for source in _sources(out)]
    for source, file in zip(_sources(out), objects, strict=True):
        _call([*host_compiler(), *STRICT, "-c", source, "-o", str(file)])
    symbols = {kind: _call(["nm", "-g", kind, *map(str, objects)]).stdout for kind in ("-u", "--defined-only")}
    names = {kind: {line.split()[-1] for line in text.splitlines() if line.split()} for kind, text in symbols.items()}
    for file in objects:
        file.unlink()
    here = {name for names in names.values() for name in names if name.endswith(":")}  # file names
    return sorted(name.lstrip("_") for name in names["-u"] - names["--defined-only"] - here)


def on_device(out: Path) -> dict[str, Any]:
    """Steps replayed on an emulated Cortex-M4: the same bits, and what they take."""
    try:
        found = measure(out, TARGET)
    except QornnError as error:  # the extra [mcu] is not installed
        return {"not_measured": str(error)}
    return {key: found[key] for key in MEASURED}


def _sources(out: Path) -> list[str]:
    return [str(out / name) for name in find(out).files if name.startswith("src/") and name.endswith(".c")]


def _sequences(length: int, reset: int) -> list[tuple[int, int]]:
    step = reset or length
    return [(start, min(start + step, length)) for start in range(0, length, step)]


def _call(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace", timeout=600, **options)
    if done.returncode:
        raise QornnError(f"`{' '.join(words[:3])} ...` ended with status {done.returncode}: {done.stderr[-1000:]}")
    return done


if __name__ == "__main__":
    main()
