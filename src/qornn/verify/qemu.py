"""A second opinion where it is installed: qemu-system-arm, and images by arm-none-eabi-gcc."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qornn.verify import build
from qornn.verify.folder import Export
from qornn.verify.targets import Target

QEMU: Final = "qemu-system-arm"
GCC: Final = "arm-none-eabi-gcc"
SPECS: Final = "nosys.specs"


def outputs(
    export: Export, scratch: Path, image: Path, name: str, target: Target
) -> tuple[list[tuple[str, str, int]], list[str]]:
    """(where, what it said, status) of every run, and what was skipped for want of a tool."""
    if target.qemu is None:
        return [], []
    qemu, gcc = build.tool(QEMU), build.tool(GCC)
    if qemu is None:
        return [], [f"{QEMU} is not installed"]
    if target.qemu not in build.said([qemu, "-machine", "help"], scratch)[0]:
        return [], [f"{QEMU} has no machine {target.qemu}"]
    images, skipped = {"zig cc": image}, []
    if gcc is None:
        skipped.append(f"{GCC} is not installed")
    elif not Path(build.said([gcc, f"-print-file-name={SPECS}"], scratch)[0].strip()).is_absolute():
        skipped.append(f"{GCC} is installed without newlib ({SPECS})")
    else:
        folder = scratch / "gcc"
        folder.mkdir()
        options = (*target.gcc, "-nostartfiles", f"--specs={SPECS}")
        images[GCC] = build.build(export, folder, name, target, [gcc], options)
    runs = []
    for compiler, path in images.items():
        said, status = _run([qemu, "-machine", target.qemu], path)
        runs.append((f"{QEMU} {target.qemu}, {compiler}", said, status))
    return runs, skipped


def _run(machine: list[str], image: Path) -> tuple[str, int]:
    semihosting = ["-semihosting-config", "enable=on,target=native"]
    quiet = ["-display", "none", "-monitor", "none", "-serial", "none"]
    # Some versions write what semihosting says to one stream, some to the other.
    return build.said([*machine, *quiet, *semihosting, "-kernel", str(image)], image.parent)
