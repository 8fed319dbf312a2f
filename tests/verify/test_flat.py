"""Folders of format 6, with all files side by side, are still verified: true exports of that version."""

import re
import tarfile
from pathlib import Path

import pytest
from c_programs import needs_gcc

from qornn.errors import SettingsError
from qornn.verify import VerifyError, verify

pytestmark = needs_gcc
KINDS = ["dense", "shifted", "structured", "stack"]


@pytest.fixture
def flats(tmp_path):
    with tarfile.open(Path(__file__).parent / "flat_folders.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def flat(flats):
    return flats / "dense"


@pytest.fixture
def _not_compiled(monkeypatch):
    monkeypatch.setattr("qornn.verify.build.compiled", lambda *_: pytest.fail("compiled"))


def rewrite(path, pattern, new):
    text = path.read_text()
    changed = re.sub(pattern, new, text, count=1, flags=re.MULTILINE)
    assert changed != text
    path.write_text(changed)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_still_verified(flats, kind):
    result = verify(flats / kind)
    assert (result.exact, result.steps, result.notes) == (True, 2 * 3 + 32, [])


@pytest.mark.usefixtures("one_emulator")
def test_it_is_still_verified_on_a_device(flats):
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    assert verify(flats / "stack", "cortex-m4").exact


def test_its_version_and_the_words_in_its_comments_may_be_those_of_then(flat):
    rewrite(flat / "net.h", "Multiply-accumulates", "Products")
    rewrite(flat / "net.h", r"made by qornn \S+", "made by qornn 0.1.7")
    assert verify(flat).exact


@pytest.mark.usefixtures("_not_compiled")
@pytest.mark.parametrize("file", ["net.c", "net.h", "qornn_dense.h", "qornn_plane4.c"])
@pytest.mark.parametrize("how", ["edited", "missing"])
def test_a_changed_source_is_noticed(flat, file, how):
    path = flat / file
    if how == "edited":
        path.write_text(path.read_text() + "\ntypedef int more;\n")
    else:
        path.unlink()
    assert verify(flat).difference.file == file


@pytest.mark.usefixtures("_not_compiled")
@pytest.mark.parametrize(
    ("kind", "file", "pattern", "new"),
    [
        ("dense", "net.c", r"(net_layer0_W_planes\[\d+\] = \{\n +)\d+u", r"\g<1>7u"),
        ("stack", "net.c", r"(net_readout_V_packed\[\d+\] = \{\n +\d+, )\d+", r"\g<1>255"),
        ("structured", "net.h", r"net_N_O \d+", "net_N_O 2"),
        ("dense", "net.h", r"(net_N_I \d+)\n", r"\1 "),  # the next line becomes part of the macro
        ("dense", "net_vectors.h", r"(net_inputs\[\d+\] = \{\n +)-?\d+", r"\g<1>11"),
        ("dense", "net_vectors.h", r"(net_state_hashes\[\d+\] = \{\n +)\d+u", r"\g<1>11u"),
        ("shifted", "qornn_input.h", r"(multiplier\[c\]) \+ half", r"\1 - half"),
    ],
)
def test_a_changed_number_is_noticed(flats, kind, file, pattern, new):
    rewrite(flats / kind / file, pattern, new)
    assert verify(flats / kind).difference.file == file


def test_without_vectors_it_is_no_export(flat):
    (flat / "net_vectors.h").unlink()
    with pytest.raises(SettingsError, match=r"should hold one test/NAME_vectors\.h.*found none"):
        verify(flat)


@pytest.mark.parametrize("stated", [5, 7])
def test_other_formats_are_refused_with_the_way_out(flat, stated):
    rewrite(flat / "net_vectors.h", "net_FORMAT 6", f"net_FORMAT {stated}")
    with pytest.raises(
        SettingsError, match=rf"format {stated}; .*also verifies format 6\); export again: `qornn export"
    ):
        verify(flat)


def test_an_edited_example_is_a_note_and_never_runs(flat):
    (flat / "example_main.c").write_text("#error")
    result = verify(flat)
    assert result.exact
    assert result.notes == ["example_main.c is not as exported; it was not used"]


def test_an_avr_chip_is_refused_with_the_way_out(flat):
    with pytest.raises(VerifyError, match=r"int of 32 bits.*export again: `qornn export .*net\.qornn --to c -o "):
        verify(flat, "atmega328p")
