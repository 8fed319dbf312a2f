"""kill -9 at any write, rename or removal, or at any time: the same command continues and ends as if never interrupted.

A command runs in a forked child. An audit hook there counts what the child does to files and kills it before the n-th.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from dataclasses import dataclass, field

import numpy as np

EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
TIMES = {"seconds", "seconds_per_step", "estimated_seconds", "minutes", "run", "file", "peak_memory_bytes"}
COPY = ["task.T0=5", "task.train_size=64", "task.validation_size=8", "task.test_size=8", "model.n_h=8"]
COPY += ["train.batch=8", "train.log_every=1", "train.eval_every=3", "train.lr=1e-2", "train.checkpoint_every=2"]
TINY = [word for setting in COPY for word in ("--set", setting)]
EXEMPT = {"tensorboard"}  # named after the process and the time
AGAIN = 0.3  # share of the attacks in which the rerun is killed too


@dataclass
class Command:
    """A command on a folder, and what goes on with it after a kill."""

    words: list[str]  # @ is the folder
    resumes: list[str] | None = None  # once the folder holds a run
    moments: int = 0  # what it does to files when nobody kills it
    seconds: float = 0.0
    wanted: dict[str, str] = field(default_factory=dict)


COMMANDS = {
    "train": Command(["train", "copy", *TINY, "--steps", "7", "--out", "@/run"], ["resume", "@/run"]),
    "resume": Command(["resume", "@/run"]),
    "lower": Command(["lower", "@/run", "-o", "@/net.qornn"]),
    "export": Command(["export", "@/net.qornn", "--to", "c", "-o", "@/c", "--name", "net"]),
    "fit": Command(["fit", "@/waves.npz", "-o", "@/out", "--bits", "3,4", "--n-hidden", "8", "--epochs", "2"]),
    "reproduce": Command(
        ["reproduce", "performance", "--cells", "copy-bjorck-k8", "--variant", "tiny", *TINY, "--fraction", "1e-4"]
    ),
}
COMMANDS["fit"].words += ["--map", "bjorck", "--target", "host", "--quiet"]
COMMANDS["reproduce"].words += ["--runs", "@/runs", "--results", "@/results"]


def attack(rng, folder):
    """One command, killed once or twice, then run to its end."""
    name = list(COMMANDS)[rng.integers(len(COMMANDS))]
    command, place = prepared(name, folder), folder / "attacked"
    fresh(place, folder / f"before-{name}")
    kills = 1 + int(rng.random() < AGAIN)
    for _ in range(kills):
        words = _words(command, place)
        if rng.random() < 0.7:
            run(words, place, kill_before=int(rng.integers(1, command.moments + 1)))
        else:
            run(words, place, kill_after=float(rng.uniform(0, command.seconds)))
    said = run(_words(command, place), place)
    assert said.code == 0, f"{name} does not go on after kill -9: {said.text[-2000:]}"
    got = contents(place)
    wrong = sorted(key for key in got.keys() | command.wanted.keys() if got.get(key) != command.wanted.get(key))
    assert not wrong, f"{name} ends otherwise after kill -9: {', '.join(wrong)}"
    return name


def prepared(name, folder):
    """The command; what it starts from lies in `before-NAME`, what it ends with when left alone in `after-NAME`."""
    command, before = COMMANDS[name], folder / f"before-{name}"
    if before.exists():
        return command
    before.mkdir()
    {"fit": _waves, "resume": _half, "lower": _trained, "export": _lowered}.get(name, lambda *_: None)(before, folder)
    place = folder / "attacked"
    fresh(place, before)
    said = run(_words(command, place), place)
    assert said.code == 0, said.text
    command.moments, command.seconds, command.wanted = said.moments, said.seconds, contents(place)
    shutil.copytree(place, folder / f"after-{name}")
    return command


@dataclass
class Said:
    """How a child ended."""

    code: int  # negative: killed by that signal
    text: str
    moments: int
    seconds: float


def run(words, place, *, kill_before=None, kill_after=None):
    """The command line in a forked child."""
    import time

    log, count = place.with_suffix(".log"), place.with_suffix(".count")
    count.unlink(missing_ok=True)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(words, place, log, count, kill_before)
    timer = threading.Timer(600 if kill_after is None else kill_after, os.kill, (child, signal.SIGKILL))
    timer.start()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    moments = int(count.read_text(encoding="utf-8")) if count.exists() else 0
    text = log.read_text(encoding="utf-8", errors="replace")
    return Said(os.waitstatus_to_exitcode(status), text, moments, time.monotonic() - began)


def _child(words, place, log, count, kill_before):
    from qornn.cli import main

    code = 1
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(handle, stream)
        seen = [0]

        def look(event, arguments):
            if _touches(event, arguments, str(place)):
                seen[0] += 1
                if seen[0] == kill_before:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(look)
        sys.argv = ["qornn", *words]
        try:
            main()
            code = 0
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        count.write_text(str(seen[0]), encoding="utf-8")
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _touches(event, arguments, place):
    """Whether this is about to change a file below the folder."""
    if event == "open":
        path, _, flags = arguments
        return str(path).startswith(place) and bool(flags & WRITING)
    return event in EVENTS and any(str(argument).startswith(place) for argument in arguments[:2])


def contents(place):
    """What must be equal: names, and bytes or, of JSON, everything but times."""
    found = {}
    for path in sorted(p for p in place.rglob("*") if p.is_file() and not EXEMPT & {*p.parts, p.suffix}):
        key = str(path.relative_to(place))
        if path.suffix in (".json", ".jsonl"):
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines() if path.suffix == ".jsonl" else [text]
            found[key] = repr([_timeless(json.loads(line)) for line in lines])
        elif path.suffix in (".png", ".html") or "checkpoint" in path.parts or path.name == "budget":
            found[key] = "there"  # holds times
        else:
            found[key] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _timeless(value):
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in TIMES}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def fresh(place, before):
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(before, place)


def _words(command, place):
    words = command.resumes if command.resumes and (place / "run" / "recipe.toml").exists() else command.words
    return [word.replace("@", str(place)) for word in words]


def _waves(before, folder):
    rng = np.random.default_rng(0)
    f = rng.uniform(0.5, 2.5, 60)
    x = np.sin(2 * np.pi * f[:, None] * np.arange(12) / 12)
    np.savez(before / "waves.npz", x=x.astype(np.float32), y=(f > 1.5).astype(int))


def _half(before, folder):
    """A run that was killed on its way."""
    command = prepared("train", folder)
    fresh(folder / "attacked", before)
    run(_words(command, folder / "attacked"), folder / "attacked", kill_before=command.moments * 2 // 3)
    shutil.copytree(folder / "attacked", before, dirs_exist_ok=True)


def _trained(before, folder):
    prepared("train", folder)
    shutil.copytree(folder / "after-train" / "run", before / "run")


def _lowered(before, folder):
    prepared("lower", folder)
    shutil.copy(folder / "after-lower" / "net.qornn", before / "net.qornn")
