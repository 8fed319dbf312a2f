"""The Björck map (STE-Björck): W_raw is free, W is its orthogonal factor after a fixed number of iterations."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from qornn.errors import SettingsError
from qornn.maps.base import OrthogonalMap, check_square, like

STARTS = 4  # of the power iteration
LANCZOS = 12  # steps: matrix-vector products, so all of them cost less than one matrix product
DEGREES = (1, 2, 4, 6)  # of p in A p(AᵀA): 2, 3, 4 and 5 matrix products, AᵀA among them
ROUND_OFF = 8  # in eps: how far from 1 a singular value of W may end
MISSED = 0.25  # how far below its estimate the low end of the spectrum may turn out to be in later stages
CG_LIMIT = 40  # one matrix product each; the plain backward costs 60


@final
class Bjorck(OrthogonalMap):
    """A_0 = W/σ_max(W), A ← 3/2 A − 1/2 A AᵀA, 15 times (paper, The Björck algorithm, p = 1).

    Gradient: that of backpropagation through every iteration, σ_max a constant. Singular values grow at most
    1.5^15 ≈ 437 times, so W_raw must start near orthogonal, which every start of `maps.starts` is.

    Where 15 iterations converge, W is the polar factor of W_raw, whatever the steps that lead to it: it and its
    gradient in closed form then take about 11 matrix products in training instead of 90. Elsewhere, and always with
    `exact=True`, which alone can be differentiated twice, the iterations run as written.
    """

    def __init__(self, iterations: int = 15, power_iterations: int = 12, exact: bool = False) -> None:
        super().__init__()
        if iterations < 1 or power_iterations < 1:
            raise SettingsError(
                f"iterations and power_iterations must be at least 1, got {iterations} and {power_iterations}"
            )
        self.iterations = iterations
        self.power_iterations = power_iterations
        self.as_written = exact  # not self.exact: that of OrthogonalMap says that W is orthogonal

    def forward(self, W: Tensor) -> Tensor:
        check_square(W, "the Björck map")
        if self.as_written or W.dtype not in (torch.float32, torch.float64):  # half precision has no digits to spare
            return self.plain(W)
        return self._short(W)

    def plain(self, W: Tensor) -> Tensor:
        """Every iteration, for autograd to go through."""
        return iterate(W / largest_singular_value(W.detach(), self.power_iterations), self.iterations)

    @torch.compiler.disable  # it decides on numbers
    def _short(self, W: Tensor) -> Tensor:
        found = polar_by_products(W.detach(), self.iterations)
        return self.plain(W) if found is None else _Polar.apply(W, *found, self)

    def extra_repr(self) -> str:
        return f"iterations={self.iterations}" + ", exact=True" * self.as_written


def iterate(A: Tensor, iterations: int) -> Tensor:
    """The Björck iterations themselves, differentiable, on a matrix already scaled by its σ_max."""
    for _ in range(iterations):
        A = 1.5 * A - 0.5 * A @ (A.mT @ A)
    return A


def largest_singular_value(W: Tensor, power_iterations: int = 12) -> Tensor:
    """σ_max by power iteration, from four fixed random starts so that the map is a function of W alone.

    Estimates are never too large. One that is √3 too small, where directions would flip, needs every start to have less
    than 3^−12 of its length along the largest directions: no W meets that by chance.
    """
    v = _starts(W)
    for _ in range(power_iterations):
        v = W.mT @ (W @ v)
        v = v / v.norm(dim=0).clamp_min(torch.finfo(W.dtype).tiny)
    sigma = torch.maximum((W @ v).norm(dim=0).max(), W.norm(dim=0).max())
    if not bool(sigma > 0) or not bool(sigma.isfinite()):
        raise SettingsError(
            f"the Björck map needs σ_max(W) > 0 and finite, got {sigma.item():g}: "
            "start W orthogonal (init='haar'), and lower the learning rate if this came up during training"
        )
    return sigma


class _Polar(torch.autograd.Function):
    """W = Q P to Q, with the gradient dW = Q X, where X is skew and P X + X P = QᵀG − GᵀQ."""

    @staticmethod
    def forward(ctx: Any, W: Tensor, Q: Tensor, ends: tuple[float, float], map_: Bjorck) -> Tensor:
        ctx.save_for_backward(W, Q)
        ctx.ends, ctx.map_ = ends, map_
        return Q

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
        W, Q = ctx.saved_tensors
        c = _scale(W)
        QtG = Q.mT @ G
        X = solve_skew((Q.mT @ W).div_(c), QtG - QtG.mT, ctx.ends)
        if X is not None:
            return (Q @ X).div_(c), None, None, None
        with torch.enable_grad():
            W = W.detach().requires_grad_()
            return *torch.autograd.grad(ctx.map_.plain(W), W, G), None, None, None


def solve_skew(P: Tensor, M: Tensor, ends: tuple[float, float]) -> Tensor | None:
    """The skew X of P X + X P = M by conjugate gradients, or None past the limit; M skew, P positive with these ends.

    X P = −(P X)ᵀ, so that a step costs one matrix product; a last one, X + R/(low + high), costs none.
    """
    low, high = ends
    size = M.abs().max().item()  # a gradient of 1e-25 squares to 0 in float32
    if not 0 < size < math.inf:
        return M if size == 0 else None
    X, R = torch.zeros_like(M), M / size
    D = R.clone()
    r = R.norm().item()
    enough = 64 * torch.finfo(M.dtype).eps * r * (high + low) / max(high - low, 1e-3 * high)
    for _ in range(CG_LIMIT):
        if r <= enough:
            return X.add_(R, alpha=1 / (high + low)).mul_(size)
        PD = P @ D
        LD = PD - PD.mT.contiguous()  # faster than across rows
        step = r * r / torch.vdot(D.flatten(), LD.flatten()).item()
        X.add_(D, alpha=step)
        R.sub_(LD, alpha=step)
        before, r = r, R.norm().item()
        D.mul_((r / before) ** 2).add_(R)
    return None


def polar_by_products(W: Tensor, iterations: int) -> tuple[Tensor, tuple[float, float]] | None:
    """Q of W = Q P, to which this many Björck iterations converge, and the ends of P/c; None if they do not converge.

    A ← A p(AᵀA), where p is the polynomial of lowest degree that is b^−1/2 to round-off on the spectrum of AᵀA. Where
    none is, the highest, and once more: down to σ_min = σ_max/100 it keeps √b p(b) in (0, 1.3), so no direction flips.
    """
    c = _scale(W)
    if not 0 < c < math.inf:
        return None
    round_off = ROUND_OFF * torch.finfo(W.dtype).eps
    A, ends, expected, missed = W / c, (0.0, 0.0), 0.0, 1.0
    for stage in range(iterations):
        B = A.mT @ A
        low, high = spectrum(B)
        if stage == 0:
            ends, expected = (math.sqrt(max(low, 0.0)), math.sqrt(high)), low
        missed *= min(low / expected, 1.0) if low > 0 else 0.0
        if missed < MISSED or (stage == 0 and not _converges(MISSED * low / high, iterations, round_off)):
            return None
        a, error = _inverse_root(low, high, round_off)
        A = _times_polynomial(A, B, a, low, high)
        if error <= round_off:
            return (A, ends) if _is_orthogonal(A) else None
        expected = (1 - error) ** 2
    return None


def spectrum(B: Tensor) -> tuple[float, float]:
    """The ends of a symmetric B's spectrum by Lanczos' method: from the inside, so log(high/low) is raised a tenth."""
    v = _starts(B)[:, 0].contiguous()
    v = v / v.norm()
    last, beta = torch.zeros_like(v), v.new_zeros(())
    diagonal, beside = [], []
    for _ in range(min(LANCZOS, len(B))):
        w = torch.mv(B, v) - beta * last
        diagonal.append(v @ w)
        w = w - diagonal[-1] * v
        beta = w.norm()
        beside.append(beta)
        last, v = v, w / beta.clamp_min(torch.finfo(B.dtype).tiny)
    d, e = torch.stack(diagonal + beside).cpu().double().view(2, -1)
    known = int((e[:-1] > 8 * torch.finfo(B.dtype).eps * d[0]).int().cumprod(0).sum()) + 1  # the rest is round-off
    T = torch.diag(d[:known]) + torch.diag(e[: known - 1], -1)
    low, high = torch.linalg.eigvalsh(T)[[0, -1]].tolist() if bool(T.isfinite().all()) else (0.0, math.inf)
    widening = (high / low) ** 0.05 if low > 0 else 1.0
    return low / widening, high * widening


def _inverse_root(low: float, high: float, tolerance: float) -> tuple[list[float], float]:
    """p(b) ≈ b^−1/2 as its Chebyshev coefficients on [low, high], and the largest |√b p(b) − 1| there."""
    middle, half = (high + low) / 2, (high - low) / 2
    grid = [math.cos(math.pi * k / 32) for k in range(33)]
    for degree in DEGREES:
        at = [math.pi * (k + 0.5) / (degree + 1) for k in range(degree + 1)]
        f = [(middle + half * math.cos(t)) ** -0.5 for t in at]
        a = [2 / len(at) * sum(y * math.cos(j * t) for y, t in zip(f, at, strict=True)) for j in range(len(at))]
        a[0] /= 2
        error = max(abs((middle + half * x) ** 0.5 * _chebyshev(a, x) - 1) for x in grid)
        if error <= tolerance:
            break
    return a, error


def _chebyshev(a: list[float], x: float) -> float:
    return sum(c * math.cos(j * math.acos(x)) for j, c in enumerate(a))


def _times_polynomial(A: Tensor, B: Tensor, a: list[float], low: float, high: float) -> Tensor:
    """A Σ a_j T_j(x), x = B moved from [low, high] to [−1, 1], by T_{m+j} = 2 T_m T_j − T_{m−j}; B is overwritten."""
    half = max((high - low) / 2, torch.finfo(B.dtype).eps * high)
    B.diagonal().sub_((high + low) / 2)
    x = B.mul_(1 / half)
    if len(a) == 2:
        return torch.addmm(A, A, x, beta=a[0], alpha=a[1])
    m = len(a) // 2
    T = [x]  # T_1, …, T_m
    for k in range(2, m + 1):
        T.append((x @ T[-1]).mul_(2))
        T[-1].diagonal().sub_(1) if k == 2 else T[-1].sub_(T[-3])
    last = _combination(T, [a[m] if j == m else a[j] - a[2 * m - j] for j in range(1, m + 1)])
    last.addmm_(T[-1], _combination(T, a[m + 1 :]), alpha=2)
    return torch.addmm(A, A, last, beta=a[0] - a[2 * m])


def _combination(T: list[Tensor], a: list[float]) -> Tensor:
    total = T[0] * a[0]
    for T_j, a_j in zip(T[1:], a[1:], strict=True):
        total.add_(T_j, alpha=a_j)
    return total


def _is_orthogonal(Q: Tensor) -> bool:
    """‖QᵀQ v − v‖ at round-off, for fixed random v that the spectrum was not measured with and so cannot miss alike."""
    v = _starts(Q)[:, 1:]
    return bool((Q.mT @ (Q @ v) - v).norm() <= 64 * torch.finfo(Q.dtype).eps * v.norm())


def _converges(ratio: float, iterations: int, tolerance: float) -> bool:
    """Whether Björck's iterations bring σ_min/σ_max = √ratio, and its derivative, to their limits 1 and 0."""
    s, slope = math.sqrt(max(ratio, 0.0)), 1.0
    for _ in range(iterations):
        slope *= 1.5 * (1 - s * s)
        s = 1.5 * s - 0.5 * s**3
    return 1 - s <= tolerance and slope <= tolerance


def _scale(W: Tensor) -> float:
    """c = ‖W‖/√n, so that W/c has singular values around 1."""
    return W.norm().item() / math.sqrt(len(W))


def _starts(W: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return like(torch.randn(W.shape[-1], STARTS, generator=generator, dtype=torch.float64), W)
