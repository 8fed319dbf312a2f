"""torch.export of every kind of network, and what the networks refuse."""

import subprocess
import sys

import pytest
import torch
from torch.utils._pytree import tree_leaves

from qornn import Mix, OrthogonalRecurrence, OrthogonalRNN, Rotations, Stack
from qornn.errors import SettingsError
from qornn.maps import MAPS
from qornn.recurrence import portable

pytestmark = pytest.mark.filterwarnings("ignore")  # torch.export's own
B, T = torch.export.Dim("B"), torch.export.Dim("T", min=2)

# Rounded states are whole numbers, so every sum is exact. Float states are sums in another order: round-off.
ROUND_OFF = 2e-5

NETWORKS = {
    **{name: lambda name=name: OrthogonalRNN(4, 32, 5, map=name, bits=4, **_lines(name)) for name in MAPS},
    "float": lambda: OrthogonalRNN(4, 16, 5, activation="tanh"),
    "modrelu, all steps": lambda: OrthogonalRNN(4, 16, 5, bits=4, activation="modrelu", readout="all"),
    "scale per row": lambda: OrthogonalRNN(4, 16, 5, bits=3, scale="row", bits_V=4),
    "identity-offset": lambda: OrthogonalRNN(4, 16, 5, map="projunn", bits=6, quantizer="identity-offset"),
    "learned signs": lambda: OrthogonalRNN(4, 16, 5, map="hadamard", learn=True, bits=4),
    "transform": lambda: OrthogonalRNN(4, 16, 5, map="hadamard", mix=True, bits=4),
    "recurrence": lambda: OrthogonalRecurrence(4, 16, bits=4),
    "stack": lambda: Stack([OrthogonalRecurrence(4, 16, bits=4), OrthogonalRecurrence(16, 8, bits=4)], n_o=5),
    "stack of both": lambda: Stack([OrthogonalRecurrence(4, 16, bits=4), Rotations(16, 8, bits=4)], n_o=5, pool="mean"),
    "float rotations": lambda: Stack.rotations(4, 5, width=8, bits=None, state_bits=None, pool="last"),
}
EXACT = {
    "rotations": lambda: Stack.rotations(4, 5, width=8, layers=1),
    "rotations, skip, all steps": lambda: Stack.rotations(4, 5, width=8, layers=1, skip=True, pool="all"),
    "wide states": lambda: Stack.rotations(4, 5, width=8, layers=1, bits=8, state_bits=16, lambda_bits=12),
    "rotations alone": lambda: Rotations(4, 8, bits=4, state_bits=8),
    "mix alone": lambda: Mix(4, 8, bits=4),
}
QUICK = ("bjorck", "hadamard", "rotations", "modrelu, all steps")


def _lines(name):
    return {"lines": 4} if name == "delay" else {}


def trained(make, x=None):
    """A network that has seen a batch, which sets the steps of its states."""
    torch.manual_seed(0)
    model = make().train()
    model(torch.randn(3, 20, 4) if x is None else x)
    return model.eval()


def exported(model, x, lengths=None, *, any_T=True):
    shapes = {"x": {0: B, 1: T} if any_T else {0: B}}
    if lengths is None:
        return torch.export.export(model, (x,), dynamic_shapes=shapes)
    return torch.export.export(model, (x,), {"lengths": lengths}, dynamic_shapes=shapes | {"lengths": {0: B}})


def assert_same(model, program, *args, exact, **kwargs):
    with torch.no_grad():
        pairs = list(zip(tree_leaves(model(*args, **kwargs)), tree_leaves(program(*args, **kwargs)), strict=True))
    assert pairs
    for a, b in pairs:
        assert torch.equal(a, b) if exact else torch.allclose(a, b, rtol=ROUND_OFF, atol=ROUND_OFF)


def every(names):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in names]


@pytest.mark.parametrize("with_lengths", [False, True])
@pytest.mark.parametrize("name", every([*NETWORKS, *EXACT]))
def test_the_program_says_what_the_network_says(name, with_lengths):
    model = trained((NETWORKS | EXACT)[name])
    x, lengths = torch.randn(3, 20, 4), torch.tensor([20, 7, 1])
    program = exported(model, x, lengths if with_lengths else None).module()
    more = torch.randn(5, 33, 4)  # other sizes than the example's
    given = {"lengths": torch.tensor([33, 1, 20, 9, 32])} if with_lengths else {}
    assert_same(model, program, more, exact=name in EXACT, **given)


@pytest.mark.parametrize("name", ["bjorck", pytest.param("rotations", marks=pytest.mark.full)])
def test_codes(name):
    codes = torch.randint(0, 4, (3, 20))
    model = trained((NETWORKS | EXACT)[name], codes)
    assert_same(model, exported(model, codes).module(), torch.randint(0, 4, (2, 9)), exact=name in EXACT)


def test_first_states():
    model, x, h0 = trained(NETWORKS["bjorck"]), torch.randn(3, 20, 4), torch.randn(3, 32)
    assert_same(model, torch.export.export(model, (x, h0)).module(), x, h0, exact=False)


