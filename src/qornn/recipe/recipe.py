"""Recipes: what to train and how, as frozen dataclasses read from TOML.

A recipe file holds a task's shared settings, what each strategy changes, and every cell of the paper's tables. A run
folder holds one resolved recipe. Unknown keys are refused with the nearest known one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from qornn._io.foreign import Unreadable, is_number, parse_toml, read_text
from qornn._io.text import readable
from qornn.bits import FULL_PRECISION, parse_bits
from qornn.errors import RETIRED, CheckpointError, SettingsError, shown, unknown
from qornn.structure import MAPS as STRUCTURED
from qornn.tasks import TASKS


def _at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise SettingsError(f"train.{name} must be at least {least}, got {value}")


AS_THE_RECIPE = "recipe"  # bits that were not asked for
SCHEDULES = ("steps", "cosine")
SHARED = "structured"  # the strategy that all structured maps of a recipe share


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The network; the keys of a recipe's [model] table."""

    kind: str = "qornn"
    n_h: int = 128
    map: str = "bjorck"
    rank: int = 1  # projunn: of the update
    penalty: float = 0.1  # penalty: λ
    exact: bool = False  # bjorck: every iteration as written, the slow way to the same matrix
    map_seed: int = 0  # structured maps: of the signs
    learn: bool = False  # hadamard: its signs too
    block: int = 16  # hadamard-block: of its blocks
    lines: int = 16  # delay: of its lines
    mix: bool = False  # a Walsh-Hadamard transform of the last state before it is read out
    noise: float = 0.0  # on states while training, as a share of their size
    bits: int | None = 8  # of W and U; with a structured map of U and V
    bits_W: int | None = None  # None: the same as bits
    bits_U: int | None = None  # None: the same as bits
    bits_V: int | None = None  # None: float, or with a structured map the same as bits
    activation_bits: int | None = None  # fastrnn, fastgrnn: of the state while training; else states are float
    quantizer: str = "uniform"
    scale: str = "tensor"
    activation: str = "relu"
    readout_activation: str | None = None
    init: str = "haar"
    init_U: str = "xavier-normal"
    init_V: str = "xavier-normal"
    gain_V: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """The training; the keys of a recipe's [train] table."""

    optimizer: str = "adam"
    lr: float = 1e-3
    divider: float = 1.0  # of W's updates alone
    divider_U: float = 1.0  # of U's
    lr_factor: float = 1.0  # the learning rate is multiplied by this every lr_every epochs
    lr_every: int = 1
    schedule: str = "steps"  # or "cosine": down to nothing at the end
    warmup: int = 0  # steps of linear rise to lr
    clip: float = 0.0  # gradient norm; 0: none
    state_penalty: float = 0.0  # of the last state's mean square: small states leave integers fine steps
    epochs: int = 10
    steps: int = 0  # 0: as many as the epochs take
    fraction: float = 1.0  # of the epochs: the whole schedule in that share of its steps
    batch: int = 128
    seed: int = 0
    start: str = ""  # a finished run whose weights to begin with, as in fewer bits than it has; "": drawn by the seed
    log_every: int = 50  # steps
    eval_every: int = 0  # steps; 0: every epoch
    checkpoint_every: int = 0  # steps; 0: by time alone
    checkpoint_seconds: float = 15.0

    def __post_init__(self) -> None:
        for name in ("lr_every", "epochs", "batch", "log_every"):
            _at_least(name, getattr(self, name), 1)
        for name in ("warmup", "clip", "steps", "seed", "eval_every", "checkpoint_every", "checkpoint_seconds"):
            _at_least(name, getattr(self, name), 0)
        if not 0 <= self.state_penalty < float("inf"):
            raise SettingsError(f"train.state_penalty must be a number of 0 or more, got {self.state_penalty}")
        if self.schedule not in SCHEDULES:
            raise unknown("train.schedule", self.schedule, SCHEDULES)
        if self.seed >= 2**32:
            raise SettingsError(f"train.seed must be below 2^32, got {self.seed}")
        if not 0 < self.fraction <= 1:
            raise SettingsError(f"train.fraction must lie in (0, 1], got {self.fraction}")
        for name in ("lr", "lr_factor", "divider", "divider_U"):
            if not 0 < getattr(self, name) < float("inf"):
                raise SettingsError(f"train.{name} must be positive, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One network to train: the task's settings, the model's and the training's."""

    task: dict[str, Any]  # name, and fields of the task's class that differ from its defaults
    model: ModelSettings = ModelSettings()
    train: TrainSettings = TrainSettings()

    def override(self, assignments: Iterable[str]) -> Recipe:
        """The recipe with 'train.lr=1e-3' and the like applied, one after another."""
        tables = self.tables()
        for text in assignments:
            key, value = _parse_assignment(text)
            table, _, name = key.partition(".")
            if table not in tables or not name:
                raise SettingsError(f"{text!r}: a setting is task.NAME, model.NAME or train.NAME, as in train.lr=1e-3")
            if key == "train.steps" and value == 0:  # in a file 0 stands for the epochs
                raise SettingsError("train.steps must be at least 1, got 0; leave it out to train as the recipe says")
            tables[table][name] = value
        return from_tables(tables)

    def tables(self) -> dict[str, dict[str, Any]]:
        """As nested plain dicts, the TOML's own shape."""
        return {"task": dict(self.task), "model": asdict(self.model), "train": asdict(self.train)}

    def portable_tables(self) -> dict[str, dict[str, Any]]:
        """The tables without where things lie on this machine: no data folder, of another run its name alone."""
        tables = self.tables()
        tables["task"].pop("data_dir", None)
        tables["train"]["start"] = Path(tables["train"]["start"]).name
        return tables

    def to_toml(self) -> str:
        """Text that `from_toml` reads back as an equal recipe."""
        return "\n".join(
            f"[{table}]\n"
            + "".join(
                f"{key} = {_toml(f'{table}.{key}', value)}\n" for key, value in values.items() if value is not None
            )
            for table, values in _written(self.tables()).items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of one of the paper's tables."""

    recipe: Recipe  # what to train
    table: str
    strategy: str
    bits: int | None
    paper: float | str | None  # a number, NC or NU
    facts: dict[str, Any]  # the TOML's other keys: paper_at, paper_kB, cited, note …

    @property
    def post(self) -> bool:
        """Trained at full precision and quantized afterwards (PTQ)."""
        return bool(self.facts.get("post"))


def names() -> list[str]:
    """Every task that has a recipe."""
    return sorted(f.name.removesuffix(".toml") for f in _folder().iterdir() if f.name.endswith(".toml"))


def resolve(
    task: str,
    *,
    model: str = "qornn",
    map: str | None = None,
    bits: int | str | None = AS_THE_RECIPE,
    settings: Iterable[str] = (),
) -> Recipe:
    """The recipe of a task for the strategy that `map` or the baseline `model` names.

    `bits` is 2..8, or None or "fp" for full precision; a map that is no strategy of the file takes the first one's
    settings.
    """
    if map is not None and model != "qornn":
        raise SettingsError(f"the model {model!r} has no orthogonal matrix; leave out map={map!r}")
    if map == SHARED:
        raise SettingsError(f"structured is not one map; take {', '.join(STRUCTURED[:-1])} or {STRUCTURED[-1]}")
    strategy = map if model == "qornn" else model
    recipe = _for_strategy(task, strategy)
    changes: dict[str, Any] = {"kind": model}
    if map is not None and map not in strategies(task):
        changes["map"] = map
    if bits != AS_THE_RECIPE:
        changes["bits"] = parse_bits(bits)
    return replace(recipe, model=replace(recipe.model, **changes)).override(settings)


def cells(task: str) -> list[Cell]:
    """Every cell of the paper's tables on this task, in the file's order."""
    return [_cell(task, entry) for entry in _read(task).get("cell", [])]


def strategies(task: str) -> dict[str, dict[str, Any]]:
    """The strategies of a task's recipe, each with what it changes."""
    return dict(_read(task).get("strategy", {}))


def find_cell(recipe: Recipe, *, post_bits: int | None = None) -> Cell | None:
    """The paper's cell for this network, if it has one; cells of the same network are told apart by lr and batch."""
    network = (_facts_of(recipe.task), recipe.model)
    matches = [
        c
        for c in cells(recipe.task["name"])
        if (_facts_of(c.recipe.task), c.recipe.model) == network
        and (c.bits == post_bits if c.post else post_bits is None)
        and c.paper is not None
        and "note" not in c.facts
    ]
    alike = [c for c in matches if (c.recipe.train.lr, c.recipe.train.batch) == (recipe.train.lr, recipe.train.batch)]
    return next(iter(alike or [c for c in matches if c.table != "hyper"]), None)


def setting(key: str, value: Any) -> str:
    """The assignment that `override` reads back as this value, whatever characters it has."""
    return f"{key}={_toml(key, value)}"


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
        task[key] = _typed(f"task.{key}", task[key], known[key])
        _refuse_huge(f"task.{key}", task[key])
    model = _settings(ModelSettings, "model", tables.get("model", {}))
    if ("map", model.map) in RETIRED:
        raise unknown("map", model.map, STRUCTURED)
    return Recipe(
        task={k: v for k, v in task.items() if v is not None},
        model=model,
        train=_settings(TrainSettings, "train", tables.get("train", {})),
    )


def _cell(task: str, entry: Mapping[str, Any]) -> Cell:
    facts = dict(entry)
    table, strategy = facts.pop("table"), facts.pop("strategy")
    bits, paper = parse_bits(facts.pop("bits")), facts.pop("paper", None)
    recipe = _for_strategy(task, strategy)
    trained = None if facts.get("post") else bits
    recipe = replace(recipe, model=replace(recipe.model, bits=trained, activation_bits=facts.get("activation_bits")))
    recipe = recipe.override(setting(key, value) for key, value in facts.pop("set", {}).items())
    return Cell(recipe=recipe, table=table, strategy=strategy, bits=bits, paper=paper, facts=facts)


def _for_strategy(task: str, strategy: str | None) -> Recipe:
    """The file's shared tables with the strategy's changes on top; an unlisted one takes those of the first."""
    file = _read(task)
    known = file.get("strategy", {})
    first = known[SHARED] if strategy in STRUCTURED and SHARED in known else next(iter(known.values()), {})
    chosen = known.get(strategy, first)
    tables = {t: {**file.get(t, {}), **chosen.get(t, {})} for t in ("task", "model", "train")}
    if strategy in STRUCTURED:
        tables["model"]["map"] = strategy
    return from_tables(tables)


@cache
def _read(task: str) -> dict[str, Any]:
    if task not in names():
        raise unknown("recipe", task, names())
    return tomllib.loads((_folder() / f"{task}.toml").read_text(encoding="utf-8"))


def _folder() -> Any:
    return resources.files("qornn") / "recipe" / "data"


def _facts_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """What of a task's settings makes it another task: all but where its files lie and how much is held out."""
    instance = TASKS[task["name"]](**{k: v for k, v in task.items() if k != "name"})
    return {k: v for k, v in asdict(instance).items() if k not in ("data_dir", "validation")} | {"name": task["name"]}


def _settings(kind: type[Any], table: str, values: Mapping[str, Any]) -> Any:
    known = {f.name: f for f in fields(kind)}
    for key in values:
        if key not in known:
            raise unknown(f"setting of [{table}]", key, known)
    made = kind(**{key: _typed(f"{table}.{key}", value, known[key]) for key, value in values.items()})
    for key, value in values.items():  # after its own checks, which say more
        _refuse_huge(f"{table}.{key}", value)
    return made


def _refuse_huge(key: str, value: Any) -> None:
    """Numbers past 64 bits, which torch and numpy would refuse in their own words."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise SettingsError(f"{key} must lie within 64 bits, got {shown(value)}")


def _typed(key: str, value: Any, field: Field[Any]) -> Any:
    """The value as the field's type, or an error that says both."""
    kind = str(field.type).replace(" ", "")
    optional = kind.endswith("|None")
    kind = kind.removesuffix("|None")
    if key == "model.bits":
        return parse_bits(value)
    if value is None and (optional or field.default is MISSING):
        return None
    if kind == "float" and is_number(value):
        return float(value)
    if kind == "int" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "str" and isinstance(value, str):
        return _utf8(key, value)
    raise SettingsError(f"{key} must be {kind}, got {shown(value)}")


def _parse_assignment(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if "\n" in text or "\r" in text:
        raise SettingsError(f"{shown(text)}: a setting is one line; give --set once for each")
    if not equals:
        raise SettingsError(f"{text!r}: a setting is written KEY=VALUE, as in train.lr=1e-3")
    try:
        return key.strip(), parse_toml(f"v = {value.strip()}")["v"]
    except Unreadable:  # a bare word, as typed in a shell
        word = value.strip()
        return key.strip(), _number(word) if word else word


def _number(word: str) -> Any:
    """1e-3 and .5 are no TOML numbers in every spelling, but people type them; null is our None."""
    if word == "null":
        return None
    try:
        return float(word)
    except ValueError:
        return word


def _written(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    if tables["model"]["bits"] is None:
        tables["model"]["bits"] = FULL_PRECISION
    return tables


def _toml(key: str, value: Any) -> str:
    """One TOML value; JSON's spelling of strings, integers and booleans is TOML's too, but for DEL."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        _utf8(key, value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _utf8(key: str, text: str) -> str:
    """The text; the bytes of a file name that is not UTF-8 are refused, since TOML cannot hold them."""
    if readable(text) != text:
        raise SettingsError(f"{key} must be UTF-8 text, got {text!r}; rename the file, or link to it by another name")
    return text
