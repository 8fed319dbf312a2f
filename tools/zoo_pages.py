"""The programs of the zoo as pages for browsers: python tools/zoo_pages.py build/docs/zoo"""

import re
import sys
from pathlib import Path

import qornn
from qornn import zoo


def main(out: Path) -> None:
    for name in zoo.names():
        folder = out / name
        command = f"qornn export zoo:{name} --to web -o {name}"
        qornn.export.web(qornn.load(f"zoo:{name}"), folder, name=re.sub(r"\W", "_", name), command=command)
        print(folder / "index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
