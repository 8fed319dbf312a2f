import pytest
import torch

from qornn.errors import SettingsError
from qornn.train.distributed import Processes, join, rank


@pytest.mark.parametrize("value", ["two", "-1", "1.5"])
def test_variables_that_are_not_torchrun_s_are_refused_in_words(value, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", value)
    monkeypatch.setenv("RANK", value)
    with pytest.raises(SettingsError, match=f"WORLD_SIZE='{value}', where torchrun sets a number; unset it"):
        join(torch.device("cpu"))
    with pytest.raises(SettingsError, match=f"RANK='{value}'"):
        rank()


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_one_process_is_no_group(value, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", value)
    assert join(torch.device("cpu")) == Processes()
