import pytest

from qornn.verify import elf


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\x7fELF\x02\x01" + bytes(64))
    with pytest.raises(ValueError, match="32-bit"):
        elf.read(path)
