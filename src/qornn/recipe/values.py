"""Values of settings: checked against their field, read from KEY=VALUE, written as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from qornn._io.foreign import Unreadable, is_number, parse_toml
from qornn._io.text import readable
from qornn.bits import FULL_PRECISION, parse_bits
from qornn.errors import SettingsError, shown, unknown


def settings_of(kind: type[Any], table: str, values: Mapping[str, Any]) -> Any:
    """The settings of a table, every key and type checked."""
    known = {f.name: f for f in fields(kind)}
    for key in values:
        if key not in known:
            raise unknown(f"setting of [{table}]", key, known)
    made = kind(**{key: typed(f"{table}.{key}", value, known[key]) for key, value in values.items()})
    for key, value in values.items():  # after its own checks, which say more
        refuse_huge(f"{table}.{key}", value)
    return made


def typed(key: str, value: Any, field: Field[Any]) -> Any:
    """The value as the field's type, or an error that says both."""
    kind = str(field.type).replace(" ", "")
    optional = kind.endswith("|None")
    kind = kind.removesuffix("|None")
    if key == "model.bits":
        return parse_bits(value)
    if key == "model.activation_bits" and value == FULL_PRECISION:
        return None
    if value is None and (optional or field.default is MISSING):
        return None
    if kind.startswith("dict") and isinstance(value, Mapping):
        return {name: _plain(f"{key}.{name}", one) for name, one in value.items() if one is not None}
    if kind == "float" and is_number(value):
        return float(value)
    if kind == "int" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "str" and isinstance(value, str):
        return _utf8(key, value)
    raise SettingsError(f"{key} must be {kind}, got {shown(value)}")


def _plain(key: str, value: Any) -> Any:
    """A number, a word or yes and no; what it means is for its reader to check."""
    refuse_huge(key, value)
    if isinstance(value, str):
        return _utf8(key, value)
    if isinstance(value, bool | int | float):
        return value
    raise SettingsError(f"{key} must be one value, got {shown(value)}")


def refuse_huge(key: str, value: Any) -> None:
    """Numbers past 64 bits, which torch and numpy would refuse in their own words."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise SettingsError(f"{key} must lie within 64 bits, got {shown(value)}")


def parse_assignment(text: str) -> tuple[str, Any]:
    """The key and the value of KEY=VALUE, as it is typed in a shell."""
    key, equals, value = text.partition("=")
    if "\n" in text or "\r" in text:
        raise SettingsError(f"{shown(text)}: a setting is one line; repeat --set for each setting")
    if not equals:
        raise SettingsError(f"{text!r}: a setting is written KEY=VALUE, as in train.lr=1e-3")
    try:
        return key.strip(), parse_toml(f"v = {value.strip()}")["v"]
    except Unreadable:  # a bare word, as typed in a shell
        word = value.strip()
        return key.strip(), _number(word) if word else word


def as_key(name: str) -> str:
    """A TOML key, in quotes where it must be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else as_toml(name, name)


def as_toml(key: str, value: Any) -> str:
    """One TOML value; JSON's spelling of strings, integers and booleans is TOML's too, but for DEL."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        _utf8(key, value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(word: str) -> Any:
    """Accept 1e-3 and .5, which TOML does not always allow but people type; null stands for None."""
    if word == "null":
        return None
    try:
        return float(word)
    except ValueError:
        return word


def _utf8(key: str, text: str) -> str:
    """The text; the bytes of a file name that is not UTF-8 are refused, since TOML cannot hold them."""
    if readable(text) != text:
        raise SettingsError(f"{key} must be UTF-8 text, got {text!r}; rename the file, or link to it by another name")
    return text
