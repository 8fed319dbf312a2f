"""The docs are run, not believed: every block of every page, in order, in a folder like a fresh checkout."""

import ast
import contextlib
import doctest
import importlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import qornn
from qornn import zoo
from qornn._io.zig import zig
from qornn.verify import simavr

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w*)[^\S\n]*(?:title=\"(.+?)\")?[^\S\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CHECKOUT = ("Makefile", "constraints.txt", "examples", "pyproject.toml", "src", "tests")  # what commands may lean on
SHORTER = {"train": ["--steps", "20"], "fit": ["--epochs", "3"]}  # options added to commands that would train for long
# Commands that are shown and not run, by how they begin, with the reason.
NOT_RUN = {
    "make demo": "trains for a minute; tests/test_demo.py runs what it runs",
    "qornn demo": "trains for a minute; tests/test_demo.py runs it with less training",
    "pip install": "would install the package that is being tested",
    "torchrun --nproc-per-node": "tests/train/test_run.py runs two processes",
    "torchrun --nnodes": "needs two hosts",
    "qornn train pmnist": "needs a download",
    "qornn reproduce performance --cells": "trains for an hour; tests/reproduce runs small cells",
    "qornn reproduce performance --budget": "trains for hours; tests/reproduce runs small cells",
    "qornn reproduce performance --engine": "trains for days; tests/reproduce runs small cells on Ray",
    "python examples/keywords/": "needs datasets that have to be fetched; tests/examples runs it on small ones",
    "python examples/real/": "needs datasets that have to be fetched; tests/examples runs it on small ones",
    "python examples/ecg/": "needs recordings that have to be fetched; tests/examples runs it on made-up ones",
    "qornn bench": "needs an idle machine; tests/bench runs it at a small size",
}
if lacking := simavr.missing():
    NOT_RUN["qornn verify runs/digits_c --target atmega328p"] = lacking


@dataclass
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    title: str | None
    body: str

    def __str__(self):
        return f"docs/{self.page}:{self.line}"


@dataclass
class Reader:
    """Someone who types in what a page says: one shell, one Python, one folder."""

    folder: Path
    scope: dict = field(default_factory=dict)
    shown: str = ""  # by the last block
    done: list = field(default_factory=list)  # blocks that were run or compared
    passed_over: list = field(default_factory=list)  # commands of NOT_RUN

    def read(self, block, following):
        fails = following is not None and following.language == "text" and following.body.startswith("error: ")
        act = getattr(self, f"_{block.language}", None)
        assert act is not None, f"{block}: nobody runs a block of {block.language or 'no language'}"
        if block.language != "text":
            self.shown = ""
        act(block, fails)
        self.done.append(block)

    def _python(self, block, fails):
        if block.title is not None:
            file = shown_file(block)
            sys.path.insert(0, str(file.parent))
            importlib.import_module(file.stem)
            return
        code = compile("\n" * block.line + block.body, str(block), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(code, self.scope)
        self.shown = shown.getvalue()

    def _console(self, block, fails):
        lines = block.body.splitlines()
        for line in lines:
            if any(line.startswith(start) for start in NOT_RUN):
                self.passed_over.append(line)
                continue
            code, self.shown = self._command(line)
            expected = 1 if fails and line == lines[-1] else 0
            assert code == expected, f"{block}: `{line}` ended with {code}\n{self.shown}"

    _sh = _console

    def _command(self, line):
        words = shlex.split(line, comments=True)
        if words[0] != "qornn":
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            ran = subprocess.run(line, shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True)
            return ran.returncode, ran.stdout + ran.stderr
        return in_process([*words[1:], *(o for o in SHORTER.get(words[1], []) if "--dry-run" not in words)])

    def _c(self, block, fails):
        """A file of the repository, or written to its file; a command of the page compiles that."""
        if is_shown(block):
            shown_file(block)
        else:
            (self.folder / block.title).write_text(block.body, encoding="utf-8")

    def _csv(self, block, fails):
        (self.folder / block.title).write_text(block.body, encoding="utf-8")

    def _text(self, block, fails):
        """What the block before showed; `...` stands for what differs from run to run."""
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(block.body, self.shown, flags)
        assert same, f"{block}: the page says\n{block.body}\nbut the block before showed\n{self.shown}"


def is_shown(block):
    """Whether the block is a file of the repository."""
    return (ROOT / block.title).is_file()


def shown_file(block):
    file = ROOT / block.title
    assert block.body == file.read_text(encoding="utf-8"), f"{block} is not {block.title}"
    return file


def in_process(words):
    """The command line without a new process, which would cost the import of torch: (exit code, what it printed)."""
    from qornn.cli import main

    before, sys.argv = sys.argv, ["qornn", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.argv = before
    return code, out.getvalue() + err.getvalue()


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, text.count("\n", 0, found.start()) + 1, found[1], found[2], found[3])
        for found in FENCE.finditer(text)
    ]


def commands_of(blocks):
    return [line for block in blocks if block.language in ("console", "sh") for line in block.body.splitlines()]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder like the repository, where what is written stays apart; what pages register or load is undone."""
    from qornn.export.c99.layers import EMITTERS
    from qornn.export.onnx_scan.layers import LAYERS as NODES
    from qornn.integer.engine.structs import FOLDERS
    from qornn.integer.layers import LAYERS
    from qornn.integer.matrices import MATRICES
    from qornn.maps import MAPS
    from qornn.tasks import TASKS

    for name in CHECKOUT:
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QORNN_NO_DOWNLOAD", "1")
    monkeypatch.setattr(sys, "path", list(sys.path))
    registries, modules = (EMITTERS, NODES, LAYERS, MATRICES, MAPS, TASKS), set(sys.modules)
    kept, folders = [dict(registry) for registry in registries], list(FOLDERS)
    yield tmp_path
    for registry, entries in zip(registries, kept, strict=True):
        registry.clear()
        registry.update(entries)
    FOLDERS[:] = folders
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "examples")):
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_block_runs(page, checkout):
    blocks = blocks_of(page)
    reader = Reader(checkout)
    for i, block in enumerate(blocks):
        reader.read(block, blocks[i + 1] if i + 1 < len(blocks) else None)
    assert reader.done == blocks
    # What is not run is a command of NOT_RUN and nothing else, and every C block is compiled by a command of its page.
    commands = commands_of(blocks)
    assert reader.passed_over == [line for line in commands if line.startswith(tuple(NOT_RUN))]
    for block in blocks:
        if block.language == "c" and not is_shown(block):
            assert any(line.startswith("cc ") and block.title in line for line in commands), f"{block} is not compiled"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_no_block_escapes(page):
    """Fences are all of the form that is run: a tilde, an indented or an unclosed one would be passed over."""
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(blocks_of(page))
    assert "    qornn " not in re.sub(FENCE, "", text), "a command in an indented block"


def test_what_is_not_run_is_still_shown():
    """An entry of NOT_RUN that no page needs any more goes."""
    lines = [line for page in PAGES for line in commands_of(blocks_of(page))]
    for start in NOT_RUN:
        assert any(line.startswith(start) for line in lines), start


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_activation_bits_table_is_its_record():
    made = tool("activation_bits")
    page = (ROOT / "docs" / "integers.md").read_text(encoding="utf-8")
    assert "| digits, 4 bits |" in page
    assert made.with_table(page, made.recorded()) == page


def test_the_measured_tables_are_their_records():
    made = tool("docs_tables")
    found = {name for page in made.pages() for _, name, _ in made.BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert found == made.TABLES.keys()
    for page in made.pages():
        text = page.read_text(encoding="utf-8")
        assert made.with_tables(text) == text, f"{page.name} is old: python tools/docs_tables.py --record"


def test_every_equation_is_where_the_theory_says():
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| `([\w/]+\.py)` \| `([\w.]+)` \|$", text, re.MULTILINE)
    assert len(rows) == text.split("## Equations and code")[1].split("\n## ")[0].count("\n|") - 2
    for file, name in rows:
        scope = ast.parse((ROOT / "src" / "qornn" / file).read_text(encoding="utf-8")).body
        for part in name.split("."):
            found = [node for node in scope if getattr(node, "name", None) == part]
            assert found, f"theory.md: no {name} in {file}"
            scope = getattr(found[0], "body", [])


def test_the_api_page_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = {path.rsplit(".", 1)[-1] for path in re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)}
    elsewhere = {"QornnError": "errors", "export": "c"}  # a module's classes, and a room's functions
    assert {elsewhere.get(name, name) for name in qornn.__all__} <= shown


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="the extra [docs] is not installed")
    pytest.importorskip("mkdocstrings")
    if zig() is None:
        pytest.skip("ziglang is not installed")  # of the pages of the zoo
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an announcement of the theme's, not of this site
    done = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_builds_strictly(site):
    for page in PAGES:
        assert (site / f"{page.stem}.html").is_file()
    listed = (site / "browser.html").read_text(encoding="utf-8")
    for name in zoo.names():
        assert f'href="zoo/{name}/index.html"' in listed
        assert (site / "zoo" / name / "model.js").is_file()
    api = (site / "api.html").read_text(encoding="utf-8")
    assert "W = map(W_raw)" not in api  # module docstrings are no reference
    assert "an orthogonal recurrence (paper, Vanilla RNNs)" in api


@pytest.mark.slow
def test_the_site_needs_no_network(site):
    outside = r"=[\"']?(?:https?:)?//"
    loads = re.compile(rf"<(?:script|img|iframe|source)[^>]*\ssrc{outside}|<link[^>]*\shref{outside}")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not loads.search(text), f"{page.name}: {loads.search(text)[0]}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import[^;]*https?:", style.read_text(encoding="utf-8")), style


def test_the_site_speaks_of_the_project_alone():
    for page in [*PAGES, ROOT / "mkdocs.yml", *(ROOT / "examples" / "extend").glob("*.*")]:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"/work/|/home/|/root/|/tmp/|pypi\.org|pythonhosted|/opt/", text), page
