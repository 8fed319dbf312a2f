"""QEMU itself is seldom there; a stand-in shows that it is found, asked and believed."""

import pytest
from c_programs import make

from qornn import export
from qornn.verify import verify

pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A qemu-system-arm with those machines, whose semihosting says that."""

    def install(machines, says, status):
        folder = tmp_path / "bin"
        folder.mkdir()
        script = folder / "qemu-system-arm"
        script.write_text(
            f'#!/bin/sh\n[ "$2" = help ] && echo "{machines}" && exit 0\necho "{says}" >&2\nexit {status}\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")

    return install


@pytest.fixture
def folder(tmp_path):
    return export.c(make(n_h=5), tmp_path / "out", name="net", vector_steps=3)


@pytest.mark.slow
def test_both_emulators_are_named(folder, stand_in):
    stand_in("microbit mps3-an547", "exact steps=38", 0)
    result = verify(folder, "cortex-m0")
    assert result.exact
    assert [where.split()[0] for where in result.ran_on[:2]] == ["unicorn", "qemu-system-arm"]
    assert verify(folder, "cortex-m55").exact


@pytest.mark.slow
def test_a_difference_on_qemu_alone_counts(folder, stand_in):
    stand_in("microbit", "differs step=3 unit=2 got=5 want=6", 1)
    result = verify(folder, "cortex-m0")
    assert result.exact is False
    assert str(result.difference) == "step 3, unit 2: got 5, want 6"


@pytest.mark.slow
def test_a_machine_that_it_lacks_is_skipped_by_name(folder, stand_in):
    stand_in("microbit", "exact steps=38", 0)
    result = verify(folder, "cortex-m55")
    assert result.exact is None
    assert "mps3-an547" in result.skipped[0]
