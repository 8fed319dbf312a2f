"""The programs of the zoo as pages of the site: a hook of mkdocs, so that links to them are checked like all others."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import qornn
from qornn import zoo

if TYPE_CHECKING:
    from mkdocs.structure.files import Files


def on_files(files: Files, config: Any) -> Files:
    """Adds zoo/NAME/index.html and what it loads."""
    from mkdocs.structure.files import File

    for name in zoo.names():
        with tempfile.TemporaryDirectory(prefix="qornn-zoo-") as scratch:
            for path in sorted(page(name, Path(scratch) / name).iterdir()):
                files.append(File.generated(config, f"zoo/{name}/{path.name}", content=path.read_bytes()))
    return files


def page(name: str, folder: Path) -> Path:
    """The page of one program."""
    command = f"qornn export zoo:{name} --to web -o {name}"
    return qornn.export.web(qornn.load(f"zoo:{name}"), folder, name=re.sub(r"\W", "_", name), command=command)
