"""What the tests themselves lean on: compiled objects that are never stale, grids that leave nothing out."""

import shutil

import pytest

from compiling import Objects
from grids import covering

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@needs_gcc
def test_an_object_is_taken_again_only_while_its_source_headers_and_options_stay(tmp_path):
    (tmp_path / "part.h").write_text("#define ANSWER 1\n")
    (tmp_path / "net.h").write_text('  #  include "part.h"\n')
    (tmp_path / "net.c").write_text('#include "net.h"\nint main(void) { return ANSWER; }\n')
    objects = Objects(tmp_path / "objects")

    def made(*options):
        assert objects.run(["gcc", *options, str(tmp_path / "net.c"), "-o", str(tmp_path / "net")])
        return len(list(objects.folder.iterdir()))

    assert [made(), made()] == [1, 1]
    (tmp_path / "other.h").write_text("#error nobody includes this\n")
    assert made() == 1
    (tmp_path / "part.h").write_text("#define ANSWER 2\n")
    assert made() == 2
    assert made("-O1") == 3
    assert made("-Wl,--as-needed") == 3  # linking is done every time
    (tmp_path / "net.c").write_text("int main(void) { return oops; }\n")
    assert not objects.run(["gcc", str(tmp_path / "net.c"), "-o", str(tmp_path / "net")])


@pytest.mark.parametrize("together", [1, 2, 3])
def test_a_covering_part_of_a_grid_meets_what_it_should(together):
    axes = ["abc", "de", "fghi"]
    grid = covering(*axes, together=together)
    assert len({case.values for case in grid}) == len(grid) == 24
    chosen = [case.values for case in grid if not case.marks]
    assert {1: 4, 2: 12, 3: 24}[together] <= len(chosen) <= {1: 4, 2: 14, 3: 24}[together]
    assert {value for case in chosen for value in case} == set("abcdefghi")
    if together >= 2:
        assert {(a, b) for _, a, b in chosen} == {(a, b) for a in "de" for b in "fghi"}
        assert {(a, b) for a, _, b in chosen} == {(a, b) for a in "abc" for b in "fghi"}
