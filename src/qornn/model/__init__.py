"""The network of the paper, in its symbols: the room to read first.

    W = map(W_raw)            orthogonal                      (maps/)
    W_q, U_q = q_k(W), q_k(U) on k bits                       (quant/)
    h_t = σ(W_q h_{t−1} + U_q x_t),  h_0 = 0                  recurrence.py   OrthogonalRecurrence
    σ(z) = sign(z)·max(|z| + b, 0)                            modrelu.py      ModReLU
    y = V h + b_o             of the last state, or of all    network.py      OrthogonalRNN (readout.py)
    h^i = layer^i(h^(i−1))    several layers, one y           stack.py        Stack (layer.py)
    z_t = λ z_{t−1} + U_q x_t plane rotations with decay      rotations.py    Rotations (steps.py)
    y_t = relu(C_q n_t + c)   between them                    mix.py          Mix

The map and the quantizer run once per forward pass, never once per time step.

A structured map (such as Hadamard) makes a linear recurrence with a W that is exactly orthogonal:

    h_t = W h_{t−1} + U_q x_t + b,  y = V_q relu(h) + b_o     without unrolling where W is fixed (recurrence/linear)

Beside them, `inputs.py` checks x, lengths and h0, `keywords.py` what a network is built with, and `weights.py` draws U
and V.
"""

from qornn.model.layer import SequenceLayer
from qornn.model.mix import Mix
from qornn.model.modrelu import ModReLU
from qornn.model.network import OrthogonalRNN
from qornn.model.readout import ReadsOut
from qornn.model.recurrence import OrthogonalRecurrence
from qornn.model.rotations import Rotations
from qornn.model.stack import Stack
from qornn.model.steps import alone

__all__ = [
    "Mix",
    "ModReLU",
    "OrthogonalRNN",
    "OrthogonalRecurrence",
    "ReadsOut",
    "Rotations",
    "SequenceLayer",
    "Stack",
    "alone",
]
