"""Whole runs of the command line: their words, their weights, killed at a step, or spread over two processes."""

import os
import signal
import socket

from forking import Forked
from qornn.train import loop


def settings_words(settings):
    return [word for s in settings for word in ("--set", s)]


def final_bytes(folder):
    return (folder / "model.safetensors").read_bytes()


def kill_at(step, stage):
    """Kill this process when its training is there."""
    original = getattr(loop.Trainer, stage)

    def deadly(self, *rest, **options):
        if self.step >= step and stage == "save":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(self, *rest, **options)
        if self.step >= step:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(loop.Trainer, stage, deadly)


def in_two_processes(*words):
    """What each of the two says and how they end, started with the variables that torchrun sets."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(found.getsockname()[1])}
    started = [Forked(*words, env={**group, "RANK": rank, "LOCAL_RANK": rank}) for rank in "01"]
    return [(*process.communicate(), process.returncode) for process in started]
