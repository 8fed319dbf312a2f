"""Downloads into the .npz files that the examples read: HAPT of UCI, and sets of the UCR archive.

    python examples/real/prepare.py DOWNLOAD... --data-dir DATA

A download is a zip file or the folder it was unpacked to: the HAPT archive (RawData/labels.txt, acc_exp01_user01.txt,
gyro_exp01_user01.txt, ...), or NAME_TRAIN and NAME_TEST of the UCR archive as .tsv, .txt or .ts.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from data import HAPT_URL, SAMPLES, UCR_URL

from qornn.errors import DataError, QornnError

SCALE = np.array(3 * [1 / 720] + 3 * [np.radians(17.5e-3)])  # g and rad/s per unit of the phone's sensors
EXACT = 1e-5  # the text's values are whole units up to this
TEST_USERS = (2, 4, 9, 10, 12, 13, 18, 20, 24)  # of the official split
LABELS = (
    *("none", "WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING"),
    *("STAND_TO_SIT", "SIT_TO_STAND", "SIT_TO_LIE", "LIE_TO_SIT", "STAND_TO_LIE", "LIE_TO_STAND"),
)
Files = dict[str, Callable[[], bytes]]  # by their names without folders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("downloads", nargs="+", type=Path, metavar="DOWNLOAD")
    parser.add_argument("--data-dir", required=True, type=Path)
    options = parser.parse_args()
    try:
        for download in options.downloads:
            for path in prepare(download, options.data_dir):
                print(path)
    except QornnError as error:
        sys.exit(f"error: {error}")


def prepare(download: Path, data_dir: Path) -> list[Path]:
    """Whatever is found in a download; the files written."""
    found = contents(download)
    made = {f"ucr/{name}.npz": ucr(found, name) for name in sorted(_series(found))}
    if "labels.txt" in found:
        made["har/hapt.npz"] = hapt(found)
    if not made:
        raise DataError(
            f"{download} holds neither labels.txt and acc_exp*.txt nor NAME_TRAIN and NAME_TEST as .tsv, .txt or .ts; "
            f"the downloads are {HAPT_URL} and {UCR_URL.format(name='NAME')}"
        )
    for file, arrays in made.items():
        (data_dir / file).parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(data_dir / file, **arrays)
    return [data_dir / file for file in made]


def contents(download: Path) -> Files:
    """The files of a folder or a zip, zips inside a zip included."""
    if download.is_dir():
        return {path.name: path.read_bytes for path in sorted(download.rglob("*")) if path.is_file()}
    if not zipfile.is_zipfile(download):
        raise DataError(f"{download} is neither a folder nor a zip file; give the download or the folder it unpacks to")
    return _zipped(download.read_bytes())


def _zipped(data: bytes) -> Files:
    found: Files = {}
    archive = zipfile.ZipFile(io.BytesIO(data))
    for name in archive.namelist():
        if name.lower().endswith(".zip"):
            found |= _zipped(archive.read(name))
        else:
            found[Path(name).name] = lambda name=name: archive.read(name)  # type: ignore[misc]
    return found


def hapt(found: Files) -> dict[str, np.ndarray]:
    """All recordings in one array of sensor units, and the windows of 128 samples that the official features are of."""
    matches = (re.fullmatch(r"acc_exp(\d+)_user(\d+)\.txt", name) for name in found)
    named = {int(m[1]): (int(m[2]), m[0]) for m in matches if m}
    parts = {e: recording(found, name) for e, (_, name) in sorted(named.items())}
    starts = np.cumsum([0, *map(len, parts.values())])
    at = dict(zip(parts, starts.tolist(), strict=False))
    label, windows = np.zeros(starts[-1], np.uint8), []
    for experiment, user, activity, first, last in _segments(found, parts):
        # Counted from 0 with the last one included; so counted, the windows are as many as the official features.
        begin, end = at[experiment] + first, at[experiment] + last + 1
        label[begin:end] = activity
        windows += [(s, activity, user) for s in range(begin, end - SAMPLES + 1, SAMPLES // 2)]
    start, activity, user = np.array(windows, np.int64).reshape(-1, 3).T
    return {
        "x": np.concatenate(list(parts.values())),
        "scale": SCALE,
        "label": label,
        "rec_start": starts.astype(np.int32),
        "rec_user": np.array([named[e][0] for e in parts], np.uint8),
        "win_start": start.astype(np.int32),
        "win_label": activity.astype(np.uint8),
        "win_user": user.astype(np.uint8),
        "win_test": np.isin(user, TEST_USERS),
        "label_names": np.array(LABELS),
    }


def recording(found: Files, name: str) -> np.ndarray:
    """An acc file and the gyro file beside it, in sensor units.  # (T, 6) int16"""
    other = name.replace("acc", "gyro")
    if other not in found:
        raise DataError(f"there is {name} but no {other}; unpack the whole download again")
    acc, gyro = (np.loadtxt(io.BytesIO(found[n]()), ndmin=2) for n in (name, other))
    if acc.shape != gyro.shape or acc.shape[1] != 3:
        raise DataError(f"{name} and {other} are {acc.shape} and {gyro.shape}; both should be (samples, 3)")
    values = np.hstack([acc, gyro])
    units = np.rint(values / SCALE)
    if np.abs(values - units * SCALE).max() > EXACT or not -(2**15) <= units.min() <= units.max() < 2**15:
        raise DataError(f"{name} and {other} are not in g of 1/720 and rad/s of 17.5 mdps: not the raw data of HAPT")
    return units.astype(np.int16)


