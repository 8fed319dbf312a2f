import gzip

import numpy as np
import pytest

from qornn.errors import DataError
from qornn.tasks.idx import read_idx

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("name", ["a.gz", "a"])
def test_reads_what_was_written_whatever_the_name(tmp_path, write_idx, pack, name):
    assert np.array_equal(read_idx(write_idx(tmp_path / name, ARRAY, pack=pack), ndim=3), ARRAY)


@pytest.mark.parametrize("pack", [True, False])
def test_every_truncation_is_refused(tmp_path, write_idx, pack):
    path = write_idx(tmp_path / "images.gz", ARRAY, pack=pack)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"images\.gz is damaged: .*; delete it and fetch it again"):
            read_idx(path, ndim=3)


def test_extra_bytes_are_refused(tmp_path, write_idx):
    path = write_idx(tmp_path / "images", ARRAY, pack=False)
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(DataError, match="announces 2x3x4, 40 bytes in all, but it holds 41"):
        read_idx(path, ndim=3)


def test_a_flipped_byte_in_a_gzip_file_is_refused(tmp_path, write_idx):
    path = write_idx(tmp_path / "images.gz", ARRAY)
    raw = bytearray(path.read_bytes())
    raw[-6] ^= 1  # in the checksum
    path.write_bytes(raw)
    with pytest.raises(DataError, match="cannot be unpacked"):
        read_idx(path, ndim=3)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", gzip.compress(b"PK\3\4", mtime=0)])
def test_another_kind_of_file_is_refused(tmp_path, content):
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"it starts with .*, not with 00 00 08 03"):
        read_idx(path, ndim=3)


def test_another_number_of_dimensions_is_refused(tmp_path, write_idx):
    with pytest.raises(DataError, match="it starts with 00 00 08 03, not with 00 00 08 01"):
        read_idx(write_idx(tmp_path / "labels", ARRAY), ndim=1)


def test_a_header_of_four_billion_images_allocates_nothing(tmp_path):
    path = tmp_path / "images"
    path.write_bytes(bytes([0, 0, 8, 3]) + b"\xff" * 12)
    with pytest.raises(DataError, match="announces 4294967295x4294967295x4294967295"):
        read_idx(path, ndim=3)


def test_an_unreadable_path_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(tmp_path, ndim=3)
