"""The settings of a network and of its training: the keys of a recipe's [model] and [train]."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

from qornn.errors import SettingsError, shown, unknown
from qornn.structure import MAPS as STRUCTURED

SCHEDULES = ("steps", "cosine", "one-cycle")
POOLS = ("last", "mean", "all")
STATE_BITS = range(4, 17)
STACK: Final = "stack"  # the kind whose layers are rotations and mixes
STACK_DEFAULTS: Final = {"bits": 4, "activation_bits": 8}  # where its recipe does not say
# The keys of [model] that only a stack has, and those that have no effect on it.
OF_STACKS: Final = (
    *("width", "pairs", "layers", "skip", "pool", "lambda_bits", "r_min", "r_max"),
    *("integrators", "dropout", "input_bits"),
)
OF_OTHERS: Final = (
    *("n_h", "map", "map_options", "mix", "bits_W", "bits_U", "quantizer", "scale", "activation"),
    *("readout_activation", "init", "init_U", "init_V", "gain_V"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The network: the keys of a recipe's [model] table.

    - `kind` ("qornn"): qornn, stack (rotations and mixes), or a baseline: rnn, lstm, gru, fastrnn, fastgrnn.
    - `n_h` (128): units.
    - `map` ("bjorck"): what keeps W orthogonal, or a W that is not stored.
    - `map_options` ({}): options of the map, by the names of its constructor's parameters.
    - `mix` (False): a Walsh-Hadamard transform of the last state before it is read out.
    - `noise` (0.0): deviation of the noise on states while training, as a share of their size.
    - `bits` (8): bits of W and U; with a structured map, of U and V. None means full precision.
    - `bits_W` (None): bits of W if they differ. None means `bits`.
    - `bits_U` (None): bits of U if they differ. None means `bits`.
    - `bits_V` (None): bits of V. None means float; with a structured map, `bits`.
    - `activation_bits` (None): bits of the states while training, for stack, fastrnn and fastgrnn. None means float.
    - `quantizer` ("uniform"): of W: uniform or identity-offset.
    - `scale` ("tensor"): one scale per matrix, or "row" for one per row.
    - `activation` ("relu"): relu, modrelu, identity or tanh.
    - `readout_activation` (None): identity or relu on the states that V reads. None means the map's default.
    - `init` ("haar"): W before training: haar, henaff, henaff-quarter or identity.
    - `init_U` ("xavier-normal"): U before training: xavier-normal or kaiming-normal.
    - `init_V` ("xavier-normal"): V before training: xavier-normal or kaiming-normal.
    - `gain_V` (1.0): factor on V before training.

    Only for kind "stack":

    - `width` (16): outputs of each mix.
    - `pairs` (None): pairs of units in each layer of rotations. None means as many as `width`.
    - `layers` (2): number of layers of rotations.
    - `skip` (False): each mix also reads the input of its rotations.
    - `pool` (None): last, mean or all: the steps that are read out. None means mean, or all if the task reads every
      step.
    - `lambda_bits` (None): bits of λ, 8 to 12. None means 8.
    - `r_min` (0.6): smallest radius of λ before training.
    - `r_max` (0.99): largest radius of λ before training.
    - `integrators` (0): pairs of each layer that start with λ = 1.
    - `dropout` (0.0): share of the mixes' outputs set to zero while training.
    - `input_bits` (None): bits of the inputs. None means lossless up to 12 if the task has raw samples, else 8.
    """

    kind: str = "qornn"
    n_h: int = 128
    map: str = "bjorck"
    map_options: dict[str, Any] = field(default_factory=dict)
    mix: bool = False
    noise: float = 0.0
    bits: int | None = 8
    bits_W: int | None = None
    bits_U: int | None = None
    bits_V: int | None = None
    activation_bits: int | None = None
    quantizer: str = "uniform"
    scale: str = "tensor"
    activation: str = "relu"
    readout_activation: str | None = None
    init: str = "haar"
    init_U: str = "xavier-normal"
    init_V: str = "xavier-normal"
    gain_V: float = 1.0
    width: int = 16
    pairs: int | None = None
    layers: int = 2
    skip: bool = False
    pool: str | None = None
    lambda_bits: int | None = None
    r_min: float = 0.6
    r_max: float = 0.99
    integrators: int = 0
    dropout: float = 0.0
    input_bits: int | None = None

    def __post_init__(self) -> None:
        self._refuse_foreign()
        if self.kind != STACK:
            return
        for name in ("width", "pairs", "layers"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise SettingsError(f"model.{name} must be at least 1, got {value}")
        if self.activation_bits is not None and self.activation_bits not in STATE_BITS:
            low, high = STATE_BITS[0], STATE_BITS[-1]
            raise SettingsError(
                f"activation_bits of a stack must be in {low}..{high}, or fp for float states, "
                f"got {self.activation_bits}"
            )
        if self.pool is not None and self.pool not in POOLS:
            raise unknown("model.pool", self.pool, POOLS)

    def _refuse_foreign(self) -> None:
        """Refuse settings of another kind of network: they would silently change nothing."""
        defaults = {f.name: f.default if f.default is not MISSING else {} for f in fields(self)}
        for name in self.foreign:
            if getattr(self, name) != defaults[name]:
                got = f"model.{name}={shown(getattr(self, name))}"
                if self.kind == STACK:
                    raise SettingsError(
                        f"{got} has no effect on a stack; its size is model.width, model.pairs and model.layers, and "
                        "--model stack trains one"
                    )
                raise SettingsError(f"{got} is a setting only of --model stack; this model is {shown(self.kind)}")

    @property
    def foreign(self) -> tuple[str, ...]:
        """The keys that have no effect on this kind of network: they keep their defaults and are not written."""
        return OF_OTHERS if self.kind == STACK else OF_STACKS

    @property
    def n_out(self) -> int:
        """Numbers that V reads."""
        return self.width if self.kind == STACK else self.n_h

    @property
    def n_pairs(self) -> int:
        """Pairs of each layer of rotations."""
        return self.width if self.pairs is None else self.pairs

    @property
    def shape(self) -> dict[str, int]:
        """The options that a structured map's size depends on."""
        found: dict[str, int] = {key: self.map_options[key] for key in ("block", "lines") if key in self.map_options}
        for key, value in found.items():
            if type(value) is not int:
                raise SettingsError(f"model.map_options.{key} must be int, got {value!r}")
        return found

    @property
    def weight_bits(self) -> int | None:
        """Bits of the widest stored matrix: of W and U, or where W is not stored of U and V. None: full precision."""
        if self.bits is None:
            return None
        structured = self.kind == STACK or (self.kind == "qornn" and self.map in STRUCTURED)
        own = (self.bits_U, self.bits_V) if structured else (self.bits_W, self.bits_U)
        return max(self.bits if k is None else k for k in own)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """The training: the keys of a recipe's [train] table.

    - `optimizer` ("adam"): adam, adamw or rmsprop.
    - `lr` (0.001): learning rate.
    - `divider` (1.0): the learning rate of W is lr/divider.
    - `divider_U` (1.0): the learning rate of U is lr/divider_U.
    - `lr_factor` (1.0): the learning rate is multiplied by this every `lr_every` epochs.
    - `lr_every` (1): epochs between two such changes.
    - `decay` (0.0): weight decay of matrices, with the optimizer adamw.
    - `schedule` ("steps"): steps (see `lr_factor`), cosine (down to zero) or one-cycle (a rise over the first tenth,
      then cosine).
    - `warmup` (0): steps over which the learning rate rises linearly to `lr`.
    - `clip` (0.0): largest norm of the gradient. 0 is no limit.
    - `state_penalty` (0.0): this multiple of the last state's mean square is added to the loss. Smaller states leave
      the integers finer steps.
    - `average` (0.0): share of the training at its end over which weights are averaged. The network keeps the mean.
    - `epochs` (10): epochs of the schedule.
    - `steps` (0): training steps. 0 is as many as the epochs have.
    - `fraction` (1.0): share of the steps in which the whole schedule is run.
    - `batch` (128): sequences per batch, over all processes.
    - `seed` (0): seed of weights and data.
    - `start` (""): a finished run, or a program file of the paper's layer, whose weights are the starting point, for
      example with more bits. "" draws weights.
    - `log_every` (50): steps between records of the metrics.
    - `eval_every` (0): steps between evaluations. 0 is once per epoch.
    - `checkpoint_every` (0): steps between checkpoints. 0 is by time only.
    - `checkpoint_seconds` (15.0): seconds between checkpoints.
    """

    optimizer: str = "adam"
    lr: float = 1e-3
    divider: float = 1.0
    divider_U: float = 1.0
    lr_factor: float = 1.0
    lr_every: int = 1
    decay: float = 0.0
    schedule: str = "steps"
    warmup: int = 0
    clip: float = 0.0
    state_penalty: float = 0.0
    average: float = 0.0
    epochs: int = 10
    steps: int = 0
    fraction: float = 1.0
    batch: int = 128
    seed: int = 0
    start: str = ""
    log_every: int = 50
    eval_every: int = 0
    checkpoint_every: int = 0
    checkpoint_seconds: float = 15.0

    def __post_init__(self) -> None:
        for name in ("lr_every", "epochs", "batch", "log_every"):
            _at_least(name, getattr(self, name), 1)
        for name in ("warmup", "clip", "steps", "seed", "eval_every", "checkpoint_every", "checkpoint_seconds"):
            _at_least(name, getattr(self, name), 0)
        if not 0 <= self.state_penalty < float("inf"):
            raise SettingsError(f"train.state_penalty must be a number of 0 or more, got {self.state_penalty}")
        if not 0 <= self.decay < float("inf"):
            raise SettingsError(f"train.decay must be a number of 0 or more, got {self.decay}")
        if self.decay and self.optimizer != "adamw":
            raise SettingsError(f"train.decay={self.decay} needs the optimizer adamw, not {self.optimizer!r}")
        if self.schedule not in SCHEDULES:
            raise unknown("train.schedule", self.schedule, SCHEDULES)
        if self.seed >= 2**32:
            raise SettingsError(f"train.seed must be below 2^32, got {self.seed}")
        if not 0 <= self.average <= 1:
            raise SettingsError(f"train.average must lie in [0, 1], got {self.average}")
        if not 0 < self.fraction <= 1:
            raise SettingsError(f"train.fraction must lie in (0, 1], got {self.fraction}")
        for name in ("lr", "lr_factor", "divider", "divider_U"):
            if not 0 < getattr(self, name) < float("inf"):
                raise SettingsError(f"train.{name} must be positive, got {getattr(self, name)}")


def _at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise SettingsError(f"train.{name} must be at least {least}, got {value}")
