"""One run on several processes: torch's own DDP, started by torchrun; alone, everything here does nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from qornn.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Processes:
    """This process's place among those of the run."""

    rank: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        """The process that writes and prints."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def share(self, batch: int) -> tuple[int, int]:
        """This process's rows of a global batch."""
        if batch % self.world:
            raise SettingsError(
                f"a batch of {batch} cannot be divided evenly among {self.world} processes; "
                f"set train.batch to a multiple of {self.world}"
            )
        each = batch // self.world
        return self.rank * each, (self.rank + 1) * each

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model whose gradients are averaged over the processes."""
        return nn.parallel.DistributedDataParallel(model) if self.world > 1 else model


def _number(name: str, otherwise: int) -> int:
    """A number that torchrun sets in the environment. Other programs may use the same name."""
    text = os.environ.get(name) or str(otherwise)
    if not text.isdecimal():
        raise SettingsError(f"the environment says {name}={text!r}, where torchrun sets a number; unset it")
    return int(text)


def rank() -> int:
    """This process's number, also before it has joined or after it has left."""
    return _number("RANK", 0)


def join(device: torch.device) -> Processes:
    """Join the group torchrun made for this process, if it made one."""
    world = max(_number("WORLD_SIZE", 1), 1)
    if world == 1:
        return Processes()
    if not dist.is_initialized():
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    return Processes(dist.get_rank(), world)


def leave() -> None:
    """Leave the group, so that the processes end cleanly."""
    if dist.is_initialized():
        dist.destroy_process_group()
