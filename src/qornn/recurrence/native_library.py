"""Where the compiled kernel lies, if it was built."""

import os
import sys
from pathlib import Path

NAME = "libqornn_recurrence." + {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")


def library_path() -> Path | None:
    """The shared library, or None in an install that found no compiler.

    QORNN_RECURRENCE_LIBRARY names another build (`make sanitize`). It is taken as it is: a wrong path must fail when
    loaded, not fall back.
    """
    if named := os.environ.get("QORNN_RECURRENCE_LIBRARY"):
        return Path(named)
    # An editable install keeps the sources here and the library in site-packages; both are on the package's path.
    package = sys.modules[__name__.rpartition(".")[0]]
    return next((path for folder in package.__path__ if (path := Path(folder, NAME)).is_file()), None)
