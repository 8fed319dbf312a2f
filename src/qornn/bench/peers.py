"""Other libraries for the same job: recurrent networks of onnxruntime and torch, float and dynamically quantized."""

from __future__ import annotations

import io
import logging
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from qornn.errors import QornnError

OPSET, IR_VERSION = 21, 10


class Skipped(QornnError):
    """A peer that cannot be measured here, and why."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A call over one whole sequence (of a batch), and the bytes of the model as it is stored."""

    call: Callable[[], Any]
    model_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The sizes, and what all are fed: x in 0..1; one input per step, the outputs read at the last step."""

    n_h: int
    n_o: int
    B: int
    T: int
    threads: int

    def x(self) -> np.ndarray:
        return np.random.default_rng(0).random((self.T, self.B, 1), np.float32)  # (T, B, 1): what ONNX's operators take

    def weights(self, gates: int) -> dict[str, np.ndarray]:
        """W of every gate orthogonal, so that nothing explodes; the same for onnxruntime and torch."""
        rng = np.random.default_rng(1)
        W = np.concatenate([np.linalg.qr(rng.normal(size=(self.n_h, self.n_h)))[0] for _ in range(gates)])
        U = rng.uniform(-1, 1, (gates * self.n_h, 1)) / np.sqrt(self.n_h)
        V = rng.uniform(-1, 1, (self.n_o, self.n_h)) / np.sqrt(self.n_h)
        return {"W": W.astype(np.float32), "U": U.astype(np.float32), "V": V.astype(np.float32)}


def ort_rnn_float(job: Job) -> Peer:
    """ONNX's RNN operator with ReLU."""
    data = _onnx_model(job, "RNN", activations=["Relu"])
    return Peer(_ort_call(data, job), len(data))


def ort_lstm_int8(job: Job) -> Peer:
    """ONNX's LSTM operator under onnxruntime's dynamic quantization, int8 weights."""
    data = _quantized(_onnx_model(job, "LSTM"))
    return Peer(_ort_call(data, job), len(data))


def torch_rnn_float(job: Job) -> Peer:
    return _torch_peer(job, _TorchNet(job, torch.nn.RNN(1, job.n_h, nonlinearity="relu", bias=False), gates=1))


def torch_lstm_int8(job: Job) -> Peer:
    """torch.ao.quantization.quantize_dynamic, which torch has announced it will drop."""
    quantize = getattr(getattr(torch.ao, "quantization", None), "quantize_dynamic", None)
    if quantize is None:
        raise Skipped(f"torch {torch.__version__} has no quantize_dynamic")
    net = _TorchNet(job, torch.nn.LSTM(1, job.n_h), gates=4)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations: this is why it may be skipped one day
            return _torch_peer(job, quantize(net, {torch.nn.LSTM, torch.nn.Linear}, dtype=torch.qint8))
    except (RuntimeError, NotImplementedError) as error:
        raise Skipped(
            f"torch {torch.__version__} cannot quantize an LSTM here: {str(error).splitlines()[0]}"
        ) from error


PEERS: dict[str, Callable[[Job], Peer]] = {
    "ort_lstm_int8": ort_lstm_int8,
    "ort_rnn_float": ort_rnn_float,
    "torch_rnn_float": torch_rnn_float,
    "torch_lstm_int8": torch_lstm_int8,
}


def ort_session(data: bytes, threads: int) -> Any:
    """An onnxruntime session on that many threads."""
    _, ort = _onnx_packages()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _onnx_packages() -> tuple[Any, Any]:
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise Skipped(f"{error.name} is not installed: pip install 'qornn[onnx]'") from error
    return onnx, onnxruntime


def _onnx_model(job: Job, op: str, **attributes: Any) -> bytes:
    """The operator over the sequence and a linear readout of its last state."""
    onnx, _ = _onnx_packages()
    helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
    w = job.weights(4 if op == "LSTM" else 1)
    arrays = {"U": w["U"][None], "W": w["W"][None], "V": w["V"].T, "axis": np.array([0])}
    nodes = [
        helper.make_node(op, ["x", "U", "W"], ["", "h"], hidden_size=job.n_h, **attributes),
        helper.make_node("Squeeze", ["h", "axis"], ["h_T"]),
        helper.make_node("MatMul", ["h_T", "V"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        op,
        [helper.make_tensor_value_info("x", FLOAT, ["T", "B", 1])],
        [helper.make_tensor_value_info("y", FLOAT, ["B", job.n_o])],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _quantized(data: bytes) -> bytes:
    onnx, _ = _onnx_packages()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    level = logging.root.level
    logging.root.setLevel(logging.ERROR)  # it advises a pre-processing that is for convolutions
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "float.onnx"), Path(folder, "int8.onnx")
            source.write_bytes(data)
            quantize_dynamic(source, target, weight_type=QuantType.QInt8)
            found = target.read_bytes()
    finally:
        logging.root.setLevel(level)
    if "DynamicQuantizeLSTM" not in {node.op_type for node in onnx.load_from_string(found).graph.node}:
        raise Skipped("onnxruntime's quantize_dynamic left the LSTM in float")
    return found


def _ort_call(data: bytes, job: Job) -> Callable[[], Any]:
    session, x = ort_session(data, job.threads), job.x()
    return lambda: session.run(["y"], {"x": x})[0]


class _TorchNet(torch.nn.Module):
    def __init__(self, job: Job, layer: torch.nn.RNNBase, gates: int) -> None:
        super().__init__()
        self.layer = layer
        self.V = torch.nn.Linear(job.n_h, job.n_o, bias=False)
        w = {name: torch.from_numpy(array) for name, array in job.weights(gates).items()}
        state = layer.state_dict()
        state |= {"weight_hh_l0": w["W"], "weight_ih_l0": w["U"]}
        state |= {name: torch.zeros_like(tensor) for name, tensor in state.items() if name.startswith("bias")}
        layer.load_state_dict(state)
        self.V.load_state_dict({"weight": w["V"]})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.layer(x)  # (T, B, n_h)
        return self.V(states[-1])


def _torch_peer(job: Job, net: torch.nn.Module) -> Peer:
    net.eval()
    x = torch.from_numpy(job.x())
    stored = io.BytesIO()
    torch.save(net.state_dict(), stored)

    def call() -> Any:
        torch.set_num_threads(job.threads)  # torch knows one number for the whole process
        with torch.inference_mode():
            return net(x)

    call()  # an operator that this build lacks says so here
    return Peer(call, stored.tell())
