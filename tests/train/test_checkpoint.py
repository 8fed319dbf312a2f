import json
import struct
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qornn.errors import CheckpointError
from qornn.model import OrthogonalRNN
from qornn.train import checkpoint as checkpoints
from qornn.train.checkpoint import Checkpoint


def sample(step=3):
    generator = torch.Generator().manual_seed(0)
    return Checkpoint(
        step,
        {"W": torch.randn(4, 4, generator=generator), "empty": torch.zeros(0)},
        {"W/exp_avg": torch.randn(4, 4, generator=generator), "W/step": torch.tensor(3.0)},
        {"retraction": generator.get_state()},
        {"log_length": 7, "seconds": 1.5, "best": float("inf"), "threads": 2},
    )


def equal(a, b):
    same = all(
        x.keys() == y.keys() and all(torch.equal(x[k], y[k]) for k in x)
        for x, y in ((a.model, b.model), (a.optimizer, b.optimizer), (a.rng, b.rng))
    )
    return same and (a.step, a.extra) == (b.step, b.extra)


def test_round_trip(tmp_path):
    path = checkpoints.save(tmp_path, sample())
    assert equal(checkpoints.load(path), sample())


def test_equal_contents_give_equal_bytes(tmp_path):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        checkpoints.save_tensors(path, {"W": torch.ones(3), "U": torch.zeros(2)}, {"steps": 4, "version": "1"})
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_only_the_newest_two_are_kept(tmp_path):
    for step in (1, 20, 300):
        checkpoints.save(tmp_path, sample(step))
    assert [p.name for p in checkpoints.files(tmp_path)] == ["step-00000020.safetensors", "step-00000300.safetensors"]


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path):
    for step in (99_999_998, 99_999_999, 100_000_000, 2_000_000_000):
        checkpoints.save(tmp_path, sample(step))
        assert checkpoints.load(checkpoints.files(tmp_path)[-1]).step == step
    assert [checkpoints.number(p) for p in checkpoints.files(tmp_path)] == [100_000_000, 2_000_000_000]
    (tmp_path / "step-99999999999-copy.safetensors").touch()  # somebody's own
    newest = checkpoints.files(tmp_path)[-1]
    newest.write_bytes(newest.read_bytes()[:-5])
    with pytest.raises(CheckpointError, match=r"step-2000000000\S* is damaged.*continue from step-100000000"):
        checkpoints.load(newest)


def test_nothing_but_the_files_is_left_behind(tmp_path):
    checkpoints.save(tmp_path, sample())
    assert len(list(tmp_path.iterdir())) == 1


@given(st.data())
def test_a_changed_byte_or_a_cut_is_an_error_or_changes_nothing(tmp_path, data):
    path = checkpoints.save(tmp_path, sample())
    good = path.read_bytes()
    bad = bytearray(good)
    position = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        bad[position] ^= data.draw(st.integers(1, 255))
    else:
        del bad[position:]
    path.write_bytes(bytes(bad))
    try:
        loaded = checkpoints.load(path)
    except CheckpointError as error:
        loaded, said = None, str(error)
    assert equal(loaded, sample()) if loaded else str(path) in said


def test_damage_names_the_file_and_the_way_out(tmp_path):
    checkpoints.save(tmp_path, sample(1))
    path = checkpoints.save(tmp_path, sample(2))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CheckpointError, match=r"step-00000002\.safetensors is damaged.*continue from step-00000001"):
        checkpoints.load(path)


def test_a_flipped_weight_is_noticed(tmp_path):
    path = checkpoints.save(tmp_path, sample())
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match="do not match its digest"):
        checkpoints.load(path)


def test_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    header = json.dumps({"__metadata__": {"qornn": json.dumps({"schema": 99})}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(CheckpointError, match=r"schema 99.*upgrade"):
        checkpoints.load_tensors(path)


def test_a_pickle_is_refused_without_being_opened(tmp_path):
    path = tmp_path / "step-00000001.safetensors"

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "executed"), "w"))

    torch.save({"W": Evil()}, path)
    with pytest.raises(CheckpointError):
        checkpoints.load(path)
    assert not (tmp_path / "executed").exists()


def test_a_checkpoint_of_another_model_is_refused_and_changes_nothing(tmp_path):
    ours, other = OrthogonalRNN(1, 4, 2), OrthogonalRNN(1, 5, 2)
    before = {k: v.clone() for k, v in ours.state_dict().items()}
    with pytest.raises(CheckpointError, match=r"another model: .* is \(.*5.*\) there and \(.*4.*\) here"):
        checkpoints.load_into(ours, other.state_dict(), tmp_path / "f")
    with pytest.raises(CheckpointError, match="absent here"):
        checkpoints.load_into(ours, ours.state_dict() | {"extra": torch.ones(1)}, tmp_path / "f")
    assert all(torch.equal(before[k], v) for k, v in ours.state_dict().items())


FULL_DISK = """
import resource, sys, torch
from pathlib import Path
from qornn.errors import WriteError
from qornn.train import checkpoint as checkpoints
folder = Path(sys.argv[1])
state = lambda step: checkpoints.Checkpoint(step, {"W": torch.full((100, 100), float(step))})
checkpoints.save(folder, state(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # the next write fails in its middle
try:
    checkpoints.save(folder, state(2))
except WriteError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_full_disk_loses_nothing(tmp_path):
    """With a true failing write, in a process of its own: files may not grow past 20 kB there."""
    done = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, check=True)
    assert "could not write" in done.stdout
    assert "unharmed" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001.safetensors"]
    assert checkpoints.load(checkpoints.files(tmp_path)[0]).model["W"][0, 0] == 1