def _segments(found: Files, parts: dict[int, np.ndarray]) -> list[list[int]]:
    """Experiment, user, activity, first and last sample of every labelled segment, in the order of time."""
    rows = np.loadtxt(io.BytesIO(found["labels.txt"]()), dtype=np.int64, ndmin=2)
    if rows.shape[1] != 5:
        raise DataError(f"labels.txt has {rows.shape[1]} columns; experiment, user, activity, start and end are needed")
    for experiment, _, activity, first, last in rows.tolist():
        length = len(parts.get(experiment, ()))
        if not (0 <= first <= last < length and 1 <= activity < len(LABELS)):
            raise DataError(
                f"labels.txt has activity {activity} from {first} to {last} in experiment {experiment}, of which there "
                f"are {length} samples; unpack the whole download again"
            )
    return sorted(rows.tolist(), key=lambda row: (row[0], row[3]))


def _series(found: Files) -> set[str]:
    return {m[1] for name in found if (m := re.fullmatch(r"(\w+)_(?:TRAIN|TEST)\.(?:tsv|txt|ts)", name))}


def ucr(found: Files, name: str) -> dict[str, np.ndarray]:
    """NAME_TRAIN and NAME_TEST."""
    arrays = {}
    for part in ("train", "test"):
        file = next((f for e in ("tsv", "txt", "ts") if (f := f"{name}_{part.upper()}.{e}") in found), None)
        if file is None:
            raise DataError(f"there is no {name}_{part.upper()} as .tsv, .txt or .ts; unpack the whole download again")
        y, x = _table(found[file](), file)
        arrays |= {f"x_{part}": x.astype(np.float32), f"y_{part}": y.astype(np.int8)}
    return arrays


def _table(data: bytes, file: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels and series: the label is the first number of a row, and in .ts files the last, after a colon."""
    text = data.decode("utf-8")
    if file.endswith(".ts"):
        lines = [line for line in text.splitlines() if line.strip() and line[0] not in "#@"]
        rows = [line.rsplit(":", 1) for line in lines]
        text = "\n".join(f"{label} {series}" for series, label in rows)
    try:
        values = np.loadtxt(io.StringIO(text.replace(",", " ")), ndmin=2)
    except ValueError as error:
        raise DataError(f"{file} is not a table with a label and equally long series in each row: {error}") from error
    return values[:, 0], values[:, 1:]


if __name__ == "__main__":
    main()
