"""What verify reads of a linked image: what is loaded where, section sizes, and symbols."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOAD: Final = 1
SYMBOLS: Final = 2


@dataclass(frozen=True, kw_only=True)
class Image:
    """A 32-bit little-endian executable."""

    loads: list[tuple[int, bytes]]  # at their physical addresses: .data lies in flash until start-up copies it
    sections: dict[str, int]  # bytes
    symbols: dict[str, tuple[int, int]]  # address, bytes


def read(path: Path) -> Image:
    """The image in that file."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x01\x01":
        raise ValueError(f"{path} is no 32-bit little-endian ELF file")
    segments, sections = struct.unpack_from("<II", data, 28)
    segment_size, segment_count, section_size, section_count, names = struct.unpack_from("<5H", data, 42)
    loads = []
    for i in range(segment_count):
        kind, offset, _, physical, size = struct.unpack_from("<5I", data, segments + i * segment_size)
        if kind == LOAD and size:
            loads.append((physical, data[offset : offset + size]))
    headers = [struct.unpack_from("<10I", data, sections + i * section_size) for i in range(section_count)]
    strings = headers[names][4]
    symbols: dict[str, tuple[int, int]] = {}
    for _, kind, _, _, offset, size, link, *_ in headers:
        if kind == SYMBOLS:
            for at in range(offset, offset + size, 16):
                name, value, length = struct.unpack_from("<III", data, at)
                symbols[_text(data, headers[link][4] + name)] = (value, length)
    return Image(
        loads=loads, sections={_text(data, strings + header[0]): header[5] for header in headers}, symbols=symbols
    )


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode(errors="replace")
