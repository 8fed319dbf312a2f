"""A second opinion where it is installed: qemu-system-arm, and images by arm-none-eabi-gcc."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from qornn.verify import build
from qornn.verify.build import VerifyError
from qornn.verify.folder import Export
from qornn.verify.targets import Target

QEMU: Final = "qemu-system-arm"
GCC: Final = "arm-none-eabi-gcc"


def outputs(
    export: Export, scratch: Path, image: Path, name: str, target: Target
) -> tuple[list[tuple[str, str, int]], list[str]]:
    """(where, what it said, status) of every run, and what was skipped for want of a tool."""
    if target.qemu is None:
        return [], []
    if shutil.which(QEMU) is None:
        return [], [f"{QEMU} is not installed"]
    if target.qemu not in _said([QEMU, "-machine", "help"])[0]:
        return [], [f"{QEMU} has no machine {target.qemu}"]
    images, skipped = {"zig cc": image}, []
    if shutil.which(GCC) is None:
        skipped.append(f"{GCC} is not installed")
    else:
        folder = scratch / "gcc"
        folder.mkdir()
        options = (*target.gcc, "-nostartfiles", "--specs=nosys.specs")
        images[GCC] = build.build(export, folder, name, target, [GCC], options)
    runs = []
    for compiler, path in images.items():
        said, status = _run(target.qemu, path)
        runs.append((f"{QEMU} {target.qemu}, {compiler}", said, status))
    return runs, skipped


def _run(machine: str, image: Path) -> tuple[str, int]:
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    quiet = ["-display", "none", "-monitor", "none", "-serial", "none"]
    return _said([QEMU, "-machine", machine, *quiet, *semihosting, "-kernel", str(image)])


def _said(command: list[str]) -> tuple[str, int]:
    """Both streams: where semihosting writes depends on QEMU's version."""
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=build.TIMEOUT,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VerifyError(f"{command[0]} did not run: {error}") from error
    return done.stdout, done.returncode
