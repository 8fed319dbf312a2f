"""The paper's tables by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qornn.errors import SettingsError
from qornn.reproduce import formulas, grid, overview, structured
from qornn.reproduce.scores import Record, Table, scores

_BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- /table -->)", re.DOTALL)


def table(name: str, records: Sequence[Record]) -> Table:
    """A table of the paper, by the name it has in `qornn reproduce`."""
    grid.check_name(name)
    if name in formulas.TABLES:
        return formulas.TABLES[name](records)
    if name in grid.OVERVIEW:
        return overview.table(records)
    if name in grid.BEYOND:
        return structured.table(records)
    if name not in grid.TRAINED and name not in grid.CURVES:
        raise SettingsError(f"{name} is a figure, not a table")
    return scores(name, records)


def markdown(name: str, records: Sequence[Record]) -> str:
    """The table in Markdown, ending with a newline."""
    made = table(name, records)
    lines = [made.columns, ["---"] * len(made.columns), *made.rows]
    return "".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |\n" for line in lines)


def renew(page: str, records: Sequence[Record]) -> str:
    """The page with each block between `<!-- table: NAME -->` and `<!-- /table -->` made again from the records."""
    return _BLOCK.sub(lambda m: f"{m[1]}{markdown(m[2], records)}{m[3]}", page)
