"""Locks on open files that go with their process, however that ends."""

from __future__ import annotations

import errno
import os
import sys

HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
FAR = 1 << 30  # the byte that Windows locks: what it locks nobody can read

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        os.lseek(handle, FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(handle, 0, os.SEEK_SET)

else:
    try:
        import fcntl
    except ImportError:

        def _lock(handle: int) -> None:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    else:

        def _lock(handle: int) -> None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def take(handle: int) -> bool | None:
    """Lock the open file; False where another has it, None on a system or a file system that knows no locks."""
    try:
        _lock(handle)
    except OSError as error:
        return False if error.errno in HELD else None
    return True
