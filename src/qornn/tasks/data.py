"""Where data files are searched and downloaded. A file is never used half-downloaded.

Order: the data folder given by the caller, $QORNN_DATA, the user's cache, then a verified download into that cache.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qornn._io.files import clean, replacing
from qornn.errors import DataError

TIMEOUT = 30  # seconds without a byte
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """One file of a dataset: where it may lie in a data folder, and where it comes from."""

    dataset: str
    name: str
    folder: str
    other_folders: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    urls: tuple[str, ...]  # tried in order
    checksum: str  # "sha256:..." of the download; files that the user provides are judged by their contents

    def places(self, root: Path) -> Iterator[Path]:
        """Every path under a data folder that would do, best first."""
        for folder in (self.folder, *self.other_folders, "."):
            for name in (self.name, *self.other_names):
                yield root / folder / name


def locate(file: RemoteFile, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The path of the file, downloaded if it must be and may be."""
    if data_dir is not None:  # an explicit folder is never replaced by another source
        root = Path(os.path.expanduser(data_dir))  # which leaves the ~ of an unknown user
        if not root.is_dir():
            raise DataError(
                f"data folder {root} does not exist; give the folder that holds {file.folder}/ to --data-dir"
            )
        if found := _search(file, [root]):
            return found
        raise _absent(file, [root], "The given data folder does not contain it.")
    given = os.environ.get("QORNN_DATA")
    roots = [Path(os.path.expanduser(given))] if given else []
    if found := _search(file, roots):
        return found
    roots.append(cache_folder())
    if found := _search(file, roots):
        return found
    if os.environ.get("QORNN_NO_DOWNLOAD", "") not in ("", "0"):
        raise _absent(file, roots, "Downloads are off because $QORNN_NO_DOWNLOAD is set.")
    failures = []
    for url in file.urls:
        try:
            return _download(url, cache_folder() / file.folder / file.name, file.checksum)
        except (OSError, http.client.HTTPException, _Rejected) as error:
            failures.append(f"{url}: {str(error) or type(error).__name__}")
    raise _absent(file, roots, f"Download failed ({'; '.join(failures)}).")


def verify(path: Path, checksum: str, way_out: str) -> None:
    """Refuse a file that is not, byte for byte, the one the checksum is of."""
    algorithm, _, expected = checksum.partition(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    if found != expected:
        raise DataError(f"{path} is damaged or another text: its {algorithm} is {found}, not {expected}; {way_out}")


def cache_folder() -> Path:
    """The user's cache: $XDG_CACHE_HOME/qornn, else ~/.cache/qornn."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # the XDG standard has relative paths ignored
        return Path(base) / "qornn"
    try:
        return Path.home() / ".cache" / "qornn"
    except RuntimeError as error:
        raise DataError(
            "this user has no home folder to keep downloads in; name a folder with $XDG_CACHE_HOME, or the data's "
            "own with $QORNN_DATA"
        ) from error


class _Rejected(Exception):
    """A download that arrived and is not the file."""


def _search(file: RemoteFile, roots: list[Path]) -> Path | None:
    return next((place for root in roots for place in file.places(root) if place.is_file()), None)


def _absent(file: RemoteFile, roots: list[Path], why: str) -> DataError:
    folders = ", ".join(str(root / folder) for root in roots for folder in (file.folder, *file.other_folders, "."))
    return DataError(
        f"{file.dataset} file {file.name} not found; looked in {folders}. {why} "
        f"Fetch it from {' or '.join(file.urls)} into a folder {file.folder}/ and name the folder above it "
        "with --data-dir (data_dir= in Python) or $QORNN_DATA."
    )


def _download(url: str, target: Path, checksum: str) -> Path:
    """Fetch a file under a temporary name; it takes its own once whole and verified."""
    clean(target.parent)
    with replacing(target) as out:  # a name of its own for each process: several may fetch the same file at once
        _copy(url, out.write, checksum)
    return target


def _copy(url: str, write: Callable[[bytes], object], checksum: str) -> None:
    algorithm, _, expected = checksum.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    request = urllib.request.Request(url, headers={"User-Agent": "qornn"})
    received = 0
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        total = response.length  # None where the server does not announce it
        with _progress(url.rsplit("/", 1)[-1], total) as advance:
            while chunk := response.read(CHUNK):
                write(chunk)
                digest.update(chunk)
                received += len(chunk)
                advance(len(chunk))
    if total is not None and received < total:
        raise _Rejected(f"stopped after {received} of {total} bytes")
    if digest.hexdigest() != expected:
        raise _Rejected(f"{algorithm} is {digest.hexdigest()}, not {expected}")


@contextmanager
def _progress(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, or nothing where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"download {name}", total=total)
        yield lambda count: progress.advance(bar, count)
