"""Running a C compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from qornn.errors import QornnError

TIMEOUT: Final = 600  # seconds
LINES: Final = 20  # of complaints that an error shows


def compile_there(command: list[str], folder: Path, target: str, error: type[QornnError]) -> None:
    """Run a compiler in a folder; what it complains of is an error of that kind."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error(f"the compiler for {target} did not run: {reason}") from reason
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise error(f"the C does not compile for {target}:\n" + "\n".join(words[:LINES]))
