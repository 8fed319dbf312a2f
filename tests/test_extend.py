"""What an addition takes: docs/extend.md names its files, and tests/test_docs.py runs them."""

import re
from pathlib import Path

import pytest

import qornn

ROOT = Path(__file__).parent.parent
SOURCE = Path(qornn.__file__).parent
EXAMPLES = ROOT / "examples" / "extend"
PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
MOST = {"A stored map": 2, "A W that is not stored": 5, "A kind of layer": 6}
REGISTRIES = r"^(?:MAPS|MATRICES|LAYERS|EMITTERS)"


def section(title):
    """The number of files that its heading says, and its text."""
    found = re.search(rf"^## {re.escape(title)}: (\d+) files\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"docs/extend.md has no section {title!r}"
    return int(found[1]), found[2]


def rows(text):
    """(file of the package, where it is here) of the table."""
    return re.findall(r"^\| `([\w/.]+)` \| (.+?) \| .+ \|$", text, re.MULTILINE)


@pytest.mark.parametrize("title", MOST)
def test_an_addition_takes_few_files(title):
    said, text = section(title)
    files = [file for file, _ in rows(text)]
    assert len(files) == len(set(files)) == said <= MOST[title]


@pytest.mark.parametrize("title", MOST)
def test_every_file_of_an_addition_is_shown(title):
    """A new file of the package is one of the page; one that exists already gets what a file of the page ends with."""
    _, text = section(title)
    shown = set(re.findall(r'title="examples/extend/(.+?)"', text))
    assert {here.strip("`") for _, here in rows(text) if here.startswith("`")} == shown
    assert all((EXAMPLES / name).is_file() for name in shown)
    for file, here in rows(text):
        assert (SOURCE / file).parent.is_dir()
        assert here.startswith("`") or (SOURCE / file).is_file()


@pytest.mark.parametrize("title", MOST)
def test_no_other_dict_is_written_to(title):
    """What a file of the page registers goes to a file of the table: one line of a dict, or the dict of that file."""
    _, text = section(title)
    written = re.findall(rf"{REGISTRIES}\[", text, re.MULTILINE)
    holders = [file for file, _ in rows(text) if file.endswith("__init__.py") or "export/" in file]
    assert len(written) == len(holders)
    for file in holders:
        assert re.search(rf"{REGISTRIES}\b.* = \{{", (SOURCE / file).read_text("utf-8"), re.MULTILINE)
