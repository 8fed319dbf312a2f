"""The runtime as two files, qornn.h and qornn.c: the functions that a network uses, and no others.

The sources in qornn/runtime have one kernel per file and headers that include each other. Here they are put one after
another, each once. Then inline functions and declarations that nothing refers to are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from qornn.integer.engine.structs import FOLDERS

NEEDED: Final = ("qornn_input.h", "qornn_readout.h")  # by every NAME.c
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_INCLUDE: Final = re.compile(r'^#include "(\w+\.h)"\n', re.MULTILINE)
_GUARD: Final = re.compile(r"^#ifndef (\w+_H)\n#define \1\n\n?(.*)^#endif\n", re.MULTILINE | re.DOTALL)
_DECLARED: Final = re.compile(r"^(?:QORNN_RARE )?void (qornn_\w+)\([^;{}]*\);\n", re.MULTILINE)
_DEFINED: Final = re.compile(r"^(?:QORNN_RARE )?void (qornn_\w+)\([^;{}]*\) \{", re.MULTILINE)
_INLINE: Final = re.compile(r"^QORNN_INLINE [^;{}]*?\b(\w+)\([^;{}]*\) \{", re.MULTILINE)
_EMPTY: Final = re.compile(r"^#if[^\n]*[^\\\n]\n+(?:#else\n+)?#endif\n+", re.MULTILINE)
_DROPPED: Final = "\0\n"


def files_of(name: str, headers: Iterable[str], model: str) -> dict[str, str]:
    """qornn.h and qornn.c for the text of a NAME.c that needs these headers."""
    header, done = _ordered(dict.fromkeys((*NEEDED, *headers)))
    kernels = {file: _source(file, done) for file in _kernels()}
    # Those that round floats come last: they switch options of the compiler for all that follows.
    kernels = dict(sorted(kernels.items(), key=lambda item: "qornn_nofuse.h" in item[1][1]))
    inner, _ = _ordered([inner for _, inners in kernels.values() for inner in inners], done)
    live = _live(model, [header, inner, *(text for text, _ in kernels.values())])
    used = {file: parts for file, parts in kernels.items() if live & set(_DEFINED.findall(parts[0]))}
    source, _ = _ordered([inner for _, inners in used.values() for inner in inners], done)
    texts = [source, *(text for text, _ in used.values())]
    symbols = sorted({symbol for text, _ in used.values() for symbol in _DEFINED.findall(text)})
    return {
        "qornn.h": _head(name) + _names(name, symbols) + _pruned(header, live) + "\n#endif\n",
        "qornn.c": f'/* The kernels that {name} calls. */\n#include "qornn.h"\n\n'
        + "\n".join(filter(str.strip, (_pruned(text, live) for text in texts))),
    }


def _head(name: str) -> str:
    return (
        f"/* The runtime of {name}: what this network uses of qornn. C99, also C++; no allocation.\n\n"
        "   SPDX-License-Identifier: MIT\n   Copyright (c) 2026 The qornn authors */\n"
        "#ifndef QORNN_H\n#define QORNN_H\n\n"
    )


def _names(name: str, symbols: list[str]) -> str:
    """Each model brings its own kernels, so that several libraries link into one firmware."""
    if not symbols:
        return ""
    lines = "".join(f"#define {symbol} {name}_{symbol}\n" for symbol in symbols)
    return (
        f"/* Symbols of this model alone: several models, each with its runtime, link into one firmware. */\n{lines}\n"
    )


@cache
def _kernels() -> tuple[str, ...]:
    return tuple(sorted(item.name for item in FOLDERS[0].iterdir() if re.fullmatch(r"qornn\w*\.c", item.name)))


def _read(file: str) -> str:
    found = next(folder / file for folder in FOLDERS if (folder / file).is_file())
    return found.read_text(encoding="utf-8").replace("\r\n", "\n")


def _ordered(wanted: Iterable[str], before: frozenset[str] = frozenset()) -> tuple[str, frozenset[str]]:
    """The text of these headers and of all they include, each once and after what it needs; and their names."""
    parts: list[str] = []
    done = set(before)

    def add(file: str) -> None:
        if file in done:
            return
        done.add(file)
        text = _read(file)
        for inner in _INCLUDE.findall(text):
            if inner not in _conditional(text):
                add(inner)
        parts.append(_body(text, done))

    for file in wanted:
        add(file)
    return "\n".join(parts), frozenset(done)


def _source(file: str, done: frozenset[str]) -> tuple[str, list[str]]:
    """A kernel without its includes, and the headers it needs that are not there yet."""
    text = _read(file)
    return _INCLUDE.sub("", text).lstrip("\n"), [inner for inner in _INCLUDE.findall(text) if inner not in done]


def _body(text: str, done: set[str]) -> str:
    """A header without its guard; what it includes under a condition stands in the place of the line."""
    conditional = _conditional(text)
    text = _INCLUDE.sub(lambda line: _nested(line[1], done) if line[1] in conditional else "", text)
    text = _GUARD.sub(lambda match: match[2].rstrip("\n") + "\n", text, count=1)
    return re.sub(r"\n{3,}", "\n\n", text)


def _nested(file: str, done: set[str]) -> str:
    """A header inside a condition keeps its guard: another branch may hold it too."""
    if file in done:
        return ""
    return _INCLUDE.sub(lambda line: _nested(line[1], done), _read(file))


def _conditional(text: str) -> set[str]:
    """What a header includes inside an #if other than its guard."""
    guard = 1 if _GUARD.search(text) else 0
    found, depth = set(), 0
    for line in text.splitlines():
        depth += line.startswith("#if")
        depth -= line.startswith("#endif")
        if depth > guard and (match := _INCLUDE.match(line + "\n")):
            found.add(match[1])
    return found


def _live(model: str, texts: list[str]) -> set[str]:
    """Every word that the model refers to, through the functions it calls."""
    bodies: dict[str, set[str]] = {}
    words = _words(model)
    for text in texts:
        rest = _DECLARED.sub("", text)
        for name, start, end in _functions(rest):
            bodies[name] = bodies.get(name, set()) | (_words(rest[start:end]) - {name})
        for _, start, end in reversed(_functions(rest)):
            rest = rest[:start] + rest[end:]
        words |= _words(rest)
    waiting = list(words & bodies.keys())
    while waiting:
        more = bodies.pop(waiting.pop(), set()) - words
        words |= more
        waiting += more & bodies.keys()
    return words


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", _COMMENT.sub("", text)))


def _functions(text: str) -> list[tuple[str, int, int]]:
    """Name, begin and end of each function, inline or kernel."""
    found = []
    for pattern in (_INLINE, _DEFINED):
        for match in pattern.finditer(text):
            depth, at = 1, match.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
            found.append((match[1], match.start(), at + 1))  # and the end of its line
    return sorted(found, key=lambda part: part[1])


def _pruned(text: str, live: set[str]) -> str:
    """Without functions and declarations that nobody refers to, and without comments on them."""
    for name, start, end in reversed(_functions(text)):
        if name not in live:
            text = text[:start] + _DROPPED + text[end:]
    text = _DECLARED.sub(lambda match: match[0] if match[1] in live else _DROPPED, text)
    text = re.sub(rf"^/\*(?:(?!\*/).)*\*/\n(?:{_DROPPED})+(?=\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\n{3,}", "\n\n", text.replace(_DROPPED, ""))
    return _EMPTY.sub("", text).strip("\n") + "\n"
