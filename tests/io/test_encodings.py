"""Every text file and every pipe of text names its encoding: the locale's own may be ASCII."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for folder in ("src", "examples", "tools") for path in sorted((ROOT / folder).rglob("*.py"))]
PROCESSES = {"run", "Popen", "check_output"}


def unnamed(tree):
    """Lines that read or write text in the locale's encoding."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and "encoding" not in {word.arg for word in node.keywords} and _is_text(node):
            yield node.lineno


def _is_text(call):
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = getattr(getattr(call.func, "value", None), "id", "")
    words = {word.arg: word.value for word in call.keywords}
    if name in ("read_text", "write_text"):
        return isinstance(call.func, ast.Attribute)  # and no function of ours by that name
    if name == "fdopen" or (name == "open" and owner != "os"):
        place = 0 if isinstance(call.func, ast.Attribute) and name == "open" else 1  # path.open(mode), open(path, mode)
        mode = words.get("mode", call.args[place] if len(call.args) > place else ast.Constant("r"))
        return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))
    return name in PROCESSES and bool({"text", "universal_newlines", "errors"} & words.keys())


TEXT = (
    "open(p)",
    "open(p, 'w')",
    "p.open('a+')",
    "p.read_text()",
    "p.write_text(t)",
    "os.fdopen(h)",
    "run(c, text=True)",
)
OTHER = "open(p, 'rb')", "open(p, encoding='ascii')", "p.open('rb')", "os.open(p, 0)", "run(c)", "os.fdopen(h, 'wb')"


def test_the_search_finds_what_it_should():
    assert [line for line in TEXT if not list(unnamed(ast.parse(line)))] == []
    assert [line for line in OTHER if list(unnamed(ast.parse(line)))] == []


@pytest.mark.slow
def test_text_has_an_encoding():
    trees = {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    assert [f"{path}:{line}" for path, tree in trees.items() for line in unnamed(tree)] == []


COMMANDS = """
import os, sys
from qornn.cli import main
assert sys.stdout.encoding.lower() not in ("utf-8", "utf8"), sys.stdout.encoding
for words in (
    ["reproduce", "sizes", "--results", "results"],
    ["export", "zoo:digits-k4", "--to", "c", "--name", "net", "-o", os.fsdecode(b"\\xc3\\xbc")],
    ["verify", os.fsdecode(b"\\xc3\\xbc")],
    ["size", "copy"],
):
    sys.argv = ["qornn", *words]
    try:
        main()
    except SystemExit as stopped:
        assert not stopped.code, words
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no locale C")
def test_commands_work_in_a_locale_without_utf8(tmp_path):
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "PYTHON"))}
    command = [sys.executable, "-c", COMMANDS]
    done = subprocess.run(command, cwd=tmp_path, env=environment | locale, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert b"Bj\\xf6rck" in done.stdout
    assert "\nNext: qornn verify 'ü' --target".encode() in done.stdout
