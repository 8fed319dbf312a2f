"""The beats of the MIT-BIH arrhythmia database in one file, from the download.

    python examples/ecg/prepare_beats.py DOWNLOAD --data-dir DATA

DOWNLOAD is the folder of https://physionet.org/content/mitdb/1.0.0/ with its .hea, .dat and .atr files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from beats import FILE, NAMES

from qornn.errors import DataError, QornnError

# Split by patient (de Chazal et al. 2004); the paced records 102, 104, 107 and 217 are left out.
DS1 = (101, 106, 108, 109, 112, 114, 115, 116, 118, 119, 122, 124, 201, 203, 205, 207, 208, 209, 215, 220, 223, 230)
DS2 = (100, 103, 105, 111, 113, 117, 121, 123, 200, 202, 210, 212, 213, 214, 219, 221, 222, 228, 231, 232, 233, 234)
CLASSES = {"N": "NLRej", "S": "AaJS", "V": "VE", "F": "F", "Q": "/fQ"}  # AAMI: the symbols of each
CODES = {1: "N", 2: "L", 3: "R", 4: "a", 5: "V", 6: "F", 7: "J", 8: "A", 9: "S", 10: "E", 11: "j", 12: "/", 13: "Q"}
CODES |= {34: "e", 38: "f"}
SKIP, NUMBERS, AUX = 59, (60, 61, 62), 63  # codes of an annotation file that are no annotations
LEAD = "MLII"
BEFORE, AFTER = 100, 156  # samples around the annotated beat, at 360 Hz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("download", type=Path, help="the folder with 100.hea, 100.dat, 100.atr, ...")
    parser.add_argument("--data-dir", required=True, type=Path, help=f"{FILE} is written below it")
    options = parser.parse_args()
    try:
        arrays = {"label_names": np.array(NAMES), **part(options.download, DS1, "train")}
        arrays |= part(options.download, DS2, "test")
    except QornnError as error:
        sys.exit(f"error: {error}")
    path = options.data_dir / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    print(path)


def part(folder: Path, records: tuple[int, ...], name: str) -> dict[str, np.ndarray]:
    """The beats of all these records, one after another."""
    found = [beats(folder, record) for record in records]
    return {f"{key}_{name}": np.concatenate([one[key] for one in found]) for key in found[0]}


def beats(folder: Path, record: int) -> dict[str, np.ndarray]:
    """Every beat with all its samples. An interval to a beat that is not there is 0."""
    signal = lead(folder, record)
    at, symbols = marks(_read(folder / f"{record}.atr"))
    gaps = np.diff(at)
    rr = np.stack([np.r_[0, gaps], np.r_[gaps, 0]], axis=1)
    whole = (at >= BEFORE) & (at + AFTER <= len(signal))
    of = {symbol: NAMES.index(name) for name, symbols in CLASSES.items() for symbol in symbols}
    return {
        "x": signal[at[whole, None] + np.arange(-BEFORE, AFTER)],
        "y": np.array([of[symbol] for symbol in symbols[whole]], np.uint8),
        "record": np.full(whole.sum(), record, np.uint8),
        "symbol": symbols[whole],
        "rr": rr[whole].astype(np.int32),
    }


def lead(folder: Path, record: int) -> np.ndarray:
    """The samples of lead MLII, zero at 0 mV.  # (T,) int16"""
    header = _read(folder / f"{record}.hea").decode("ascii").splitlines()
    channels = [line.split() for line in header[1:] if not line.startswith("#")]
    names = [words[-1] for words in channels]
    if LEAD not in names or {words[1] for words in channels} != {"212"} or len(channels) != 2:
        raise DataError(f"{record}.hea has no lead {LEAD} of two in format 212; download the records again")
    column = names.index(LEAD)
    low, both, high = np.frombuffer(_read(folder / f"{record}.dat"), np.uint8).reshape(-1, 3).astype(np.int32).T
    samples = (low | (both & 15) << 8, high | (both >> 4) << 8)[column]  # 12 bits each
    return ((samples ^ 2048) - 2048 - int(channels[column][4])).astype(np.int16)


def marks(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Where beats are, and their symbols: words of 16 bits, a code in the upper 6 and a time since the last one."""
    words, i, time = np.frombuffer(data[: len(data) // 2 * 2], "<u2").tolist(), 0, 0
    at, symbols = [], []
    while i < len(words) and words[i] != 0:
        code, value = words[i] >> 10, words[i] & 1023
        i += 1
        if code == SKIP:  # a longer time, its upper half first
            time += words[i] << 16 | words[i + 1]
            i += 2
        elif code == AUX:  # a text of so many bytes
            i += (value + 1) // 2
        elif code not in NUMBERS:
            time += value
            if code in CODES:
                at.append(time)
                symbols.append(CODES[code])
    return np.array(at, np.int64), np.array(symbols, "<U1")


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"no file {path}; download https://physionet.org/content/mitdb/1.0.0/ whole")
    return path.read_bytes()


if __name__ == "__main__":
    main()
