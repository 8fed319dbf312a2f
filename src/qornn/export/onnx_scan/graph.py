"""Nodes of an ONNX graph, added one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from qornn.errors import QornnError

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

WIDTHS: Final = ((4, "INT4"), (8, "INT8"))


def package() -> Any:
    """onnx itself."""
    try:
        import onnx
    except ImportError as error:
        raise QornnError("ONNX export needs onnx, which is not installed: pip install 'qornn[onnx]'") from error
    return onnx


@dataclass
class Graph:
    """Nodes in order; calling it adds one and gives the name of its result."""

    prefix: str = ""
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    count: int = 0

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.many(op, inputs, 1, **attributes)[0]

    def many(self, op: str, inputs: Any, outputs: int, **attributes: Any) -> list[str]:
        names = [self._name(op) for _ in range(outputs)]
        self.nodes.append(package().helper.make_node(op, list(inputs), names, **attributes))
        return names

    def cast(self, value: str, kind: str) -> str:
        return self("Cast", value, to=getattr(package().TensorProto, kind))

    def times(self, value: str, factor: float, kind: str) -> str:
        return value if factor == 1 else self("Mul", value, self.constant(factor, kind))

    def at_least(self, value: str, low: int, kind: str = "INT64") -> str:
        limit = self.constant(low, kind)
        return self("Where", self("Less", value, limit), limit, value)

    def at_most(self, value: str, high: int, kind: str = "INT64") -> str:
        limit = self.constant(high, kind)
        return self("Where", self("Greater", value, limit), limit, value)

    def constant(self, values: Any, kind: str, name: str | None = None) -> str:
        ox = package()
        array = np.asarray(values)
        name = name or self._name("constant")
        tensor = ox.helper.make_tensor(name, getattr(ox.TensorProto, kind), array.shape, array.ravel().tolist())
        self.initializers.append(tensor)
        return name

    def input(self, name: str, kind: str, shape: list[str | int]) -> str:
        self.inputs.append(self._value(name, kind, shape))
        return name

    def output(self, value: str, name: str, kind: str, shape: list[str | int]) -> str:
        self.nodes.append(package().helper.make_node("Identity", [value], [name]))
        self.outputs.append(self._value(name, kind, shape))
        return name

    def inner(self) -> Graph:
        """The body of a loop; it sees the names of this graph, so its own must differ."""
        return Graph(prefix=f"{self.prefix}step_")

    def proto(self, name: str) -> Any:
        return package().helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.initializers)

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{self.prefix}{kind.lower()}_{self.count}"

    def _value(self, name: str, kind: str, shape: list[str | int]) -> Any:
        ox = package()
        return ox.helper.make_tensor_value_info(name, getattr(ox.TensorProto, kind), shape)

    def weights(self, name: str, integers: np.ndarray, bits: int) -> str:
        """A stored matrix, widened once outside the Scan (onnxruntime does it when the session opens)."""
        kind = next((kind for most, kind in WIDTHS if bits <= most), None)
        if kind is None:
            return self.constant(integers, "INT32", name)
        return self.cast(self.constant(integers, kind, name), "INT32")
