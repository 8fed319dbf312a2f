"""What installing the package brings."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import qornn

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = ROOT / "constraints.txt"


def pip(*words):
    pinned = {"PIP_CONSTRAINT": str(CONSTRAINTS), "PIP_BUILD_CONSTRAINT": str(CONSTRAINTS)}
    done = subprocess.run(
        [sys.executable, "-m", "pip", *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, **pinned},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_version_stands_in_one_place():
    assert PROJECT["dynamic"] == ["version"]
    files = [ROOT / name for name in ("pyproject.toml", "CITATION.cff", "CMakeLists.txt", "mkdocs.yml", "README.md")]
    files += [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml", ".c", ".h", ".cpp", ".hpp")]
    files += (ROOT / "docs").glob("*.md")
    told = [path.relative_to(ROOT) for path in files if qornn.__version__ in path.read_text(encoding="utf-8")]
    assert told == [Path("src/qornn/__init__.py")]


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert versions[0][0] == qornn.__version__
    assert versions[-1][0] == "0.1.0"
    for number, date in versions[1:]:
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date), f"{number} is released, so it has a date"


def pinned():
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return dict(normal(*line.split("==")) for line in lines if not line.startswith("#"))


def normal(name, version, **_):
    return re.sub(r"[-_.]+", "-", name).lower(), version


def test_every_requirement_is_pinned():
    wanted = [
        *PROJECT["dependencies"],
        *(name for extra in PROJECT["optional-dependencies"].values() for name in extra),
    ]
    names = {normal(re.match(r"[\w.-]+", text)[0], "")[0] for text in wanted} - {"qornn"}
    assert not names - set(pinned())


@pytest.mark.full
def test_all_extras_resolve_together_and_every_version_is_pinned():
    """What is installed already is taken, so that torch is not fetched again."""
    here = dict(normal(**part) for part in json.loads(pip("list", "--format", "json", "--exclude-editable")))
    report = json.loads(pip("install", "-q", "--dry-run", "--report", "-", ".[dev,aeon,sktime]"))
    new = dict(normal(part["metadata"]["name"], part["metadata"]["version"]) for part in report["install"])
    assert new.pop("qornn") == qornn.__version__
    assert {"aeon", "sktime", "numba", "llvmlite", "pandas", "pytest-xdist", "numpy"} <= {*here, *new}
    assert new.items() <= pinned().items()


@pytest.mark.full
def test_the_wheel_is_typed_and_of_this_version(tmp_path):
    pip("wheel", "-q", "--no-deps", "-C", "wheel.cmake=false", "-w", tmp_path, ".")
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.startswith(f"qornn-{qornn.__version__}-")
    names = zipfile.ZipFile(wheel).namelist()
    assert "qornn/py.typed" in names
    assert not [name for name in names if "csrc" in name]
