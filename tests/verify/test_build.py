"""Compilers are called by their path: nothing that lies in the working folder is run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from c_programs import make, needs_gcc

from qornn import export
from qornn.verify import VerifyError, build, verify

MODULES = ("ziglang", "unicorn", "numpy", "torch", "safetensors", "typer", "qornn", "subprocess", "re")
TOOLS = ("cc", "gcc", "clang", "zig", "qemu-system-arm", "arm-none-eabi-gcc")


@pytest.fixture
def hostile(tmp_path):
    """A folder of downloads: modules and programs that leave a trace when they run."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    for name in TOOLS:
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path / 'ran'}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.slow
@needs_gcc
@pytest.mark.parametrize("start", [["qornn"], [sys.executable, "-m", "qornn"]], ids=["script", "module"])
def test_nothing_in_the_working_folder_is_run(tmp_path, hostile, start):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    out = export.c(make(n_h=5), tmp_path / "out", name="net", vector_steps=3)
    if start == ["qornn"]:
        start = [str(Path(sys.executable).with_name("qornn"))]
    else:  # Python itself looks there for the package and for what starts it, before a line of ours runs
        for name in ("qornn", "subprocess", "re"):
            (hostile / f"{name}.py").unlink()
    path = os.pathsep + os.environ["PATH"]  # an empty entry is the working folder
    words = [*start, "verify", str(out), "--target"]
    for target in ("host", "cortex-m4"):
        done = subprocess.run([*words, target], cwd=hostile, env={**os.environ, "PATH": path}, capture_output=True)
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


@pytest.mark.slow
@needs_gcc
def test_a_compiler_of_ones_own_may_lie_anywhere(tmp_path, monkeypatch):
    """CC is what the user says it is, also where it is said as seen from here."""
    out = export.c(make(n_h=5), tmp_path / "out", name="net", vector_steps=3)
    script = tmp_path / "mycc"
    script.write_text('#!/bin/sh\nexec gcc "$@"\n')
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "./mycc -O1")
    assert verify(out).exact


@pytest.mark.parametrize("words", ["gcc 'x", '"" -O2', "no-such-compiler"])
def test_a_CC_that_names_no_program_is_refused_in_one_line(monkeypatch, words):
    monkeypatch.setenv("CC", words)
    with pytest.raises(VerifyError, match="CC") as caught:
        build.host_compiler()
    assert "\n" not in str(caught.value)


@needs_gcc
@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_blank_CC_is_none(monkeypatch, blank):
    monkeypatch.setenv("CC", blank)
    assert os.path.isabs(build.host_compiler()[0])
