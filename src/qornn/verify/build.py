"""Compilers: the host's own, `zig cc` from PyPI for devices, arm-none-eabi-gcc where installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from importlib.resources import files
from pathlib import Path
from typing import Final

from qornn._io.compiling import TIMEOUT, compile_there
from qornn._io.zig import zig
from qornn.errors import QornnError
from qornn.verify.folder import Export
from qornn.verify.targets import Target

LEVEL: Final = "-O2"
FLAGS: Final = ("-std=c99", LEVEL)
BARE: Final = (
    "-ffreestanding",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wl,--gc-sections",
    "-DEXAMPLE_SAY=board_say",
)
CODE_BYTES: Final = 8 * 1024  # start-up, example and model: three to six kB in practice
LONGEST: Final = 16 * 2**20  # bytes a replay may say: a difference tells three states


class VerifyError(QornnError):
    """Exported C that could not be compiled or run."""


def tool(name: str) -> str | None:
    """The path of a program in the absolute folders of PATH: "", "." and Windows' habit would find it right here."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    names = (name, f"{name}.exe") if sys.platform == "win32" else (name,)
    paths = (os.path.join(folder, file) for folder in folders for file in names)
    return next((found for found in map(shutil.which, paths) if found), None)


def host_compiler() -> list[str]:
    """$CC, or cc, gcc or clang, or zig."""
    if os.environ.get("CC", "").strip():
        return _named_by_user(os.environ["CC"])
    found = next((path for path in map(tool, ("cc", "gcc", "clang")) if path), None)
    if found:
        return [found]
    if path := zig():
        return [path, "cc"]
    raise VerifyError("no C compiler found (cc, gcc, clang); install one, or `pip install 'qornn[mcu]'`")


def cross_compiler(target: str) -> list[str]:
    """zig as a C compiler."""
    path = zig()
    if path is None:
        raise VerifyError(f"target {target} needs a cross compiler; `pip install 'qornn[mcu]'` brings ziglang")
    return [path, "cc"]


def named(compiler: str, asked: list[str], level: str, folder: Path) -> str:
    """A compiler for a record: its name, the version that it says when it is asked, and the level of optimization."""
    text, status = said(asked, folder)
    found = text.strip() if not status and re.fullmatch(r"[\w.+-]{1,40}", text.strip()) else "of an unknown version"
    return f"{compiler} {found} {level}"


def _named_by_user(CC: str) -> list[str]:
    try:
        words = shlex.split(CC)
    except ValueError as error:
        raise VerifyError(f"CC cannot be split into words ({error}): {CC!r}; correct or unset CC") from error
    path = os.path.abspath(words[0]) if os.path.dirname(words[0]) else tool(words[0])
    if path is None or shutil.which(path) is None:
        raise VerifyError(f"the compiler named by CC is not there: {CC!r}; correct or unset CC")
    return [path, *words[1:]]


def build_host(export: Export, folder: Path) -> Path:
    """An executable for this machine."""
    program = folder / ("replay.exe" if sys.platform == "win32" else "replay")
    compiled([*host_compiler(), *FLAGS, *map(str, export.put(folder)), "-o", str(program)], folder, "the host")
    return program


def build(
    export: Export, folder: Path, name: str, target: Target, compiler: list[str], options: tuple[str, ...]
) -> Path:
    """An image for a device."""
    check_size(export, name, target)
    image = folder / "image.elf"
    boards = files("qornn.verify") / "boards"
    words = {key: hex(getattr(target, key)) for key in ("flash", "flash_bytes", "ram", "ram_bytes")}
    words["name"] = export.name
    script = re.sub(r"@(\w+)@", lambda match: words[match[1]], (boards / "link.ld").read_text(encoding="utf-8"))
    (folder / "link.ld").write_text(script, encoding="utf-8")
    (folder / "qornn_board.c").write_bytes((boards / f"{target.family}.c").read_bytes())
    sources = [str(folder / "qornn_board.c"), *map(str, export.put(folder))]
    link = ["-T", str(folder / "link.ld"), "-o", str(image)]
    compiled([*compiler, *options, *FLAGS, *BARE, *sources, *link], folder, name)
    return image


def check_size(export: Export, name: str, target: Target) -> None:
    """Say that it cannot fit before the linker says it in its own words."""
    need = export.data_bytes + export.vectors_bytes + CODE_BYTES
    if need > target.flash_bytes:
        raise VerifyError(
            f"{export.name} does not fit {name}: its constants take {export.data_bytes} bytes, the test vectors "
            f"{export.vectors_bytes} and code some {CODE_BYTES}, together {need} of {target.flash_bytes} bytes of "
            f"flash; use fewer units or bits, or fewer --vector-steps"
        )
    if export.ram_bytes > target.ram_bytes * 3 // 4:
        raise VerifyError(
            f"{export.name} does not fit {name}: its state takes {export.ram_bytes} of {target.ram_bytes} bytes "
            "of RAM, and the stack needs room too; use fewer units"
        )


def compiled(command: list[str], folder: Path, name: str) -> None:
    """Run a compiler there; what it complains of is an error."""
    compile_there(command, folder, name, VerifyError)


def said(command: list[str], folder: Path) -> tuple[str, int]:
    """What a program says on both streams, and its status; neither its time nor its output is endless."""
    name = Path(command[0]).name
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        running = subprocess.Popen(command, cwd=folder, **pipes)  # type: ignore[call-overload]
    except OSError as error:
        raise VerifyError(f"{name} did not run: {error}") from error
    started, data = time.monotonic(), b""
    timer = threading.Timer(TIMEOUT, running.kill)
    timer.start()
    try:
        data = running.stdout.read(LONGEST + 1)
        if len(data) <= LONGEST:
            running.wait()
    finally:
        timer.cancel()
        running.kill()  # which does nothing to a process that has ended
        running.communicate()
    if len(data) > LONGEST or time.monotonic() - started >= TIMEOUT:
        raise VerifyError(f"{name} was stopped: it ran for {TIMEOUT} s or said more than {LONGEST} bytes")
    return data.decode(errors="replace"), running.returncode
