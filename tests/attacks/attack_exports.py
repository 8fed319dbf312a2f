"""Exported folders with one file changed, taken away or put in the place of another: named, refused, or a note.

Whatever happens, what reaches the compiler is what the program exports, never what lies in the folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path
from unittest import mock

sys.path.append(str(Path(__file__).parents[1] / "verify"))  # c_programs.py
from c_programs import make

from qornn import export
from qornn.errors import QornnError
from qornn.export.c99.make import make as files_of
from qornn.verify import verify
from qornn.verify.folder import is_free

SPLICES = (
    b"\n#include </etc/passwd>\n",
    b"*/",
    b"/*",
    b"??/\n",
    b"\\\n",
    b"\x00",
    b"\xff",
    b"9",
    b" ",
    b'system("x");',
)
COMMAND = "qornn export net.qornn"


class _ReachedError(Exception):
    """The compiler was called."""


@cache
def _original(at):
    program = make(n_h=5, n_i=5)
    export.c(program, at, name="net", vector_steps=2, command=COMMAND)
    want = files_of(program, name="net", vector_steps=2, command=COMMAND).files
    return {str(path.relative_to(at)): path.read_bytes() for path in at.rglob("*") if path.is_file()}, want


def attack(rng, folder):
    """Change one file, and see what verify makes of it."""
    files, want = _original(folder / "original")
    place = folder / "attacked"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, data in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    file = str(rng.choice(["src/net/net.c", "src/net.h", "test/net_vectors.h", "net.qornn", *files]))
    _change(place, file, rng)
    path = place / file
    same = path.is_file() and path.read_bytes().replace(b"\r\n", b"\n") == files[file]
    with mock.patch("qornn.verify.build.build_host", side_effect=lambda found, _: _compile(found, want)):
        try:
            result = verify(place)
        except _ReachedError:
            assert same or is_free(file), f"{file} was changed, and nobody saw it"
            return "compiled as exported"
        except QornnError:
            assert not same
            return "refused"
    assert not same
    assert result.exact is False
    assert file in result.difference.file.split(", ")
    return "named"


def _compile(found, want):
    assert found.files == want, "something else than the export reached the compiler"
    raise _ReachedError


def _change(place, file, rng):
    path, kind = place / file, rng.integers(9)
    data = bytearray(path.read_bytes())
    at = int(rng.integers(len(data)))
    if kind >= 5:
        path.unlink()
    if kind == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[at : at + int(rng.integers(1, 99))]
    elif kind == 2:
        data[at:at] = SPLICES[rng.integers(len(SPLICES))]
    elif kind == 3:
        del data[at:]
    elif kind == 4:
        others = sorted(path for path in place.rglob("*") if path.is_file())
        data = bytearray(others[rng.integers(len(others))].read_bytes())
    elif kind == 6:
        path.mkdir()
    elif kind == 7:
        os.mkfifo(path)
    elif kind == 8:
        path.symlink_to("/dev/zero")
    if kind < 5:
        path.write_bytes(data)
