"""C compiled once per session: exported folders share the runtime's files, and only NAME.c and the vectors are new.

An object is found by the compiler, the options and the bytes of the source and of every header that it includes. What
is not found is compiled, and linking is done every time. Processes of one session share the folder.
"""

import hashlib
import os
import re
import subprocess
from pathlib import Path

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
LINK_ONLY = ("-T", "-Wl,", "-static", "-nostartfiles", "--specs=")


session = None  # the Objects of this session


class Objects:
    """A folder of objects, by what they were made from."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, command):
        """Do what that command does, `COMPILER OPTIONS... SOURCES... -o PROGRAM`; False where any part of it fails."""
        sources = [word for word in command if word.endswith((".c", ".cpp"))]
        words = [word for word in command if word not in sources]
        at = words.index("-o")
        output, options = words[at + 1], [*words[:at], *words[at + 2 :]]
        objects = [self._object(options, Path(source)) for source in sources]
        if None in objects:
            return False
        objects = [*(["-x", "none"] if "-x" in options else []), *map(str, objects)]
        return _ends_well([*options, *objects, "-o", output])

    def _object(self, options, source):
        options = _without_linking(options)
        folders = [source.parent, *(Path(word[2:]) for word in options if word.startswith("-I"))]
        named = [word for word in options if not word.startswith("-I")]
        key = hashlib.sha256(repr([named, source.name]).encode())
        for name, data in sorted(_included(source.read_bytes(), folders).items()):
            key.update(name + b"\0" + data)
        place = self.folder / key.hexdigest()[:32]
        made = place / f"{source.stem}.o"  # the linker's script knows some by their names
        if not made.exists():
            place.mkdir(parents=True, exist_ok=True)
            fresh = place / f"{os.getpid()}.o"
            if not _ends_well([*options, "-c", str(source), "-o", str(fresh)]):
                return None
            os.replace(fresh, made)
        return made


def _included(text, folders):
    """The text and every header that it includes in quotes, whatever the conditions around it."""
    found, left = {b"": text}, [text]
    while left:
        for name in INCLUDE.findall(left.pop()):
            header = next(
                (folder / os.fsdecode(name) for folder in folders if (folder / os.fsdecode(name)).is_file()), None
            )
            if name not in found and header is not None:
                found[name] = header.read_bytes()
                left.append(found[name])
    return found


def _without_linking(options):
    kept, words = [], iter(options)
    for word in words:
        if word == "-T":
            next(words)
        elif not word.startswith(LINK_ONLY):
            kept.append(word)
    return kept


def _ends_well(command):
    return subprocess.run(command, capture_output=True, timeout=600).returncode == 0
