"""h_t = W h_{t−1} + U x_t + b for a fixed W, without unrolling: sums of powers of W, by doubling.

Both forms are exact: the same numbers as one step after another, but for the order of the sums.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from qornn.recurrence import native

CHUNK = 32  # steps whose powers are stacked


class Powers:
    """W, W², W⁴, …, each computed once; of a signed Hadamard matrix also its signs, for the fast transform."""

    def __init__(self, W: Tensor | Callable[[], Tensor], signs: Tensor | None = None) -> None:
        self._W = W  # asked for only when a power is: fast transforms need none
        self._found: list[Tensor] = []
        self.signs = signs

    def __getitem__(self, doublings: int) -> Tensor:
        with torch.inference_mode(False), torch.no_grad():  # what is kept may be trained through later
            if not self._found:
                self._found.append(self._W if isinstance(self._W, Tensor) else self._W())
            while len(self._found) <= doublings:
                self._found.append(self._found[-1] @ self._found[-1])
        return self._found[doublings]


def last_state(x: Tensor, powers: Powers, U: Tensor, b: Tensor | None, lengths: Tensor | None) -> Tensor:
    """The state at each sequence's end: one product with A, whose columns for step t are W^(T−1−t) U.  # (B, n_h)"""
    T = x.shape[1]
    codes = not x.is_floating_point()
    if lengths is not None:
        x = _right_aligned(x, lengths)
    width = U.shape[1]
    A = response(powers, U, T)  # (n_h, T·width)
    if codes:
        places = x + width * torch.arange(T, device=x.device)
        weights = None if lengths is None else _valid(lengths, T).flip(1).to(A.dtype)
        h = F.embedding_bag(places, A.mT.contiguous(), mode="sum", per_sample_weights=weights)
    else:
        h = x.flatten(1) @ A.mT
    if b is None:
        return h
    offsets = response(powers, b[:, None], T).flip(1).cumsum(1)  # what a bias adds in 1, 2, … steps
    return h + (offsets[:, -1] if lengths is None else offsets.mT[lengths - 1])


def response(powers: Powers, U: Tensor, T: int) -> Tensor:
    """[W^(T−1) U, …, W U, U], by about log2 T products, or T fast transforms.  # (n_h, T·columns)"""
    if powers.signs is not None and T > 1 and native.usable(powers.signs, U):
        return _transformed(powers.signs, U, T)
    A, length, doublings, columns = U, 1, 0, U.shape[1]
    while length < T:
        more = min(length, T - length)
        A = torch.cat([powers[doublings] @ A[:, (length - more) * columns :], A], 1)
        length += more
        doublings += 1
    return A


def _transformed(signs: Tensor, U: Tensor, T: int) -> Tensor:
    """The same from the states of a network that starts from U's columns and is fed nothing."""
    n_h, columns = U.shape
    silence = U.new_zeros(columns, T - 1, 1)
    states = native.forward_op(silence, signs, U.new_zeros(n_h, 1), None, None, None, U.mT, None, "identity", False)[0]
    return torch.cat([states.flip(0), U.mT[None]]).flatten(0, 1).mT  # (T, columns, n_h)


def all_states(
    x: Tensor, powers: Powers, U: Tensor, b: Tensor | None, h0: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """All states (B, T, n_h), zero past each sequence's end, and the state at each end, in chunks of CHUNK steps."""
    T = x.shape[1]
    e = _drive(x, U, b, lengths)
    e = F.pad(e, (0, 0, 0, -T % CHUNK)).unflatten(1, (-1, CHUNK))  # (B, chunks, CHUNK, n_h)
    apart, doublings = 1, 0
    while apart < CHUNK:  # within a chunk: what the last 2, 4, 8, … steps gave
        e = torch.cat([e[:, :, :apart], e[:, :, apart:] + e[:, :, :-apart] @ powers[doublings].mT], 2)
        apart, doublings = 2 * apart, doublings + 1
    begins, h = [], h0
    for k in range(e.shape[1]):
        begins.append(h)
        h = h @ powers[doublings].mT + e[:, k, -1]
    carried = torch.stack(begins, 1)  # (B, chunks, n_h)
    stacked = response(powers, powers[0], CHUNK).unflatten(1, (CHUNK, -1)).flip(1)  # (n_h, CHUNK, n_h): W, W², …
    states = (e + torch.einsum("bkj,ilj->bkli", carried, stacked)).flatten(1, 2)[:, :T]
    return _ended(states, lengths)


def stepped(
    x: Tensor, product: Callable[[Tensor], Tensor], U: Tensor, b: Tensor | None, h0: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The same one step after another, for a W h that is no matrix product; in place, so without a gradient."""
    states, h = _drive(x, U, b, lengths), h0
    for state in states.unbind(1):
        h = state.add_(product(h))
    return _ended(states, lengths)


def _drive(x: Tensor, U: Tensor, b: Tensor | None, lengths: Tensor | None) -> Tensor:
    """U x_t + b of all steps.  # (B, T, n_h)"""
    if lengths is not None and x.is_floating_point():
        x = torch.where(_valid(lengths, x.shape[1])[..., None], x, 0.0)  # whatever stands past an end, NaN included
    e = F.embedding(x, U.mT) if not x.is_floating_point() else x @ U.mT
    return e if b is None else e + b


def _ended(states: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """States with zeros past each end, and the state at each end."""
    if lengths is None:
        return states, states[:, -1]
    B, T = states.shape[:2]
    states = torch.where(_valid(lengths, T)[..., None], states, 0.0)
    return states, states[torch.arange(B, device=states.device), lengths - 1]


def _valid(lengths: Tensor, T: int) -> Tensor:
    return torch.arange(T, device=lengths.device) < lengths[:, None]  # (B, T)


def _right_aligned(x: Tensor, lengths: Tensor) -> Tensor:
    """Sequences pushed to the right end, zeros before them."""
    T = x.shape[1]
    source = torch.arange(T, device=x.device) - (T - lengths)[:, None]  # (B, T)
    kept = source >= 0
    index = source.clamp(min=0)
    if x.ndim == 2:
        return x.gather(1, index) * kept
    return x.gather(1, index[..., None].expand_as(x)) * kept[..., None]
