"""Which names a model may have in C: they prefix every symbol, macro and file."""

from __future__ import annotations

import re
from typing import Final

from qornn.errors import SettingsError

LONGEST: Final = 40
_KEYWORDS: Final = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq"""
KEYWORDS: Final = frozenset(_KEYWORDS.split())
# NAME.h stands on the include path: <stdint.h> and <Arduino.h> must not find a model.
_HEADERS: Final = """
    arduino arm_mve assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
    stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
    example_main test_main"""
HEADERS: Final = frozenset(_HEADERS.split())
# Targets that CMake keeps for itself; here NAME is one.
_TARGETS: Final = "all all_build clean edit_cache help install preinstall rebuild_cache run_tests test zero_check"
TARGETS: Final = frozenset(_TARGETS.split())


def check(name: str) -> str:
    """The name, if C and the other files of the folder leave it free."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII):
        way = re.sub(r"\W+", "_", str(name), flags=re.ASCII).strip("_")[:LONGEST]
        hint = f", such as {way!r}" if re.fullmatch(r"[A-Za-z]\w*", way) else ", such as 'pm5'"
        raise SettingsError(
            f"name must be a C identifier (letters, digits and _, a letter first), got {name!r}; use one{hint}"
        )
    if len(name) > LONGEST:
        raise SettingsError(f"name may have {LONGEST} characters, got {len(name)}: {name!r}; shorten it")
    if name.lower() in KEYWORDS:
        raise SettingsError(f"name must not be a word of C or C++, got {name!r}; use another, such as {name}_model")
    if name.lower() in HEADERS:
        raise SettingsError(f"{name}.h or {name}.c would hide a file of that name; use another, such as {name}_model")
    if name.lower() in TARGETS:
        raise SettingsError(f"name must not be a target of CMake, got {name!r}; use another, such as {name}_model")
    if name.lower().startswith("qornn") or "__" in name:
        raise SettingsError(
            f"names that begin with qornn belong to the runtime, and those with __ to the compiler, got {name!r}; "
            "use another"
        )
    return name
