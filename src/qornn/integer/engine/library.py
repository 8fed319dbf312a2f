"""The C engine of runtime/, through ctypes."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

from qornn._io.libraries import library_path
from qornn.errors import QornnError
from qornn.integer.engine.structs import POINTER, digest

KERNELS: Final = ("portable", "avx2", "vnni")  # as in qornn_host.h


@cache
def library() -> ctypes.CDLL | None:
    """The engine, or None where the package was installed without one."""
    path = library_path("runtime")
    if path is None:
        return None
    found = ctypes.CDLL(str(path))
    if not _is_ours(found):
        raise QornnError(
            f"the native engine at {path} is of another version of qornn than its Python files; install again "
            "(pip install --force-reinstall qornn, or `pip install -e .` in a checkout)"
        )
    found.qornn_work_bytes.argtypes = (POINTER,)
    found.qornn_work_bytes.restype = ctypes.c_size_t
    found.qornn_kernel.argtypes = (POINTER, ctypes.c_int)
    found.qornn_run.argtypes = (POINTER, POINTER, ctypes.c_int)
    return found


def _is_ours(found: ctypes.CDLL) -> bool:
    """Whether it was compiled from the headers that are here."""
    if not hasattr(found, "qornn_digest"):
        return False
    found.qornn_digest.restype = ctypes.c_char_p
    return found.qornn_digest() == digest().encode()
