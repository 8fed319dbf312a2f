"""One network to train, as a frozen dataclass that TOML holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from qornn._io.foreign import Unreadable, parse_toml, read_text
from qornn.bits import FULL_PRECISION
from qornn.errors import RETIRED, CheckpointError, SettingsError, shown, unknown
from qornn.recipe.first_edition import renewed
from qornn.recipe.settings import STACK, STACK_DEFAULTS, ModelSettings, TrainSettings
from qornn.recipe.values import as_key, as_toml, parse_assignment, refuse_huge, settings_of, typed
from qornn.structure import MAPS as STRUCTURED
from qornn.tasks import TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One network to train: the task's settings, the model's and the training's."""

    task: dict[str, Any]  # name, and fields of the task's class that differ from its defaults
    model: ModelSettings = field(default_factory=ModelSettings)
    train: TrainSettings = field(default_factory=TrainSettings)

    def override(self, assignments: Iterable[str]) -> Recipe:
        """The recipe with 'train.lr=1e-3' and the like applied, one after another."""
        tables = self.tables()
        for text in assignments:
            key, value = parse_assignment(text)
            table, _, name = key.partition(".")
            if table not in tables or not name:
                raise SettingsError(f"{text!r}: a setting is task.NAME, model.NAME or train.NAME, as in train.lr=1e-3")
            if key == "train.steps" and value == 0:  # in a file 0 stands for the epochs
                raise SettingsError("train.steps must be at least 1, got 0; leave it out to train as the recipe says")
            if key == "model.map" and value != tables["model"].get("map"):
                tables["model"]["map_options"] = {}  # they were another map's
            inner, _, option = name.partition(".")
            if option and table == "model" and inner == "map_options":
                tables["model"].setdefault("map_options", {})[option] = value
            else:
                tables[table][name] = value
        return from_tables(tables)

    def tables(self) -> dict[str, dict[str, Any]]:
        """As nested plain dicts, like the TOML, without keys that have no effect on this kind of network."""
        model = {key: value for key, value in asdict(self.model).items() if key not in self.model.foreign}
        return {"task": dict(self.task), "model": model, "train": asdict(self.train)}

    def portable_tables(self) -> dict[str, dict[str, Any]]:
        """The tables without where things lie on this machine: no data folder, of another run its name alone."""
        tables = self.tables()
        tables["task"].pop("data_dir", None)
        tables["train"]["start"] = Path(tables["train"]["start"]).name
        return tables

    def to_toml(self) -> str:
        """Text that `from_toml` reads back as an equal recipe."""
        tables = _written(self.tables())
        options = tables["model"].pop("map_options", {})
        written = {"task": tables["task"], "model": tables["model"]}
        written |= {"model.map_options": options} if options else {}
        written["train"] = tables["train"]
        return "\n".join(
            f"[{table}]\n"
            + "".join(
                f"{as_key(key)} = {as_toml(f'{table}.{key}', value)}\n"
                for key, value in values.items()
                if value is not None
            )
            for table, values in written.items()
        )


def setting(key: str, value: Any) -> str:
    """The assignment that `override` reads back as this value, whatever characters it has."""
    return f"{key}={as_toml(key, value)}"


def read_run(folder: Path) -> Recipe:
    """The recipe of a run folder."""
    path = folder / "recipe.toml"
    try:
        text = read_text(path)
    except Unreadable as error:
        raise CheckpointError(f"{folder} is not a run folder: cannot read {path} ({error})") from error
    return from_toml(text, where=str(path))


def from_toml(text: str, *, where: str = "recipe") -> Recipe:
    """Read a resolved recipe; errors name the place."""
    try:
        tables = parse_toml(text)
    except Unreadable as error:
        raise SettingsError(f"{where} is not valid TOML: {error}") from error
    return from_tables(tables)


def from_tables(tables: Mapping[str, Any]) -> Recipe:
    """A recipe from nested dicts, every key and type checked."""
    for table, values in tables.items():
        if table not in ("task", "model", "train"):
            raise unknown("recipe table", table, ["task", "model", "train"])
        if not isinstance(values, Mapping):
            raise SettingsError(f"[{table}] must be a table of settings, got {shown(values)}")
    task = dict(tables.get("task", {}))
    name = task.get("name")
    if not isinstance(name, str) or name not in TASKS:
        raise unknown("task", name, TASKS)
    known = {f.name: f for f in fields(TASKS[name])}
    for key in task.keys() - {"name"}:
        if key not in known:
            raise unknown(f"setting of task {name!r}", key, known)
        task[key] = typed(f"task.{key}", task[key], known[key])
        refuse_huge(f"task.{key}", task[key])
    given = renewed(tables.get("model", {}))
    model = settings_of(ModelSettings, "model", {**(STACK_DEFAULTS if given.get("kind") == STACK else {}), **given})
    if ("map", model.map) in RETIRED:
        raise unknown("map", model.map, STRUCTURED)
    return Recipe(
        task={k: v for k, v in task.items() if v is not None},
        model=model,
        train=settings_of(TrainSettings, "train", tables.get("train", {})),
    )


def _written(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for key in STACK_DEFAULTS if tables["model"]["kind"] == STACK else ("bits",):  # left out, they would be a number
        if tables["model"][key] is None:
            tables["model"][key] = FULL_PRECISION
    return tables
