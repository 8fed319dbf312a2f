"""Drives a page for browsers in a headless Chromium, through node: what `drive_chromium.js` can be asked for."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

NODE = shutil.which("node")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SCRIPT = Path(__file__).with_name("drive_chromium.js")


def drive(index: Path, *, width: int = 1000, speed: int = 4, **asked: Any) -> dict[str, Any]:
    """What the page shows after all that was asked for; speed 4 is at once."""
    if NODE is None or CHROMIUM is None:
        raise SystemExit(f"{'node' if NODE is None else 'chromium'} is not installed; apt-get install nodejs chromium")
    with tempfile.TemporaryDirectory(prefix="qornn-chromium-", ignore_cleanup_errors=True) as profile:
        words = json.dumps({"profile": profile, "speed": speed, **asked})
        command = [NODE, str(SCRIPT), CHROMIUM, str(index), str(width)]
        done = subprocess.run(command, input=words, capture_output=True, encoding="utf-8", timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
