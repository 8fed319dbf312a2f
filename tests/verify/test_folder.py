"""verify trusts nothing in a folder: it compares, and compiles what it made itself."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from c_programs import make, needs_gcc

from qornn import export
from qornn.errors import QornnError, SettingsError
from qornn.verify import VerifyError, build, verify
from qornn.verify.folder import find

pytestmark = needs_gcc
DESTROY = """
#include <stdio.h>
int main(void) {{
    (void)fopen({path}, "w");
    puts("exact steps=38");
    return 0;
}}
"""


@pytest.fixture
def folder(tmp_path):
    return export.c(make(n_h=5), tmp_path / "out", name="net", vector_steps=3)


def test_an_edited_example_or_makefile_is_a_note_and_never_runs(tmp_path, folder):
    """Also where it says that all is exact."""
    trace = tmp_path / "ran"
    (folder / "test/test_main.c").write_text(DESTROY.format(path=f'"{trace}"'))
    (folder / "Makefile").write_text(f"RUNTIME := evil.c\nhost:\n\ttouch {trace}\n")
    (folder / "evil.c").write_text("#error")
    (folder / "qornn_evil.c").write_text("#error")
    (folder / "stdint.h").write_text("#error")  # beside the sources it would be included first
    (folder / "README.md").unlink()
    result = verify(folder)
    assert result.exact
    assert result.steps == 2 * 3 + 32
    assert {note.split()[0] for note in result.notes} == {"test/test_main.c", "Makefile", "README.md"}
    assert not trace.exists()


@pytest.mark.parametrize("file", ["src/net/mine.c", "src/stdint.h", "src/net/deep/a\n*/.c"])
def test_a_file_that_build_systems_would_find_is_a_note_and_never_used(folder, file):
    (folder / file).parent.mkdir(exist_ok=True, parents=True)
    (folder / file).write_text("#error")
    (folder / "docs").mkdir()
    (folder / "docs" / "notes.c").write_text("#error")  # nobody looks there
    result = verify(folder)
    assert result.exact
    said = file.replace("\n*/", " * /")
    assert result.notes == [f"{said} is not part of the export, but Arduino compiles what lies in src; it was not used"]


def test_of_many_such_files_ten_are_named(folder):
    for i in range(12):
        (folder / "src" / f"more{i}.c").write_text("")
    assert [note.split()[0] for note in find(folder).notes[:2]] == ["src/more0.c", "src/more1.c"]
    assert len(find(folder).notes) == 11
    assert find(folder).notes[-1] == "so are 2 more files in src"


@pytest.mark.parametrize(
    "file", ["src/net/net.c", "src/net.h", "test/net_vectors.h", "src/net/qornn.h", "src/net/qornn.c"]
)
@pytest.mark.parametrize("how", ["edited", "missing", "pipe"])
def test_a_source_that_differs_fails_with_its_name_and_is_not_compiled(folder, monkeypatch, file, how):
    monkeypatch.setattr("qornn.verify.build.compiled", lambda *_: pytest.fail("compiled"))
    path = folder / file
    if how == "edited":
        path.write_text(path.read_text() + "\n/* */\n")
    else:
        path.unlink()
        if how == "pipe":
            os.mkfifo(path)
        elif file == "test/net_vectors.h":  # which tells the name
            with pytest.raises(SettingsError, match="found none"):
                verify(folder)
            return
    result = verify(folder)
    assert result.exact is False
    assert result.difference.file == file
    assert file in str(result.difference)


def test_a_replaced_program_is_noticed(folder):
    make(n_h=5, seed=1).save(folder / "net.qornn")
    result = verify(folder)
    assert result.exact is False
    assert {"src/net/net.c", "test/net_vectors.h"} <= set(result.difference.file.split(", "))


def test_vectors_that_were_made_to_fit_are_noticed(folder):
    """C and vectors changed together, so that a replay of them would be exact."""
    other = export.c(make(n_h=5, seed=1), folder.parent / "other", name="net", vector_steps=3)
    for file in ("src/net/net.c", "src/net.h", "test/net_vectors.h"):
        shutil.copy(other / file, folder / file)
    assert verify(folder).exact is False


@pytest.mark.parametrize("options", [{"vector_steps": 17}, {"command": "qornn export ??/ '*/ x' ü \\ \n#error"}])
def test_the_options_of_an_export_are_found_in_its_files(tmp_path, options):
    folder = export.c(make(n_h=5), tmp_path / "out", name="net", **options)
    found = find(folder)
    assert (found.differing, found.notes) == ([], [])
    assert verify(folder).exact


def test_line_ends_may_be_those_of_another_system(folder):
    for path in folder.rglob("*.[ch]"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert verify(folder).exact


def test_a_folder_of_another_version_says_so(folder):
    path = folder / "test/net_vectors.h"
    text = path.read_text()
    path.write_text(re.sub(r"#define net_FORMAT \d+\n", "", text))
    with pytest.raises(SettingsError, match=r"another version of qornn .*format 1; .*export again: `qornn export"):
        verify(folder)
    path.write_text(text)
    header = (folder / "src/net.h").read_text()
    (folder / "src/net.h").write_text(re.sub(r"made by qornn \S+", "made by qornn 99.0.0", header, count=1))
    with pytest.raises(SettingsError, match=r"another version of qornn \(99\.0\.0"):
        verify(folder)


@pytest.mark.parametrize("steps", ["99999", "0", "1" * 6000, "-4"])
def test_a_number_of_steps_that_is_not_there_costs_nothing(folder, steps, monkeypatch):
    path = folder / "test/net_vectors.h"
    path.write_text(re.sub(r"net_STEPS \d+", f"net_STEPS {steps}", path.read_text()))
    assert verify(folder).difference.file == "test/net_vectors.h"


@pytest.mark.parametrize("name", ["a b", "x;touch", "qornn_x", "int", "é"])
def test_a_name_that_C_does_not_know_is_refused(folder, name):
    (folder / "test/net_vectors.h").rename(folder / "test" / f"{name}_vectors.h")
    with pytest.raises(QornnError):
        verify(folder)


@pytest.mark.parametrize(
    ("code", "limit"),
    [("while True: pass", {"TIMEOUT": 1.0}), ("while True: print('exact steps=38')", {"LONGEST": 4096})],
)
def test_time_and_output_of_a_replay_are_bounded(tmp_path, monkeypatch, code, limit):
    for name, value in limit.items():
        monkeypatch.setattr(build, name, value)
    with pytest.raises(VerifyError, match="was stopped"):
        build.said([sys.executable, "-I", "-S", "-c", code], tmp_path)
    assert build.said([sys.executable, "-I", "-S", "-c", "print(3)"], tmp_path) == ("3\n", 0)


@pytest.mark.parametrize("file", ["Makefile", "src/net/qornn.h", "src/net/net.c"])
def test_a_file_far_larger_than_exported_is_not_read(folder, file, monkeypatch):
    with (folder / file).open("r+b") as grown:
        grown.truncate(2**29)  # a hole: it takes no room on the disk
    read, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or read_bytes(path))
    export = find(folder)
    assert file in export.differing or export.notes
    assert folder / file not in read
