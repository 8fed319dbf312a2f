"""Finding zig, the cross compiler from PyPI."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec


def zig() -> str | None:
    """The program inside the installed package; `python -m ziglang` would prefer a ziglang.py in the working folder."""
    spec = find_spec("ziglang")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    paths = (os.path.join(folder, "zig.exe" if sys.platform == "win32" else "zig") for folder in folders)
    return next(filter(os.path.isfile, paths), None)
