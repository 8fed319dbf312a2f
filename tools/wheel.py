"""Build a wheel, install it in an empty environment, and evaluate a network of the zoo there without a compiler.

    python tools/wheel.py [--out build/wheel]   # `make wheel`
    python tools/wheel.py --engines             # what the qornn that is installed here runs on; fails unless native

What runs is the installed package alone: the working folder is empty, and PATH is the environment's own folder.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("recurrence", "runtime")  # that have a compiled library
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "clang++", "cl", "zig", "cmake", "ninja")
ENGINES = """
import json, qornn
from qornn.integer.engine.run import in_use
from qornn.recurrence import in_use as trained_on
program = qornn.load("zoo:digits-k4")
print(json.dumps({"package": qornn.__file__, "training": trained_on(), "inference": in_use(program)}))
"""


def main() -> None:
    """Do it all, or say what is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheel", help="Folder of the wheel.")
    parser.add_argument("--engines", action="store_true", help="Only say what the qornn installed here runs on.")
    options = parser.parse_args()
    if options.engines:
        print(json.dumps(engines(Path(sys.executable), Path.cwd()), indent=2))
        return
    wheel = build(options.out)
    wrong = contents(zipfile.ZipFile(wheel).namelist())
    if wrong:
        raise SystemExit(f"{wheel.name} is not what it should be: {'; '.join(wrong)}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, all files there and no others")
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(tried(wheel, Path(place)), indent=2))


def build(out: Path) -> Path:
    """The wheel, made with the compiler of this machine."""
    shutil.rmtree(out, ignore_errors=True)
    _run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, ROOT], ROOT)
    (wheel,) = out.glob("*.whl")
    return wheel


def contents(names: list[str]) -> list[str]:
    """What is wrong with the names in a wheel: all files of src/qornn belong there but csrc, and the libraries."""
    package = ROOT / "src"
    files = {path.relative_to(package).as_posix() for path in (package / "qornn").rglob("*") if path.is_file()}
    wanted = {name for name in files if not {"csrc", "__pycache__"} & set(name.split("/"))}
    held = {name for name in names if not name.split("/")[0].endswith(".dist-info") and not name.endswith("/")}
    libraries = {name for room in ROOMS for name in held if name.startswith(f"qornn/{room}/libqornn_{room}.")}
    wrong = [f"{name} is missing" for name in sorted(wanted - held)]
    wrong += [f"{name} does not belong there" for name in sorted(held - wanted - libraries)]
    if len(libraries) != len(ROOMS):
        wrong.append(f"native libraries of {', '.join(ROOMS)} expected, got {sorted(libraries) or 'none'}")
    return wrong


def tried(wheel: Path, place: Path) -> dict:
    """What the wheel does in an environment and a folder of its own."""
    venv.create(place / "environment", with_pip=True)
    scripts = place / "environment" / ("Scripts" if os.name == "nt" else "bin")
    python, folder = scripts / "python", place / "empty"
    folder.mkdir()
    _run([python, "-m", "pip", "install", "-q", wheel], folder)
    bare = {"PATH": str(scripts), "HOME": str(folder)}
    bare |= {name: os.environ[name] for name in ("SYSTEMROOT", "OMP_NUM_THREADS") if name in os.environ}
    there = [name for name in COMPILERS if shutil.which(name, path=bare["PATH"])]
    if there:
        raise SystemExit(f"the environment should hold no compiler, and has {', '.join(there)}")
    found = engines(python, folder, bare)
    if not Path(found["package"]).is_relative_to(place):
        raise SystemExit(f"another qornn than the wheel's was imported: {found['package']}")
    command = [scripts / "qornn", "eval", "zoo:digits-k4", "--json"]
    figures = json.loads(_run(command, folder, bare).stdout)
    # The proof that eval itself runs the library: with a wrong name for it, it must fail and not run something else.
    absent = subprocess.run(command, cwd=folder, env=bare | {"QORNN_RUNTIME_LIBRARY": "none"}, capture_output=True)
    if absent.returncode == 0:
        raise SystemExit("eval did not use the native library")
    return {**found, "eval": figures}


def engines(python: Path, folder: Path, env: dict | None = None) -> dict:
    """What the qornn of that Python runs on; an error unless both libraries are loaded."""
    found = json.loads(_run([python, "-c", ENGINES], folder, env).stdout)
    if not all(found[kind].startswith("native") for kind in ("training", "inference")):
        raise SystemExit(f"the native libraries are not in use: {found}")
    return found


def _run(words: list, folder: Path, env: dict | None = None) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in words], cwd=folder, env=env, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done


if __name__ == "__main__":
    main()
