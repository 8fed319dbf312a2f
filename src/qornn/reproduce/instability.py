"""Why quantizing an orthogonal recurrence is hard (paper, "QORNN are hard to train"), measured again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from qornn._io.files import check_file, write_atomically
from qornn._io.folders import is_free
from qornn.errors import SettingsError
from qornn.maps.starts import haar
from qornn.quant import Uniform
from qornn.reproduce.gradients import gradient_norms

FILE = "instability.json"
BATCH = 50  # matrices whose singular values are computed together


def instability(
    out: Path,
    *,
    n: int = 200,
    matrices: int = 1000,
    ks: Sequence[int] = tuple(range(2, 9)),
    powers: Sequence[int] = (1, 10, 100, 200),
    seed: int = 0,
    n_h: int = 170,
    T: int = 784,
    progress: bool = True,
) -> dict[str, Any]:
    """Measure, write `instability.json` and four pictures into `out`, and return what the JSON holds.

    powers           ‖W^T − q_k(W)^T‖_F / ‖W^T‖_F for one Haar matrix W (n × n), by k
    singular_values  of q_k(W) over many Haar matrices, by k: σ_min/σ_max of each, the range of σ_min, σ_max and
                     ‖W_q W_qᵀ − I‖_F, and the paper's bounds on these three
    gradients        ‖∂L/∂h_t‖ against t in an untrained network of n_h units over T steps
    """
    _check(n, matrices, ks, powers)
    _check_place(out)
    generator = torch.Generator().manual_seed(seed)
    with torch.inference_mode(), _one_thread(), _bar(progress) as bar:
        # One unit of work is one batch of matrices; the powers and the gradients count as one each.
        task = bar.add_task("instability", total=2 + -(-matrices // BATCH))
        numbers: dict[str, Any] = {
            "settings": {"n": n, "matrices": matrices, "ks": list(ks), "powers": list(powers), "seed": seed}
            | {"n_h": n_h, "T": T},
            "powers": power_errors(haar(n, generator=generator, dtype=torch.float64), ks, powers),
        }
        bar.advance(task)
        sigma: dict[int, list[Tensor]] = {k: [] for k in ks}
        for start in range(0, matrices, BATCH):
            W = [haar(n, generator=generator, dtype=torch.float64) for _ in range(min(BATCH, matrices - start))]
            for k in ks:
                sigma[k].append(torch.linalg.svdvals(torch.stack([Uniform(k)(each) for each in W])))
            bar.advance(task)
        numbers["singular_values"] = {str(k): _summary(torch.cat(sigma[k]), n, k) for k in ks}
        numbers["gradients"] = gradient_norms(n_h=n_h, T=T, seed=seed)
        bar.advance(task)
    numbers = _rounded(numbers)
    _save(out, numbers)
    return numbers


def power_errors(W: Tensor, ks: Sequence[int], powers: Sequence[int]) -> dict[str, dict[str, float]]:
    """‖W^T − q_k(W)^T‖_F / ‖W^T‖_F by bits, then by T (paper, figure on the instability, left)."""
    exact = {T: torch.linalg.matrix_power(W, T) for T in powers}
    errors: dict[str, dict[str, float]] = {}
    for k in ks:
        W_q = Uniform(k)(W)
        errors[str(k)] = {
            str(T): float((W_T - torch.linalg.matrix_power(W_q, T)).norm() / W_T.norm()) for T, W_T in exact.items()
        }
        if not all(map(math.isfinite, errors[str(k)].values())):
            raise SettingsError(f"W_q^{max(powers)} overflows at k = {k}; choose smaller powers")
    return errors


def bounds(n: int, k: int) -> dict[str, float]:
    """The paper's bounds for q_k of an n × n orthogonal matrix; true, and empty unless n is far below 2^(k−1).

    ‖W_q W_qᵀ − I‖_F ≤ 2r + r²,   1 − r ≤ σ_min,   σ_max ≤ 1 + r,   r = n / 2^(k−1)
    """
    r = n / 2 ** (k - 1)
    return {"discrepancy": 2 * r + r * r, "sigma_min": 1 - r, "sigma_max": 1 + r}


def _summary(sigma: Tensor, n: int, k: int) -> dict[str, Any]:
    """What the pictures show of the singular values.  # sigma (matrices, n), descending"""
    measured = {
        "sigma_min": sigma[:, -1],
        "sigma_max": sigma[:, 0],
        "discrepancy": (sigma.square() - 1).norm(dim=1),  # ‖W_q W_qᵀ − I‖_F, whose eigenvalues are σ² − 1
    }
    return {
        "ratio": (sigma[:, -1] / sigma[:, 0]).tolist(),
        "measured": {
            name: {"min": float(v.min()), "median": float(v.median()), "max": float(v.max())}
            for name, v in measured.items()
        },
        "bound": bounds(n, k),
    }


def _check(n: int, matrices: int, ks: Sequence[int], powers: Sequence[int]) -> None:
    if n < 2 or matrices < 1 or not ks or not powers or min(powers) < 1:
        raise SettingsError(
            f"n must be at least 2, matrices at least 1, ks not empty and powers positive; "
            f"got n={n}, matrices={matrices}, ks={list(ks)}, powers={list(powers)}"
        )


def _rounded(part: Any) -> Any:
    """Six digits are plenty for pictures, and halve the file."""
    if isinstance(part, dict):
        return {key: _rounded(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_rounded(value) for value in part]
    return float(f"{part:.6g}") if isinstance(part, float) else part


@contextmanager
def _one_thread() -> Iterator[None]:
    """On matrices this small threads gain nothing, cost tenfold on a busy machine, and may change the last digit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _bar(shown: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not shown,
    )


def _check_place(out: Path) -> None:
    """Refuse, before the work, a place that cannot be written or holds other figures under our names."""
    is_free(out)
    path = out / FILE
    check_file(path)
    try:
        ours = not path.exists() or {"settings", "powers", "singular_values"} <= json.loads(path.read_bytes()).keys()
    except (OSError, ValueError, AttributeError, RecursionError):
        ours = False
    if not ours:
        raise SettingsError(f"{path} holds other data than these figures; choose another folder, or remove it")


def _save(out: Path, numbers: dict[str, Any]) -> None:
    """The JSON and the pictures, each whole or not at all."""
    from qornn.reproduce.instability_plots import draw  # matplotlib takes a second to import

    files = {FILE: (json.dumps(numbers, allow_nan=False) + "\n").encode()} | draw(numbers)
    for name, content in files.items():
        write_atomically(out / name, content)
