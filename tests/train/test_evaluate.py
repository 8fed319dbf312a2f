import math
import subprocess
import sys

import pytest
import torch

from qornn.errors import SettingsError
from qornn.model import OrthogonalRNN, Stack
from qornn.quant import Uniform
from qornn.structure import MAPS as STRUCTURED
from qornn.tasks import make_task
from qornn.tasks.base import Batch
from qornn.tasks.copy import Copy
from qornn.train.evaluate import diagnostics, evaluate, quantized


def task():
    return make_task("copy", T0=3, train_size=32, validation_size=20, test_size=21)


def model(**options):
    options = {"readout": "all", "generator": torch.Generator().manual_seed(0)} | options
    return OrthogonalRNN(10, 12, 9, **options)


def test_the_metric_does_not_depend_on_the_batch():
    network = model(bits=4)
    found = [evaluate(network, task(), "test", batch) for batch in (1, 4, 21, 100)]
    assert found == pytest.approx([found[0]] * 4, rel=1e-5)


def test_an_empty_split_gives_nan():
    class NothingHeldOut(Copy):
        def size(self, split):
            return 0 if split == "validation" else super().size(split)

    assert math.isnan(evaluate(model(), NothingHeldOut(T0=3), "validation", 8))


def test_diagnostics_of_a_known_matrix():
    network = model(map="free", activation="identity")
    network.recurrence.W_raw.data = torch.diag(torch.tensor([2.0] + [1.0] * 11))
    found = diagnostics(network, next(task().batches("test", 4)))
    assert found["orthogonality"] == pytest.approx(3.0)
    assert (found["sigma_min"], found["sigma_max"]) == pytest.approx((1.0, 2.0))
    assert found["saturation"] == 0.0
    batch = next(task().batches("test", 4))
    states, _ = network.recurrence(batch.x)
    assert found["max_h"] == pytest.approx(states.abs().max().item())


def test_saturation_counts_the_weights_the_grid_cuts_off():
    network = model(map="free", bits=2)
    W = torch.zeros(12, 12)
    W[0, 0], W[1, 1], W[2, 2] = 1.0, -1.0, 0.9  # levels −1, −1/2, 0, 1/2: both positive ones are out of reach
    network.recurrence.W_raw.data = W
    assert diagnostics(network, next(task().batches("test", 2)))["saturation"] == pytest.approx(2 / 144)


def test_quantizers_are_put_back():
    network = model(bits=8, quantizer="identity-offset", scale="row")
    trained = network.recurrence.W_q()
    with quantized(network, None):
        assert torch.equal(network.recurrence.W_q(), network.recurrence.W())
    with quantized(network, 2):
        assert network.recurrence.q_W.scale == "row"
        assert len((network.recurrence.W_q()[0] - torch.eye(12)[0]).unique()) <= 4
    assert torch.equal(network.recurrence.W_q(), trained)
    rough = model(bits_U=8, quantizer=Uniform(4, scale="row"))
    with quantized(rough, 3):
        assert (rough.recurrence.q_W.scale, rough.recurrence.q_U.scale) == ("row", "row")
        assert (rough.recurrence.q_W.bits, rough.recurrence.q_U.bits) == (3, 3)
    assert (rough.recurrence.q_W.bits, rough.recurrence.q_U.bits) == (4, 8)
    full = model()
    with quantized(full, 3):
        assert full.recurrence.bits == 3
    assert full.recurrence.bits is None


@pytest.mark.parametrize("map_", STRUCTURED)
def test_a_structured_matrix_has_the_singular_values_of_its_signs(map_):
    options = {"block": 4} if map_ == "hadamard-block" else {"lines": 4} if map_ == "delay" else {}
    network = OrthogonalRNN(10, 16, 9, readout="all", map=map_, **options)
    layer, batch = network.recurrence, next(task().batches("test", 4))
    for spoilt in (False, True):
        if spoilt:
            layer.W_raw.data[0] *= 1.5  # as a damaged file might hold
        found, W = diagnostics(network, batch), layer.W().detach().double()
        singular = torch.linalg.svdvals(W).tolist()
        assert (found["sigma_min"], found["sigma_max"]) == pytest.approx((singular[-1], singular[0]), abs=1e-6)
        assert found["orthogonality"] == pytest.approx(float((W @ W.mT - torch.eye(16)).norm()), abs=1e-5)


