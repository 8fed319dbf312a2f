"""The folder of an exported program: its files, its name and options, and what of others it leaves alone."""

import errno
import json
import os
import re
import shutil
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from c_programs import make, needs_gcc

import qornn
from killing import killed_at_rename
from qornn import export
from qornn._io import files
from qornn.errors import QornnError, SettingsError, WriteError
from qornn.export.c99 import folder as c_folder
from qornn.verify import verify

FLAT = Path(__file__).parents[1] / "verify" / "flat_folders.tar.xz"  # exported before the folder was a library
RUNTIME = Path(qornn.__file__).parent / "runtime"


@pytest.fixture
def folder(tmp_path):
    return export.c(make(), tmp_path / "out", name="net")


def files_in(folder):
    """By their paths in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("struct", ["input", "recurrent", "readout"])
def test_the_struct_has_the_fields_we_initialise(folder, struct):
    """In that order: they are initialised by position, since C++ has no other way."""
    header = (RUNTIME / f"qornn_{struct}.h").read_text()
    body = re.search(rf"typedef struct \{{([^{{}}]*)\}} qornn_{struct};", header)[1]
    statements = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).split(";")
    fields = [re.search(r"\w+$", part.strip())[0] for line in statements if line.strip() for part in line.split(",")]
    model = (folder / "src/net/net.c").read_text()
    made = re.search(rf"static const qornn_{struct} \w+ = \{{(.*?)\n\}};", model, re.DOTALL)[1]
    assert re.findall(r"/\* (\w+) \*/", made) == fields


@needs_gcc
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_its_makefile_runs_the_vectors(folder):
    done = subprocess.run(["make", "-s", "-C", str(folder), "host"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "exact steps=160"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "5pm",
        "p-m",
        "pm 5",
        "int",
        "class",
        "qornn",
        "qornn_x",
        "stdint",
        "example_main",
        "test_main",
        "Arduino",
        "all",
        "test",
        "_x",
        "a__b",
        "é",
        "x" * 41,
    ],
)
def test_names_that_c_refuses_are_refused(tmp_path, name):
    with pytest.raises(SettingsError, match=r"name|hide"):
        export.c(make(), tmp_path / "out", name=name)
    assert not list(tmp_path.iterdir())


def test_folders_of_others_are_left_alone(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    export.c(make(), out, name="net")  # empty: fine
    (out / "main.c").write_text("mine")
    export.c(make(seed=1), out, name="net")  # ours: replaced, and what is not ours stays
    assert (out / "main.c").read_text() == "mine"
    with pytest.raises(SettingsError, match=r"another model \(net\)"):
        export.c(make(), out, name="other")
    shutil.rmtree(out)
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(SettingsError, match="no C export"):
        export.c(make(), out, name="net")
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]
    with pytest.raises(SettingsError, match="is a file"):
        export.c(make(), out / "thesis.tex", name="net")


def test_words_in_a_readme_make_no_folder_ours(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "README.md").write_text("The network was made by qornn 0.1.0: see below.\n")
    make().save(out / "net.qornn")
    for place in (out / "test", out):  # of either layout
        place.mkdir(exist_ok=True)
        (place / "net_vectors.h").write_text("/* made by qornn */\n")
        before = files_in(out)
        with pytest.raises(SettingsError, match="no C export"):
            export.c(make(), out, name="net")
        assert files_in(out) == before
        (place / "net_vectors.h").unlink()


def test_an_export_with_another_readme_or_a_foreign_program_is_no_longer_ours(folder):
    ours = (folder / "README.md").read_text()
    (folder / "README.md").write_text("my own words")
    with pytest.raises(SettingsError, match="no C export"):
        export.c(make(), folder, name="net")
    (folder / "README.md").write_text(ours)
    (folder / "net.qornn").write_bytes(b"something")
    with pytest.raises(SettingsError, match="no C export"):
        export.c(make(), folder, name="net")
    (folder / "README.md").unlink()
    make().save(folder / "net.qornn")
    export.c(make(), folder, name="net")
    assert (folder / "README.md").read_text() == ours


@pytest.mark.slow
@pytest.mark.parametrize("there", [False, True])
def test_an_export_killed_at_any_rename_is_made_whole_by_the_next(there, tmp_path):
    whole = export.c(make(), tmp_path / "whole", name="net", command="x")
    wanted = files_in(whole)
    for number in (1, 2, 10, len(wanted)):
        out = tmp_path / str(number)
        if there:
            out.mkdir()
        assert killed_at_rename(number, lambda out=out: export.c(make(), out, name="net", command="x"))
        assert len([path for path in files_in(out) if not Path(path).name.startswith(".")]) == number - 1
        if number > 1:
            with pytest.raises(SettingsError, match=r"no C export|another model"):
                export.c(make(), out, name="other")
        export.c(make(), out, name="net", command="x")
        assert files_in(out) == wanted


def test_an_existing_folder_stays_itself(tmp_path, monkeypatch):
    """A shell may stand in it, a link may lead to it."""
    here, target, link = tmp_path / "here", tmp_path / "target", tmp_path / "link"
    here.mkdir()
    target.mkdir()
    link.symlink_to(target)
    node = here.stat().st_ino
    monkeypatch.chdir(here)
    export.c(make(), ".", name="net")
    assert here.stat().st_ino == node
    assert (here / "src/net/net.c").is_file()
    export.c(make(), link, name="net")
    assert link.is_symlink()
    assert (target / "src/net/net.c").is_file()
    for folder in (here, target):
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert {path.name for path in tmp_path.iterdir()} == {"here", "target", "link"}


@pytest.mark.parametrize("name", ["src/net.h", "src/net/net.c", "test/net_vectors.h", "README.md", "Makefile"])
def test_a_file_however_large_is_not_read_whole_to_tell_whose_it_is(folder, name):
    with (folder / name).open("r+b") as grown:
        grown.truncate(2**26)  # a hole: it takes no room on the disk
    tracemalloc.start()
    try:
        export.c(make(), folder, name="net")
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["Makefile", "test/test_main.c", "src/net/qornn.h"])
def test_exporting_again_writes_to_nothing_outside_the_folder(folder, tmp_path, name):
    """Somebody else may have packed it, with links."""
    mine = tmp_path / "mine"
    mine.write_text("years of work")
    ours = (folder / name).read_bytes()
    (folder / name).unlink()
    (folder / name).symlink_to(mine)
    export.c(make(), folder, name="net")
    assert mine.read_text() == "years of work"
    assert not (folder / name).is_symlink()
    assert (folder / name).read_bytes() == ours


@pytest.mark.parametrize("place", ["src", "src/net", "examples/net", "zephyr"])
def test_a_link_in_place_of_a_folder_leads_nowhere(folder, tmp_path, place):
    mine = tmp_path / "mine"
    mine.mkdir()
    shutil.copytree(folder / place, mine, dirs_exist_ok=True)
    before = files_in(mine)
    shutil.rmtree(folder / place)
    (folder / place).symlink_to(mine)
    export.c(make(seed=1), folder, name="net")
    assert files_in(mine) == before
    assert not (folder / place).is_symlink()
    assert verify(folder).exact


@needs_gcc
def test_exporting_again_replaces_a_flat_folder_and_leaves_what_is_not_ours(tmp_path):
    with tarfile.open(FLAT) as packed:
        packed.extractall(tmp_path / "packed", filter="data")
    shutil.copytree(tmp_path / "packed" / "dense", tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "packed")
    (tmp_path / "qornn_mine.c").write_text("int main(void) { return 3; }")
    makefile = tmp_path / "Makefile"
    makefile.write_text(makefile.read_text().replace("RUNTIME := ", "RUNTIME := ../x.c qornn_gone.h "))
    export.c(make(n_h=5), tmp_path, name="net")
    fresh = export.c(make(n_h=5), tmp_path / "fresh", name="net")
    assert {path.name for path in tmp_path.iterdir()} - {path.name for path in fresh.iterdir()} == {
        "qornn_mine.c",
        "fresh",
    }
    assert verify(tmp_path).exact  # what is not ours is not compiled either


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    old = export.c(make(), tmp_path / "old", name="net")
    before = files_in(old)
    real, written = files.flush, []

    def full(file, **how):
        written.append(file)
        if len(written) % 10 == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, **how)

    monkeypatch.setattr(files, "flush", full)
    (tmp_path / "empty").mkdir()
    for out in (
        tmp_path / "new",
        tmp_path / "a" / "b" / "new",
        tmp_path / "empty" / "c" / "new",
        tmp_path / "empty",
        old,
    ):
        with pytest.raises(WriteError, match="No space left"):
            export.c(make(seed=1), out, name="net")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "old"]
    assert not list((tmp_path / "empty").iterdir())
    assert files_in(old) == before


@pytest.mark.parametrize(
    "options",
    [{"layout": "dense"}, {"layout": "bytes"}, {"vector_steps": 0}, {"vector_steps": 10**9}, {"vector_steps": 2.5}],
)
def test_bad_options_are_refused(tmp_path, options):
    with pytest.raises(QornnError, match=r"layout|vector_steps"):
        export.c(make(), tmp_path / "out", name="net", **options)


def test_the_readme_names_the_options_that_change_rounding(folder):
    text = (folder / "README.md").read_text()
    for option in ("-ffast-math", "-fassociative-math", "-ffp-contract=fast"):
        assert option in text


def test_no_file_says_where_the_folder_lay(tmp_path):
    out = export.c(make(n_h=5), tmp_path / "private" / "out", name="net", vector_steps=1)
    assert "qornn.export.c(program, 'out', name='net')" in (out / "src/net.h").read_text()
    assert not [name for name, data in files_in(out).items() if b"private" in data]


def test_templates_use_only_known_words(folder):
    for name, data in files_in(folder).items():
        if not name.endswith(".qornn"):
            assert not re.search(r"@\w+@", data.decode())
    assert c_folder.MARKER in (folder / "README.md").read_text()


@pytest.mark.slow
@needs_gcc
def test_command_line(qornn_command, tmp_path):
    program, out = tmp_path / "p.qornn", tmp_path / "out"
    make(n_h=5).save(program)
    found = json.loads(qornn_command("export", program, "--to", "c", "-o", out, "--name", "net", "--json").stdout)
    assert found["name"] == "net"
    assert "src/net/net.c" in found["files"]
    assert "qornn export p.qornn --to c -o out --name net --json\n" in (out / "src/net.h").read_text()
    (out / "mine.txt").write_text("mine")
    again = json.loads(qornn_command("export", program, "--to", "c", "-o", out, "--name", "net", "--json").stdout)
    assert again["files"] == found["files"]
    assert set(found["files"]) == files_in(out).keys() - {"mine.txt"}
    seen = json.loads(qornn_command("verify", out, "--json").stdout)
    assert (seen["target"], seen["steps"], seen["exact"]) == ("host", 160, True)
    text = (out / "src/net/net.c").read_text()
    (out / "src/net/net.c").write_text(re.sub(r"(net_layer0_M_W\[1\] = \{\s+)\d+", r"\g<1>7", text))
    failed = qornn_command("verify", out, "--json", check=False)
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["exact"] is False
    assert json.loads(failed.stdout)["difference"]["file"] == "src/net/net.c"
    assert "src/net/net.c: not what the program in the folder exports" in failed.stderr
    assert "--name" in qornn_command("export", program, "-o", tmp_path / "o2", check=False).stderr
    onnx_only = qornn_command("export", program, "-o", out, "--name", "net", "--single-step", check=False)
    assert "--single-step is for ONNX" in onnx_only.stderr
    assert "choose from c, onnx" in qornn_command("export", program, "-o", out, "--to", "cc", check=False).stderr


@pytest.mark.parametrize("file", ["README.md", "src/net.h"])
def test_outputs_have_the_names_of_their_classes(file, tmp_path):
    program = make(n_h=5, n_o=3).with_provenance(classes=["bearing", "*/ ok", 7])
    text = (export.c(program, tmp_path / "net", name="net", vector_steps=1) / file).read_text(encoding="utf-8")
    assert "outputs: 0 bearing, 1 " in text
    assert "*/ ok" not in text  # it would end a comment
    plain = export.c(make(n_h=5, n_o=3), tmp_path / "plain", name="net", vector_steps=1) / file
    assert "outputs: 0" not in plain.read_text(encoding="utf-8")


def test_the_readme_shows_how_to_get_a_class(tmp_path):
    several = export.c(make(n_h=5, n_o=3), tmp_path / "several", name="net", vector_steps=1) / "README.md"
    assert "\nnet_classify(&s); " in several.read_text(encoding="utf-8")
    one = export.c(make(n_h=5, n_o=1), tmp_path / "one", name="net", vector_steps=1) / "README.md"
    assert "net_classify" not in one.read_text(encoding="utf-8")
