"""Standard output and standard error: they accept any text, and write errors become messages."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HANDLER = "qornn-any-text"


def take_any_text() -> None:
    """A character that the locale's encoding lacks is escaped; the bytes of a file name are written as they are."""
    codecs.register_error(HANDLER, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


@contextmanager
def flushed() -> Iterator[None]:
    """Flush standard output at the end, while a failure can still be reported; Python itself does it too late."""
    try:
        yield
    finally:
        if sys.stdout is not None:
            try:
                sys.stdout.flush()
            except OSError:
                _drop_output()
                raise


def in_words(error: OSError) -> str:
    """The system's message and the file it is about, in one line."""
    said = error.strerror or str(error)
    return f"could not read or write: {said}" if error.filename is None else f"{os.fsdecode(error.filename)}: {said}"


def _drop_output() -> None:
    """Discard what is still unwritten, or Python would try once more at exit."""
    with suppress(OSError):
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, sys.stdout.fileno())
        os.close(nobody)


def _escape(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)
