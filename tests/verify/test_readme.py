"""Code and stack, measured on a device, stand in the README of the folder."""

import re

import pytest
from c_programs import make

from qornn import export
from qornn.verify import verify
from qornn.verify.folder import find
from qornn.verify.readme import keep
from qornn.verify.replay import Result


@pytest.fixture
def folder(tmp_path):
    return export.c(make(n_h=5), tmp_path / "out", name="net", vector_steps=1)


def seen(target, **figures):
    figures |= {"flash_bytes": 1112, "ram_bytes": 56, "stack_bytes": 168}
    return Result(target=target, steps=1, exact=True, compiler="some-gcc 5.4.0 -Os", **figures)


def test_a_row_for_each_target_that_was_run(folder):
    found = find(folder)
    for target, steps in (("atmega328p", 8050), ("cortex-m4", 500), ("cortex-m4", 515)):
        keep(folder, found, seen(target, instructions_per_step=steps))
    lines = (folder / "README.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith(("| cortex", "| atmega"))]
    assert rows == [
        "| cortex-m4 | some-gcc 5.4.0 -Os | 1,000 | 112 | 56 | 168 | 515 |  |",
        "| atmega328p | some-gcc 5.4.0 -Os | 1,000 | 112 | 56 | 168 | 8,050 |  |",
    ]
    assert (find(folder).differing, find(folder).notes) == ([], [])  # what was measured is no edit


@pytest.mark.parametrize("how", ["gone", "a link", "without the place", "not exact", "host"])
def test_what_has_no_place_for_it_stays(folder, tmp_path, how):
    path, found = folder / "README.md", find(folder)
    text = path.read_text()
    if how in ("gone", "a link"):
        path.unlink()
    if how == "a link":
        (tmp_path / "mine").write_text(text)
        path.symlink_to(tmp_path / "mine")
    if how == "without the place":
        path.write_text(text := text.replace("<!-- /measured -->", ""))
    wrong = {"not exact": Result(target="rv32", steps=0, exact=False, flash_bytes=3)}
    wrong["host"] = Result(target="host", steps=1, exact=True)
    keep(folder, found, wrong.get(how, seen("rv32")))
    assert not path.exists() if how == "gone" else path.read_text() == text


@pytest.mark.usefixtures("one_emulator")
def test_verify_writes_it(folder):
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    result = verify(folder, "cortex-m4")
    code = result.flash_bytes - find(folder).data_bytes
    assert re.fullmatch(r"zig cc \d+\.\d+\.\d+\S* -O2", result.compiler)
    assert f"| cortex-m4 | {result.compiler} | {code:,} | " in (folder / "README.md").read_text()
    assert verify(folder).notes == []
