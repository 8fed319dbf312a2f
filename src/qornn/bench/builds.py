"""The same network built three ways: on our recurrence, on torch.nn.RNN, and on a loop under autograd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qornn.maps import Bjorck
from qornn.model import OrthogonalRNN

BITS = 5


@dataclass(frozen=True, slots=True)
class Shape:
    """One of the paper's tasks, as a training step sees it."""

    T: int
    n_i: int
    n_h: int
    n_o: int
    readout: str
    codes: bool
    steps_per_epoch: int
    paper_minutes: float  # an epoch of STE-Björck on the paper's RTX 3080
    B: int = 128

    @property
    def gflop(self) -> float:
        """Of the products with W alone: forward, backward, and the gradient of W."""
        return 3 * 2 * self.T * self.B * self.n_h**2 / 1e9


SHAPES = {
    "copy": Shape(1020, 10, 256, 9, "all", True, 4000, 38),
    "mnist": Shape(784, 1, 170, 10, "last", False, 468, 2.2),
    "ptb": Shape(150, 50, 1024, 50, "all", True, 421, 1.07),
}


def batch(shape: Shape, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random inputs and targets of that shape."""
    g = torch.Generator().manual_seed(seed)
    size = (shape.B, shape.T)
    x = torch.randint(0, shape.n_i, size, generator=g) if shape.codes else torch.rand(*size, shape.n_i, generator=g)
    target = torch.randint(0, shape.n_o, size if shape.readout == "all" else size[:1], generator=g)
    return x, target


class OnRNN(nn.Module):
    """Weights as ours (Björck, q_k, readout), states by torch.nn.RNN: ReLU only, one-hot inputs written out."""

    def __init__(self, model: OrthogonalRNN) -> None:
        super().__init__()
        self.model = model
        layer = model.recurrence
        self.rnn = [nn.RNN(layer.n_i, layer.n_h, nonlinearity="relu", bias=False, batch_first=True)]  # not a submodule

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        layer = self.model.recurrence
        if not x.is_floating_point():
            x = F.one_hot(x, layer.n_i).to(layer.W_raw.dtype)
        weights = {"weight_hh_l0": layer.W_q(), "weight_ih_l0": layer.U_q()}
        states, last = torch.func.functional_call(self.rnn[0], weights, (x,))
        h = last[0] if self.model.readout == "last" else states
        return F.linear(h, self.model.V, self.model.b_o), last[0]


class OnLoop(nn.Module):
    """Weights as ours, states by a Python loop under autograd."""

    def __init__(self, model: OrthogonalRNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        layer = self.model.recurrence
        W, U = layer.W_q(), layer.U_q()
        drive = F.linear(x, U) if x.is_floating_point() else F.embedding(x, U.T)  # (B, T, n_h)
        activate: Callable[[Tensor], Tensor] = layer.modrelu if layer.modrelu is not None else torch.relu
        h = drive.new_zeros(len(x), layer.n_h)
        states = []
        for term in drive.unbind(1):  # drive[:, t] would build a (B, T, n_h) gradient at every step
            h = activate(F.linear(h, W) + term)
            states.append(h)
        read = h if self.model.readout == "last" else torch.stack(states, 1)
        return F.linear(read, self.model.V, self.model.b_o), h


BUILDS: dict[str, Callable[[OrthogonalRNN], nn.Module]] = {
    "ours": lambda model: model,
    "nn_rnn": OnRNN,
    "autograd": OnLoop,
}


def build(name: str, shape: Shape, activation: str) -> nn.Module:
    """One of the three on the same weights; the peers run the 15 Björck iterations as published."""
    model = OrthogonalRNN(
        shape.n_i,
        shape.n_h,
        shape.n_o,
        map=Bjorck(exact=name != "ours"),
        bits=BITS,
        activation=activation,
        readout=shape.readout,  # type: ignore[arg-type]
        generator=torch.Generator().manual_seed(0),
    )
    return BUILDS[name](model)


def structured(map: str, shape: Shape) -> nn.Module:
    """The network of a structured map on that shape."""
    return OrthogonalRNN(
        shape.n_i,
        shape.n_h,
        shape.n_o,
        map=map,
        bits=BITS,
        readout=shape.readout,  # type: ignore[arg-type]
        generator=torch.Generator().manual_seed(0),
    )


def training_step(model: nn.Module, shape: Shape) -> Callable[[], float]:
    """A whole step: map, quantizer, recurrence, readout, loss, backward, optimizer. W changes at every call."""
    x, target = batch(shape)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-4)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        y, _ = model(x)
        loss = F.cross_entropy(y.flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
