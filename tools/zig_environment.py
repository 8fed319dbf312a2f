"""Lines for $GITHUB_ENV that make zig's Clang the compiler of a Windows build.

    python tools/zig_environment.py >> "$GITHUB_ENV"

The target is named: without one zig compiles for the very processor that it runs on.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))  # qornn is not installed yet
from qornn._io.zig import zig

TARGET = "x86_64-windows-gnu"


def main() -> None:
    """Print the compilers, and the generator of CMake that takes them."""
    path = zig()
    if path is None:
        raise SystemExit("zig is not installed; `pip install ziglang`")
    for name, command in (("CC", "cc"), ("CXX", "c++")):
        print(f"{name}={Path(path).as_posix()} {command} -target {TARGET}")
    print("CMAKE_GENERATOR=Ninja")


if __name__ == "__main__":
    main()
