"""Where the programs that the tests of exports share are found, and the pages that several of them look at."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # pages.py, calling.py
sys.path.append(str(Path(__file__).parents[1] / "verify"))  # c_programs.py
sys.path.append(str(Path(__file__).parents[1] / "integer"))  # strategies.py
sys.path.append(str(Path(__file__).parents[2] / "tools"))  # chromium.py, drawn_digits.py


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Folders of the programs of pages.py, by name; each is compiled once."""
    from pages import PROGRAMS

    from qornn import export

    made = {}

    def page_of(name):
        if name not in made:
            made[name] = export.web(PROGRAMS[name](), tmp_path_factory.mktemp("page") / "out", name="net")
        return made[name]

    return page_of
