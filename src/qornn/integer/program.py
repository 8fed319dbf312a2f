"""The network in integers: the single source of truth from which everything that runs on a device is made.

    input     raw samples or codes -> integers x_i                                     (inputs/)
    layers    each turns a state and what it reads into the next state and an output   (layers/)
    readout   y = V h_i + b_o of the last layer's output h_i, in float32 or in integers   (readout.py)

`simulate` is the reference. The native engine, exported C and ONNX (except its float readout) equal it bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qornn.errors import ProgramError, SettingsError
from qornn.integer.activations import Activation
from qornn.integer.check import Checked, of_layer
from qornn.integer.inputs import Input
from qornn.integer.layers import Layer, Recurrent, sources
from qornn.integer.layout import Layout
from qornn.integer.matrices import Matrix, RecurrentMatrix
from qornn.integer.readout import Readout, Steps
from qornn.integer.requant import LIMIT, Requant
from qornn.integer.state import Source, State

if TYPE_CHECKING:
    from qornn.integer.engine.session import Session
    from qornn.integer.memory import Memory

LAYERS_LIMIT = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerProgram(Checked):
    """A network in integers: arrays and plain numbers, checked on construction, read-only afterwards.

    `lower` makes one from a trained network, `load` reads one from a file. `run` gives outputs, `session` a stream.

    - `input`: what a step reads: raw `Samples` with their normalisation, or `Codes`.
    - `layers`: 1 to 64 layers in order. Each reads the outputs of the one before.
    - `readout`: V and its bias, in float32 or in integers, for the last step, all steps or their mean.
    - `provenance` ({}): where the program comes from: recipe, seed, version, metric. Plain JSON.
    """

    input: Input
    layers: tuple[Layer, ...]
    readout: Readout
    provenance: dict[str, Any] = field(default_factory=dict)  # recipe, seed, version, metric: plain JSON

    def __repr__(self) -> str:
        layers = "; ".join(layer.describe() for layer in self.layers)
        return f"IntegerProgram({self.input.describe()}; {layers}; {self.n_o} outputs; {self.true_bytes} bytes)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        for name, kind in (("input", Input), ("readout", Readout), ("provenance", dict)):
            if not isinstance(getattr(self, name), kind):
                raise ProgramError(f"{name} cannot be a {type(getattr(self, name)).__name__}")
        if not 1 <= len(self.layers) <= LAYERS_LIMIT:
            raise ProgramError(f"a program has 1 to {LAYERS_LIMIT} layers, got {len(self.layers)}")
        for layer in self.layers:
            if not isinstance(layer, Layer):
                raise ProgramError(f"a layer cannot be a {type(layer).__name__}")
        for i, (layer, source) in enumerate(self.walk()):
            with of_layer(i, len(self.layers)):
                layer.check(source)
        last = self.layers[-1]
        if self.readout.n_h != last.output.n_i:
            raise ProgramError(
                f"V must have a column for each of the {last.output.n_i} units, got {self.readout.V.shape}"
            )
        largest = max((int(bounds.max()) for bounds in self.readout.bounds(last.output.top)), default=0)
        if largest >= LIMIT:
            raise ProgramError(
                f"a sum of the readout can reach {largest}, but the 32-bit accumulator holds at most {LIMIT - 1} "
                f"({self.readout.n_h} units, states {last.output.bits} bits); {self.readout.way_out(last.output.top)}"
            )

    def walk(self) -> zip[tuple[Layer, Source]]:
        """Each layer with what it reads."""
        return zip(self.layers, sources(self.input, self.layers), strict=True)

    def rooms(self, layout: Layout) -> list[int]:
        """Length of each layer's input buffer: its own kernels, and a skip after it, may read more than the inputs."""
        own = [layer.room(source, layout) for layer, source in self.walk()]
        skips = [layer.skip_room(source, layout) for layer, source in self.walk()]
        return [max(room, skip) for room, skip in zip(own, [*skips[1:], 0], strict=True)]

    @property
    def n_i(self) -> int:
        return self.input.n_i

    @property
    def n_o(self) -> int:
        return self.readout.n_o

    @property
    def n_out(self) -> int:
        """Width of the last layer, whose outputs are read out."""
        return self.layers[-1].output.n_i

    @property
    def n_state(self) -> int:
        """Numbers kept from step to step, by the input and all layers."""
        return sum(part.n_state for part in self.keepers)

    @property
    def keepers(self) -> tuple[Input | Layer, ...]:
        """What may keep numbers from step to step, in the order of the state; all of them are 0 at the start."""
        return self.input, *self.layers

    def apart(self, h: np.ndarray) -> list[np.ndarray]:
        """Whole states as those of each keeper.  # (B, n_state) -> (B, n) each"""
        return np.split(h, np.cumsum([part.n_state for part in self.keepers])[:-1], 1)

    @property
    def shown(self) -> int:
        """The layer whose states `simulate` gives: the last that has any."""
        return max((i for i, layer in enumerate(self.layers) if layer.n_state), default=len(self.layers) - 1)

    @property
    def n_shown(self) -> int:
        """Width of those states."""
        return self.layers[self.shown].n_state

    @property
    def steps(self) -> Steps:
        return self.readout.steps

    @property
    def bits(self) -> int:
        """Bits of the widest stored matrix: of W and U, or where no W is stored of all others and V."""
        bits = [layer.weight_bits for layer in self.layers]
        return max([*bits, 0 if self.W_stored else self.readout.bits_V or 0])

    @property
    def W_stored(self) -> bool:
        """Whether some layer stores its recurrent matrix."""
        return any(layer.stores_W for layer in self.layers)

    @property
    def activation_bits(self) -> int:
        """Bits of the widest state."""
        return max(layer.state_bits for layer in self.layers)

    @property
    def numpy_only(self) -> str:
        """The part that neither C nor ONNX supports, and what to do instead. Empty if they support all."""
        return next((layer.numpy_only for layer in self.layers if layer.numpy_only), "")

    @property
    def native(self) -> bool:
        """Whether the host's C engine supports every part of it. Otherwise numpy runs the program."""
        return not self.numpy_only and all(layer.native for layer in self.layers)

    @property
    def accumulator_bound(self) -> int:
        """The largest magnitude any 32-bit sum of a step can reach, from the actual integers."""
        bounds = [bounds for layer, source in self.walk() for bounds in layer.bounds(source)]
        return int(max(b.max() for b in [*bounds, *self.readout.bounds(self.layers[-1].output.top)]))

    @property
    def accumulator_bits(self) -> int:
        """Bits, sign included, that hold every sum of a step."""
        return self.accumulator_bound.bit_length() + 1

    @property
    def parameters(self) -> int:
        """Weights that were learned, biases aside."""
        return sum(layer.parameters for layer in self.layers) + self.readout.V.size

    @property
    def true_bytes(self) -> int:
        """Everything a device must store: packed weights, biases, requantization, normalisation and readout."""
        layers = sum(layer.stored_bytes for layer in self.layers)
        return self.input.stored_bytes + layers + self.readout.stored_bytes

    # Of a program of one recurrent layer, its parts.

    @property
    def W(self) -> RecurrentMatrix:
        return self._only("W").W

    @property
    def U(self) -> Matrix:
        return self._only("U").U

    @property
    def state(self) -> State:
        return self._only("state").state

    @property
    def activation(self) -> Activation:
        return self._only("activation").activation

    @property
    def requant(self) -> Requant:
        return self._only("requant").requant

    @property
    def bias(self) -> np.ndarray | None:
        return self._only("bias").bias

    @property
    def n_h(self) -> int:
        return self._only("n_h").n_h

    @property
    def scheme(self) -> str:
        return self._only("scheme").scheme

    def _only(self, name: str) -> Recurrent:
        if len(self.layers) > 1 or not isinstance(self.layers[0], Recurrent):
            raise ProgramError(
                f"this program has {len(self.layers)} layers, so it has no single {name}; "
                f"program.layers[i].{name} is that of one"
            )
        return self.layers[0]

    def accept(self, x: Any, lengths: Any = None, *, saturate: bool = False) -> tuple[np.ndarray, np.ndarray, int]:
        """Inputs and true lengths, checked, and how many inputs were clipped."""
        x = np.asarray(x)
        if x.ndim < 2 or 0 in x.shape[:2]:
            raise SettingsError(f"x must hold at least one sequence of at least one step, got shape {x.shape}")
        raw, clipped = self.input.accept(x, saturate=saturate)
        B, T = raw.shape[:2]
        if lengths is None:
            return raw, np.full(B, T), clipped
        lengths = np.asarray(lengths)
        if lengths.shape != (B,) or lengths.dtype.kind not in "iu" or not ((lengths >= 1) & (lengths <= T)).all():
            raise SettingsError(f"lengths must be {B} whole numbers in 1..{T}, one per sequence; got {lengths}")
        return raw, lengths.astype(np.int64), clipped

    def run(self, x: Any, lengths: Any = None, *, saturate: bool = False, threads: int | None = None) -> np.ndarray:
        """Outputs of raw integers (B, T, n_raw) or codes (B, T), by the native engine.  # (B, n_o) or (B, T, n_o)"""
        from qornn.integer.engine.run import run

        return run(self, x, lengths, saturate=saturate, threads=threads)

    def session(self) -> Session:
        """A stream: one sample in, one answer out, constant memory."""
        from qornn.integer.engine.session import Session

        return Session(self)

    def memory(self) -> Memory:
        """Bytes of flash and RAM that the exported C takes: NAME_FLASH_BYTES, NAME_RAM_BYTES and NAME_STEPS_MAX."""
        from qornn.integer.memory import memory

        return memory(self)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, weights packed at their bits."""
        from qornn.integer.storage import save

        save(self, Path(path))

    def with_provenance(self, **facts: Any) -> IntegerProgram:
        """The same program with additional provenance."""
        return replace(self, provenance={**self.provenance, **facts})
