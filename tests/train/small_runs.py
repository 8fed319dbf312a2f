"""A task and a model that train in a second."""

import torch

from qornn.model import OrthogonalRNN
from qornn.tasks import make_task


def small_task():
    return make_task("copy", T0=4, train_size=64, validation_size=16, test_size=16)


def small_model(**options):
    options = {"readout": "all", "activation": "modrelu", "generator": torch.Generator().manual_seed(0)} | options
    return OrthogonalRNN(10, 16, 9, **options)
