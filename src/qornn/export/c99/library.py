"""What makes the folder a library of Arduino, PlatformIO, ESP-IDF, Zephyr and CMake: one file or more for each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from qornn import __version__
from qornn.export.c99 import sketch
from qornn.export.c99.facts import facts, plain
from qornn.export.c99.folder import fill
from qornn.integer.program import IntegerProgram

SENTENCE_LIMIT: Final = 160
URL: Final = "https://example.org/"  # of whoever publishes the library: the formats ask for one
FILES: Final = {  # where each lies, and its template
    "library.properties": "library.properties",
    "keywords.txt": "keywords.txt",
    "CMakeLists.txt": "CMakeLists.txt",
    "idf_component.yml": "idf_component.yml",
    "zephyr/module.yml": "zephyr_module.yml",
    "zephyr/CMakeLists.txt": "zephyr_CMakeLists.txt",
    "zephyr/Kconfig": "zephyr_Kconfig",
    "Makefile": "Makefile",
}


def files_of(program: IntegerProgram, words: Mapping[str, object], header: str) -> dict[str, str]:
    """All these files; `header` is the text of NAME.h, whose names the Arduino IDE colours."""
    name = str(words["name"])
    words = {**words, **_words(program, name, header)}
    found = {file: fill(template, words) for file, template in FILES.items()}
    found["library.json"] = _library_json(name, str(words["sentence"]))
    found[f"examples/{name}/{name}.ino"] = sketch.text(program, words)
    return found


def version() -> str:
    """Three numbers, as all five formats read them."""
    return ".".join(re.findall(r"\d+", __version__)[:3])


def _words(program: IntegerProgram, name: str, header: str) -> dict[str, str]:
    shape = re.sub(r"[^\w ,;:.()+-]", "", plain(facts(program)[0]), flags=re.ASCII)
    sentence = f"A recurrent network in integers: {shape}"[:SENTENCE_LIMIT].rstrip(" ,;:.") + "."
    functions = re.findall(rf"^(?:void|int|uint32_t) ({name}_\w+)\(", header, re.MULTILINE)
    literals = re.findall(rf"^#define ({name}_[A-Z_]+) ", header, re.MULTILINE)
    return {
        "NAME": name.upper(),
        "library_version": version(),
        "sentence": sentence,
        "paragraph": f"Call {name}_init before a sequence, {name}_step for every step, {name}_predict for an answer.",
        "url": f"{URL}{name}",
        "keyword_functions": "\n".join(f"{word}\tKEYWORD2" for word in functions),
        "keyword_literals": "\n".join(f"{word}\tLITERAL1" for word in literals),
    }


def _library_json(name: str, sentence: str) -> str:
    manifest = {
        "name": name,
        "version": version(),
        "description": sentence,
        "keywords": ["recurrent network", "classification", "time series", "quantized"],
        "authors": {"name": "qornn"},
        "license": "MIT",
        "frameworks": "*",
        "platforms": "*",
        "headers": f"{name}.h",
        "examples": [{"name": name, "base": f"examples/{name}", "files": [f"{name}.ino"]}],
        "build": {"srcDir": "src", "includeDir": "src", "srcFilter": f"+<{name}/*.c>"},
    }
    return json.dumps(manifest, indent=2) + "\n"
