"""The logs of a run: metrics.jsonl, TensorBoard if installed, a progress bar, the learning curve."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import io
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from qornn._io.files import to_json, write_atomically
from qornn._io.foreign import Unreadable, is_count, is_number, parse_json, read_text
from qornn.errors import CheckpointError, WriteError, shown
from qornn.reporting.plots import in_picture, own_style

LARGEST = 1 << 32  # bytes of metrics: a record of every step of a long run must not end it


class MetricsLog:
    """metrics.jsonl, one record per line; its length is part of a checkpoint, so that resuming repeats no line."""

    def __init__(self, folder: Path | None, *, length: int = 0) -> None:
        self.path = None if folder is None else folder / "metrics.jsonl"
        self._board: Any = None
        if self.path is None:
            return
        with _writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_symlink():  # it may lead out of a folder that somebody else packed
                raise OSError(errno.ELOOP, "it is a link; put the file itself in its place")
            self.path.touch()
            with self.path.open("r+b") as file:
                file.truncate(min(length, self.path.stat().st_size))
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            with contextlib.suppress(OSError, UnicodeError):  # a courtesy: a run does not end for want of it
                self._board = SummaryWriter(str(self.path.parent / "tensorboard"))

    @property
    def length(self) -> int:
        """Bytes on disk."""
        if self.path is None:
            return 0
        with _writing(self.path):
            return self.path.stat().st_size

    def write(self, record: dict[str, Any]) -> None:
        if self.path is None:
            return
        with _writing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(to_json(record) + "\n")
        if self._board is None:
            return
        try:
            for key, value in record.items():
                if key != "step" and isinstance(value, int | float):
                    self._board.add_scalar(key, value, record["step"])
        except OSError:
            self._board = None

    def close(self) -> None:
        if self._board is not None:
            with contextlib.suppress(OSError):
                self._board.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WriteError(f"could not write {path}: {error.strerror or error}; free some space, then resume") from error


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Every whole record; a last line cut short by a kill is left out."""
    if not path.exists():
        return []
    try:
        lines = read_text(path, largest=LARGEST).split("\n")[:-1]  # what follows the last newline is not whole
        return [_record(line) for line in lines]
    except Unreadable as error:
        raise CheckpointError(
            f"cannot read {path}: {error}; delete it: the weights do not depend on it, but the curve then starts here"
        ) from error


def _record(line: str) -> dict[str, Any]:
    """A step, and figures by name; None is one that could not be measured."""
    record = parse_json(line)
    if not isinstance(record, dict) or not is_count(record.get("step")):
        raise Unreadable(f"{shown(line)} is not the record of a step")
    for key, value in record.items():
        if not (value is None or isinstance(value, bool) or (is_number(value) and math.isfinite(value))):
            raise Unreadable(f"the {shown(key)} of step {record['step']} is {shown(value)}")
    return record


class Display:
    """A live bar on a terminal, plain lines when piped, nothing when quiet; always on standard error."""

    def __init__(self, total: int, *, start: int = 0, quiet: bool = False) -> None:
        self.total, self._start = total, start
        self.console = Console(stderr=True, quiet=quiet)
        self._bar = _bar(self.console) if self.console.is_terminal and not quiet else None
        self._task = self._bar.add_task("", total=total, completed=start, facts="") if self._bar else None
        self._began = self._spoke = time.monotonic()

    def __enter__(self) -> Display:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def step(self, step: int, loss: float) -> None:
        """Called every step; a pipe hears of it every ten seconds."""
        now = time.monotonic()
        rate = (step - self._start) / max(now - self._began, 1e-9)
        facts = f"loss {loss:.4g}  {rate:.1f} steps/s"
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=step, facts=facts)
        elif now - self._spoke > 10:
            self._spoke = now
            left = (self.total - step) / max(rate, 1e-9)
            self.say(f"step {step}/{self.total}  {facts}  {left / 60:.1f} min left")

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _bar(console: Console) -> Progress:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[facts]}"),
    )
    return Progress(*columns, console=console)


@own_style()
def draw_curve(folder: Path, *, metric: str, baseline: float) -> None:
    """curve.png: training loss and the validation metric against the step, with the naive baseline."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    records = read_metrics(folder / "metrics.jsonl")
    losses = [(r["step"], r["loss"]) for r in records if r.get("loss") is not None]
    scores = [(r["step"], r["validation"]) for r in records if r.get("validation") is not None]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    if losses:
        left.semilogy(*zip(*losses, strict=True), color="tab:blue", linewidth=1)
    left.set(xlabel="step", ylabel="training loss", title=in_picture(folder.name))
    if scores:
        right.plot(*zip(*scores, strict=True), color="tab:orange", marker="o", markersize=3)
    right.axhline(baseline, color="grey", linestyle="--", linewidth=1, label="naive baseline")
    if scores and min(value for _, value in scores) > 0 and metric != "accuracy":
        right.set_yscale("log")
    right.set(xlabel="step", ylabel=f"validation {metric}")
    right.legend(frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=120, format="png")
    write_atomically(folder / "curve.png", buffer.getvalue(), own=True)
