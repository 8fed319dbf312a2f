"""Where the package's compiled libraries lie, if they were built."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

ENDING = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")


def library_path(room: str) -> Path | None:
    """The shared library of a room, or None in an install that found no compiler.

    QORNN_RUNTIME_LIBRARY and QORNN_RECURRENCE_LIBRARY name another build (`make sanitize`). It is taken as it is: a
    wrong path must fail when loaded, not fall back.
    """
    if named := os.environ.get(f"QORNN_{room.upper()}_LIBRARY"):
        return Path(named)
    # An editable install keeps the sources in one folder and the library in another; both are on the package's path.
    spec = importlib.util.find_spec(f"qornn.{room}")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    name = f"libqornn_{room}.{ENDING}"
    return next((path for folder in folders if (path := Path(folder, name)).is_file()), None)
