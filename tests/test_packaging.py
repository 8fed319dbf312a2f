"""What installing the package brings."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

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


def test_the_workflows_are_valid():
    checker = Path(sys.executable).with_name("check-jsonschema")
    if not checker.exists():
        pytest.skip("check-jsonschema is not installed")
    for schema, files in (("workflows", "workflows/*.yml"), ("issue-forms", "ISSUE_TEMPLATE/[!c]*.yml")):
        paths = sorted((ROOT / ".github").glob(files))
        assert paths
        words = [checker, "--builtin-schema", f"vendor.github-{schema}", *paths]
        done = subprocess.run(list(map(str, words)), capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_tests_every_python_and_torch_that_is_promised():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["matrix"]["strategy"]["matrix"]
    told = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", line)]
    assert matrix["python"] == told
    assert PROJECT["requires-python"] == f">={told[0]}"
    assert f"torch>={matrix['torch'][0].removesuffix('.*')}" in PROJECT["dependencies"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_pre_commit_runs_what_make_test_runs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repository["repo"] for repository in hooks] == ["local"]
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks[0]["hooks"]}
    assert {"ruff", "mypy", "clang-format"} <= tools
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"$(BIN)/{tool}" in recipe for tool in ("ruff", "mypy", "clang-format"))


def test_a_wheel_runs_on_other_processors_of_its_kind():
    """Code for more than the plainest processor is in files of its own, and chosen at run time."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert "-march" not in text
    assert re.findall(r"-mavx\w*", text) == ["-mavx2", "-mavx512f"]
