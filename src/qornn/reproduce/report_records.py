"""Records as a report takes them: whole, of the right types, or named and left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qornn._io.foreign import is_number
from qornn.errors import DataError, QornnError, SettingsError, shown
from qornn.recipe import from_tables
from qornn.reproduce import grid, records

Record = dict[str, Any]
_NUMBER = (int, float)
_FIELDS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "status": (str,),
    "task": (str,),
    "strategy": (str,),
    "bits": (int, type(None)),
    "n_h": (int,),
    "table": (list,),
    "variant": (str, type(None)),
    "settings": (dict,),
    "value": (*_NUMBER, type(None)),
    "baseline": (*_NUMBER, type(None)),
    "converged": (bool, type(None)),
    "fraction": (*_NUMBER, type(None)),
    "schedule": (str, type(None)),
    "steps": (int,),
    "seconds": (*_NUMBER, type(None)),
    "seed": (int,),
    "version": (str, type(None)),
    "machine": (dict,),
    "integer": (dict, type(None)),
    "curve": (list,),
}
LARGEST = 10**15  # no count of ours is near
_SCHEDULES = ("whole", "cut", "compressed", None)
_INTEGER = ("value", "alpha_W", "alpha_W_alpha_h")


def read_records(results: Path) -> tuple[list[Record], list[str]]:
    """Every whole record by its id, and a warning for each that is left out: the others still make a report."""
    results = results.parent if results.name == records.FOLDER else results
    if not results.is_dir():
        raise SettingsError(f"there is no folder {results}; `qornn reproduce performance` makes records in results/")
    whole, warnings = [], []
    for path in sorted((results / records.FOLDER).glob("*.json")):
        try:
            record = records.read(path.stem, results)
            if record is not None:
                _check(record, path.stem)
                whole.append(record)
        except DataError as error:
            warnings.append(f"left out the record {path.name}: {error}")
    return whole, warnings


def entry_id(record: Mapping[str, Any]) -> str:
    """The network of the paper that a record is of."""
    return str(record.get("cell", record["id"]))


def _check(record: Record, name: str) -> None:
    """Refuse what the tables could not show; every other text is shown as it is."""
    for key, kinds in _FIELDS.items():
        if key not in record:
            raise DataError(f"it has no {key!r}")
        _check_kind(key, record[key], kinds)
    if record["id"] != name:
        raise DataError(f"its id is {shown(record['id'])}")
    for key in _INTEGER:
        _check_kind(f"integer.{key}", (record["integer"] or {}).get(key), (*_NUMBER, type(None)))
    refit = (record["integer"] or {}).get("refit")
    _check_kind("integer.refit", refit, (dict, type(None)))
    _check_kind("integer.refit.value", (refit or {}).get("value"), (*_NUMBER, type(None)))
    _check_kind("narrow", record.get("narrow"), (dict, type(None)))
    _check_kind("narrow.value", (record.get("narrow") or {}).get("value"), (*_NUMBER, type(None)))
    _check_kind("note", record.get("note"), (str, type(None)))
    if record["schedule"] not in _SCHEDULES:
        raise DataError(f"its 'schedule' is {shown(record['schedule'])}")
    for point in record["curve"]:
        if not isinstance(point, list) or len(point) < 4 or not all(v is None or is_number(v) for v in point):
            raise DataError(f"its 'curve' has the point {shown(point)}")
    if not {"cpu", "threads", "device"} <= record["machine"].keys():
        raise DataError("its 'machine' does not say cpu, threads and device")
    if entry_id(record) not in {entry.id for entry in grid.entries()}:
        raise DataError(f"{shown(entry_id(record))} is not a cell of the paper's tables")
    try:
        from_tables(record["settings"])
    except QornnError as error:
        raise DataError(f"its settings are not a valid recipe: {error}") from error


def _check_kind(key: str, value: Any, kinds: tuple[type, ...]) -> None:
    boolean = isinstance(value, bool) and bool not in kinds
    infinite = isinstance(value, float) and not math.isfinite(value)
    if boolean or infinite or not isinstance(value, kinds) or (isinstance(value, int) and abs(value) > LARGEST):
        raise DataError(f"its {key!r} is {str(value)[:40]!r}")
