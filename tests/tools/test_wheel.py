"""`make wheel`: what belongs into a wheel, and that it runs natively where there is no compiler."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import wheel

import qornn

ROOT = Path(__file__).parents[2]
LIBRARIES = ["qornn/recurrence/libqornn_recurrence.so", "qornn/runtime/libqornn_runtime.so"]


@pytest.fixture
def names():
    package = ROOT / "src"
    found = (path.relative_to(package).as_posix() for path in (package / "qornn").rglob("*") if path.is_file())
    own = [name for name in found if "csrc/" not in name and "__pycache__" not in name]
    return [*own, *LIBRARIES, "qornn-1.dist-info/METADATA"]


def test_all_files_and_both_libraries_are_a_wheel(names):
    assert wheel.contents(names) == []
    known = ("py.typed", "zoo/digits-k4.qornn", "runtime/qornn.h", "runtime/qornn_mix.c")
    assert {f"qornn/{name}" for name in known} <= {*names}


def test_what_is_missing_or_does_not_belong_is_named(names):
    names.remove("qornn/py.typed")
    names.remove(LIBRARIES[0])
    found = "; ".join(wheel.contents([*names, "tests/test_docs.py", "qornn/recurrence/csrc/mix.cpp", ".venv/x"]))
    for part in ("py.typed is missing", "native libraries", "tests/test_docs.py", "csrc/mix.cpp", ".venv/x"):
        assert part in found


@pytest.mark.full
def test_a_wheel_runs_natively_in_an_empty_environment(tmp_path):
    """Fetches torch and the others where pip has not kept them."""
    pinned = {name: str(ROOT / "constraints.txt") for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")}
    words = [sys.executable, ROOT / "tools" / "wheel.py", "--out", tmp_path]
    done = subprocess.run(list(map(str, words)), env={**os.environ, **pinned}, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"qornn-{qornn.__version__}-py3-none-")
    found = json.loads(done.stdout[done.stdout.index("{") :])
    assert found["training"].startswith("native")
    assert found["inference"].startswith("native")
    assert found["eval"]["value"] > 90  # per cent of digits
