"""The former layout, format 6: all files side by side, with the whole runtime. It is verified, and no longer written.

What the templates say today is turned back into the code of then. Comments are not: nobody compares them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from qornn.export.c99.folder import FLAT_MAIN, fill, sources

FORMAT: Final = 6
# Constants had no word for the flash of AVR chips, and int was taken to have 32 bits.
_THEN: Final = (
    (r"\bQORNN_FLASH ", ""),
    (r"\(\(uint32_t\)1 <<", "(1u <<"),
    (r"\(sizeof\((\w+_state)\) \+ 3u\) / 4u \* 4u", r"sizeof(\1)"),
    (r"^#if defined\(__SIZEOF_DOUBLE__\)[^\n]*\n#define \w+_NO_QUANTIZE\n#endif\n", ""),
)


def words(now: Mapping[str, object]) -> dict[str, object]:
    """What this layout says in other words than today's."""
    name = now["name"]
    return {
        "format": FORMAT,
        "includes": f'#include "{name}.h"\n\n#include "qornn_input.h"\n#include "qornn_readout.h"\n{now["headers"]}',
        "test_includes": f'#include "{name}.h"\n#include "{name}_vectors.h"\n',
        "memory_macros": f"{now['steps_max']}"
        f"#define {name}_DATA_BYTES {now['data_bytes']}\n"
        f"#define {name}_RAM_BYTES {now['ram_bytes']}\n",
        "flash_check": "",
        "predict": str(now["predict"]).replace("qornn_read_mix_", "qornn_read_"),
    }


def files(words: Mapping[str, object], vectors: str) -> dict[str, str]:
    """Those that the program decides; `vectors` is the text of the test vectors."""
    header, model, replayed = sources(str(words["name"]), flat=True)
    return {
        header: _as_then(fill("model.h", words)),
        model: _as_then(fill("model.c", words)),
        replayed: vectors,
        FLAT_MAIN: fill("test_main.c", words),
    }


def _as_then(text: str) -> str:
    for now, then in _THEN:
        text = re.sub(now, then, text, flags=re.MULTILINE)
    return text