def test_steps_are_unrolled_where_torch_has_no_scan(monkeypatch):
    monkeypatch.setattr(portable, "HAS_SCAN", False)
    for name in ("bjorck", "rotations"):
        model, x = trained((NETWORKS | EXACT)[name]), torch.randn(3, 8, 4)
        program = exported(model, x, any_T=False).module()
        assert_same(model, program, torch.randn(2, 8, 4), exact=name in EXACT)


def test_weights_are_constants_and_no_operator_is_ours():
    program = exported(trained(NETWORKS["bjorck"]), torch.randn(3, 20, 4))
    called = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert called
    assert not any("qornn" in name or "linalg" in name or "trunc" in name for name in called)
    assert any(tensor.shape == (32, 32) for tensor in program.constants.values())


@pytest.mark.slow
def test_a_saved_program_runs_without_this_package(tmp_path):
    model, x = trained(EXACT["rotations"]), torch.randn(3, 20, 4)
    torch.export.save(exported(model, x), tmp_path / "model.pt2")
    torch.save(x, tmp_path / "x.pt")
    script = """
import sys, torch
sys.modules["qornn"] = None
program = torch.export.load(sys.argv[1] + "/model.pt2").module()
torch.save(program(torch.load(sys.argv[1] + "/x.pt"))[0], sys.argv[1] + "/y.pt")
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, encoding="utf-8", timeout=300)
    with torch.no_grad():
        assert torch.equal(torch.load(tmp_path / "y.pt"), model(x)[0])


def test_exporting_leaves_the_network_as_it_was():
    model, x = trained(EXACT["rotations"]), torch.randn(3, 20, 4)
    before = {name: value.clone() for name, value in model.named_buffers()}
    exported(model, x)
    assert all(torch.equal(value, before[name]) for name, value in model.named_buffers())
    assert type(model.grid.step) is torch.Tensor
    assert torch.isfinite(model(x)[0]).all()


def refusal(model, x=None):
    with pytest.raises(SettingsError) as caught:
        torch.export.export(model, (torch.randn(3, 20, 4) if x is None else x,))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_training_mode_is_refused():
    assert "call model.eval() first" in refusal(trained(NETWORKS["bjorck"]).train())


def test_weights_that_changed_after_eval_are_refused():
    model = trained(NETWORKS["bjorck"])
    with torch.no_grad():
        model.recurrence.U_raw.mul_(2)
    assert "call it again" in refusal(model)
    assert "call it again" in refusal(trained(NETWORKS["bjorck"]).double(), torch.randn(3, 20, 4).double())
    model = trained(NETWORKS["free"])
    with model.layers[0].on_bits(2):
        assert "call it again" in refusal(model)


def test_weights_loaded_after_eval_are_used():
    model, other = trained(NETWORKS["bjorck"]), OrthogonalRNN(4, 32, 5, bits=4).train()
    model.load_state_dict(other.state_dict())
    x = torch.randn(3, 20, 4)
    assert_same(other.eval(), exported(model, x).module(), x, exact=False)


def test_a_stack_that_was_loaded_and_never_run_is_exported():
    trained_one, fresh = trained(EXACT["rotations"]), EXACT["rotations"]()
    with torch.no_grad():
        trained_one.b_o.copy_(torch.linspace(-0.3, 0.3, 5))  # off the grid that it is rounded to
    fresh.load_state_dict(trained_one.state_dict())
    x = torch.randn(3, 20, 4)
    assert_same(trained_one, exported(fresh.eval(), x).module(), x, exact=True)


def test_inputs_on_another_grid_are_refused():
    model = trained(EXACT["rotations"])
    assert "call it once on them" in refusal(model, torch.randint(0, 4, (3, 20)))


def test_eval_accepts_weights_that_no_network_can_use():
    model = trained(NETWORKS["bjorck"])
    with torch.no_grad():
        model.recurrence.W_raw.fill_(float("nan"))
    assert "σ_max" in refusal(model.train().eval())


def test_a_network_without_memory_can_be_put_into_evaluation_mode():
    with torch.device("meta"):
        model = OrthogonalRNN(4, 8, 3)  # a map that decides on numbers
    assert not model.eval().training


@pytest.mark.parametrize("make", [NETWORKS["bjorck"], EXACT["rotations"], *list(EXACT.values())[-2:]])
def test_script_vmap_and_func_are_refused_in_one_line(make):
    model, x = trained(make), torch.randn(3, 20, 4)

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (x,))[0].sum()

    attempts = {
        "torch.export.export": lambda: torch.jit.script(model),
        "call it on a batch": lambda: torch.func.vmap(lambda one: model(one[None])[0])(x),
        "loss.backward()": lambda: torch.func.grad(loss)(dict(model.named_parameters())),
    }
    for way_out, attempt in attempts.items():
        with pytest.raises(SettingsError) as caught:
            attempt()
        assert way_out in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # the native pass, and plain torch
@pytest.mark.parametrize("make", [NETWORKS["free"], NETWORKS["modrelu, all steps"], *EXACT.values()])
def test_second_derivatives_are_refused_in_one_line(make, dtype):
    model, x = trained(make).to(dtype), torch.randn(3, 20, 4, dtype=dtype)
    parameters = [p for p in model.parameters() if p.requires_grad]
    with pytest.raises(SettingsError, match=r"no second derivatives.*differences of two gradients$"):
        torch.autograd.grad(model(x)[0].square().sum(), parameters, create_graph=True)
