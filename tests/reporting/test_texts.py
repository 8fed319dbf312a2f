"""A report's HTML and Markdown hold any text, bytes of file names included."""

import os

import pytest

from qornn.reporting.document import Document, Grid, Picture, Row, Section
from qornn.reporting.html import to_html
from qornn.reporting.markdown import to_markdown
from qornn.reproduce.report import report

ODD = os.fsdecode(b"caf\xe9")  # not UTF-8


@pytest.mark.parametrize("write", [to_html, lambda document: to_markdown(document, ODD)], ids=["html", "markdown"])
def test_bytes_that_are_not_utf8_are_marked(write):
    section = Section("s", ODD, (ODD,), (Grid(ODD, (ODD,), (Row((ODD,)),)),), (Picture("p", ODD, b""),))
    page = write(Document(ODD, (ODD,), (ODD,), (section,)))
    assert "caf\ufffd" in page.encode("utf-8").decode()


def test_a_report_may_have_any_name(tmp_path):
    (tmp_path / "results" / "cells").mkdir(parents=True)
    figures = report(tmp_path / "results", tmp_path / f"{ODD}.html")
    assert all(os.path.exists(file) for file in figures["files"])
    assert "(caf%E9-bytes.png)" in (tmp_path / f"{ODD}.md").read_text(encoding="utf-8")