NO_MATRIX = """
import resource, torch
from qornn.errors import SettingsError
from qornn.model import OrthogonalRNN, Stack
from qornn.tasks.base import Batch
from qornn.train.evaluate import diagnostics
model = OrthogonalRNN(2, 131072, 2, map="hadamard", bits=4)
print(diagnostics(model, Batch(torch.rand(2, 3, 2), torch.zeros(2)))["sigma_max"])
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2**21, "more than 2 GiB"
"""


@pytest.mark.slow
def test_what_stores_no_matrix_builds_none():
    """A matrix of 131072² numbers would take 137 GB."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))\n"
    done = subprocess.run([sys.executable, "-c", limit + NO_MATRIX], capture_output=True, text=True, check=False)
    assert done.stdout == "1.0\n", done.stderr


def trained_stack(**options):
    options = {"width": 6, "pairs": 5, "layers": 2, "generator": torch.Generator().manual_seed(0)} | options
    network, x = Stack.rotations(3, 2, **options), torch.randn(16, 30, 3, generator=torch.Generator().manual_seed(1))
    network(x)
    network(x)
    return network.eval(), x


def in_floats(network, **options):
    """The same weights in a stack that never rounds: what normalises its states is in the columns that read them."""
    other, _ = trained_stack(bits=None, state_bits=None, **options)
    other.load_state_dict({name: tensor for name, tensor in network.state_dict().items() if name in other.state_dict()})
    with torch.no_grad():
        for before, after in zip(network.layers, other.layers[1:], strict=False):
            if before.n_state:
                after.C_raw.mul_(2.0 ** (3 - before.state_bits) / before.steps.step.repeat(2))
    return other.eval()


@pytest.mark.parametrize("skip", [False, True])
def test_with_quantizers_off_a_stack_rounds_nothing_and_is_left_as_it_was(skip):
    network, x = trained_stack(bits=2, state_bits=4, skip=skip)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with torch.no_grad():
        rounded = network(x)[0]
        with quantized(network, None):
            off = network(x)[0]
        assert torch.equal(network(x)[0], rounded)
        # float32 in another order
        assert torch.allclose(off, in_floats(network, skip=skip)(x)[0], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(off, rounded, rtol=1e-2)
    with quantized(network, None):
        network(x)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert network.layers[1].made_of()[1]["source_step"] == float(before["layers.0.steps.step"])


def test_quantizers_off_means_those_of_every_part_of_a_stack():
    network, x = trained_stack(bits=2, state_bits=4)
    with torch.no_grad(), quantized(network, None):
        assert all(layer.bits is None for layer in network.layers)
        assert network.layers[1].lambda_bits is None
        assert torch.equal(network.V_q(), network.V)
        found = network.outputs(x)
        assert torch.equal(network.b_q(), network.b_o)
        assert all(len(y.unique()) > 1000 for y in found[1::2])  # 4-bit states have 15 values each
    assert {layer.bits for layer in network.layers} == {2}
    assert network.q_V.bits == 2


def test_a_stack_is_quantized_further_but_not_from_full_precision():
    network, _ = trained_stack(bits=8)
    with quantized(network, 3):
        assert {layer.bits for layer in network.layers} == {3}
        assert network.q_V.bits == 3
        assert len((network.layers[1].U_q() / network.layers[1].unit_U()).unique()) <= 8
    assert {layer.bits for layer in network.layers} == {8}
    full, _ = trained_stack(bits=None, state_bits=None)
    with pytest.raises(SettingsError, match="at full precision cannot be quantized afterwards; train with bits"):
        quantized(full, 4).__enter__()


def test_diagnostics_of_a_stack_say_how_long_it_remembers_and_what_saturates():
    network, x = trained_stack(state_bits=8)
    layer = network.layers[3]
    before = diagnostics(network, Batch(x, torch.zeros(16)))
    assert before.keys() == {"lambda_max", "saturated_states"}
    radii = [float(torch.hypot(*network.layers[i].eigenvalues()).max().detach()) for i in (1, 3)]
    assert before["lambda_max"] == pytest.approx(max(radii))
    layer.steps.step /= 64  # its range is now far too small
    lengths = torch.full((16,), 10)
    found = diagnostics(network, Batch(x, torch.zeros(16), lengths))
    reach = 2.0**-5 * 127  # normalised states are whole numbers of 2^(3 - 8)
    with torch.no_grad():
        states = network.outputs(x, lengths)[3]
    share = float((states.abs() == reach).sum()) / (16 * 10 * layer.n_h)  # of true steps alone
    assert found["saturated_states"] == pytest.approx(share)
    assert share > 0.2 > before["saturated_states"]
