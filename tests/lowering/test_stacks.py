"""A stack's integers are the network's own forward pass: lowering decides nothing."""

import numpy as np
import pytest
import torch

import qornn
from qornn.errors import SettingsError
from qornn.integer.inputs import make_samples
from qornn.model import SequenceLayer

STACKS = {
    "mean": {},
    "skip": {"skip": True},
    "last": {"pool": "last"},
    "all": {"pool": "all"},
    "2 bits": {"bits": 2},
    "8 bits, 16-bit states, 12-bit λ and inputs": {
        "bits": 8,
        "state_bits": 16,
        "lambda_bits": 12,
        "input_bits": 12,
        "skip": True,
    },
    "4-bit states": {"state_bits": 4, "layers": 3},
    "12-bit states, integrators": {"state_bits": 12, "integrators": 2, "lambda_bits": 10},
    "one layer": {"layers": 1, "width": 3, "pairs": 9},
}


def trained(codes=False, steps=40, **options):
    generator = torch.Generator().manual_seed(3)
    settings = {"width": 7, "pairs": 6, "generator": generator} | options
    model = qornn.Stack.rotations(5, 3, **settings)
    x = torch.randint(5, (24, 30), generator=generator) if codes else torch.randn(24, 30, 5, generator=generator)
    y = torch.randint(3, (24,), generator=generator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for _ in range(steps):
        out, _ = model(x)
        loss = torch.nn.functional.cross_entropy(out if out.ndim == 2 else out.mean(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), x


def integers_of(model, x, lengths=None):
    """Outputs of every layer as whole numbers, and y."""
    with torch.no_grad():
        outputs = model.outputs(x, lengths)
        y, _ = model(x, lengths=lengths)
    each = [(o / layer.gives().step).numpy() for o, layer in zip(outputs, model.layers, strict=True)]
    return each, y.numpy()


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("name", STACKS)
def test_integers_equal_the_forward_pass(name, codes):
    model, x = trained(codes, **STACKS[name])
    program = qornn.lower(model, x, quiet=True)
    raw = x.numpy() if codes else program.input.clip(program.input.from_network(x.numpy()))
    lengths = np.random.default_rng(0).integers(1, 31, 24)
    each, want = integers_of(model, x, torch.from_numpy(lengths))
    states, y = qornn.simulate(program, raw, lengths)
    last = [o for o, layer in zip(each, model.layers, strict=True) if layer.n_state][-1]
    assert (states == last).all()
    assert np.abs(states).max() > program.layers[-2].top // 3  # this is no silent network
    counts = lengths if program.readout.steps == "mean" else None
    found = program.readout.values(y, counts)
    if program.readout.every:  # past the end there is nothing to compare
        running = np.arange(30) < lengths[:, None]
        found, want = found[running], want[running]
    assert (found == want).all()


def test_bits_are_what_they_were_in_training():
    model, x = trained()
    program = qornn.lower(model, x, quiet=True)
    assert (program.bits, program.activation_bits) == (4, 8)
    qornn.lower(model, x, activation_bits=8, quiet=True)
    with pytest.raises(SettingsError, match="rounded to 8 bits in training, and activation_bits=12 was asked for"):
        qornn.lower(model, x, activation_bits=12, quiet=True)
    with pytest.raises(SettingsError, match="trained on inputs of 8 bits; lower it without input_bits"):
        qornn.lower(model, x, input_bits=12, quiet=True)
    other = make_samples(-128, 127, 0.3, channels=5, bits=8)
    with pytest.raises(SettingsError, match=r"trained on inputs of 8 bits in steps of .*; the input part has 8 bits"):
        qornn.lower(model, x, input=other, quiet=True)


def test_what_has_no_integers_is_refused():
    x = torch.randn(2, 9, 5)
    fresh = qornn.Stack.rotations(5, 3)
    with pytest.raises(SettingsError, match="has not seen a training batch"):
        qornn.lower(fresh.eval(), x, quiet=True)
    full, _ = trained(bits=None, state_bits=None)
    with pytest.raises(SettingsError, match=r"at full precision ha(s|ve) no integer form; train"):
        qornn.lower(full, x, quiet=True)
    rounded, _ = trained(bits=None)
    with pytest.raises(SettingsError, match=r"at full precision ha(s|ve) no integer form; train"):
        qornn.lower(rounded, x, quiet=True)


def test_a_stack_after_a_layer_of_another_kind_says_what_does_not_fit():
    generator = torch.Generator().manual_seed(0)
    layers = [
        qornn.OrthogonalRecurrence(5, 6, bits=4, generator=generator),
        qornn.Mix(6, 4, bits=4, generator=generator),
    ]
    model = qornn.Stack(layers, n_o=2)
    x = torch.randn(8, 9, 5, generator=generator)
    model(x)
    with pytest.raises(qornn.QornnError, match="a Mix reads numbers that were not rounded in training"):
        qornn.lower(model.eval(), x, quiet=True)


def test_a_recurrence_may_follow_a_mix():
    generator = torch.Generator().manual_seed(0)
    layers = [
        qornn.Mix(5, 6, bits=4, generator=generator),
        qornn.OrthogonalRecurrence(6, 8, bits=4, generator=generator),
    ]
    model = qornn.Stack(layers, n_o=2, generator=generator)
    x = torch.randn(16, 20, 5, generator=generator)
    for _ in range(3):
        model(x)
    program = qornn.lower(model.eval(), x, quiet=True)
    raw = program.input.clip(program.input.from_network(x.numpy()))
    _, y = qornn.simulate(program, raw)
    assert np.allclose(y, model(x)[0].detach().numpy(), atol=0.02)


@pytest.mark.parametrize("choice", [{"scheme": "paper"}, {"requant": "table"}, {"alpha_h": 99.9}, {"clip": 0.7}])
def test_a_choice_that_training_has_made_is_refused(choice):
    model, x = trained(steps=2)
    (name,) = choice
    with pytest.raises(SettingsError, match=f"{name}=.* nothing is left to choose; leave {name} out"):
        qornn.lower(model, x, **choice, quiet=True)


class Foreign(SequenceLayer):
    """A layer of one's own, in floats."""

    def __init__(self):
        super().__init__()
        self.n_i = self.n_h = 4
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, h0=None, *, lengths=None):
        return self.linear(x), x.new_zeros(len(x), 4)


def test_a_layer_without_integers_is_named_with_those_that_have_some():
    model = qornn.Stack([qornn.Mix(5, 4, bits=4), Foreign()], n_o=2)
    x = torch.randn(4, 9, 5)
    model(x)
    said = "layer 1: Foreign has no integer form; OrthogonalRecurrence, Rotations and Mix have one"
    with pytest.raises(SettingsError, match=said):
        qornn.lower(model.eval(), x, quiet=True)


def test_a_mix_that_gives_nothing_is_lowered_as_it_is():
    model, x = trained()
    with torch.no_grad():
        model.layers[2].c.fill_(-1e3)
    program = qornn.lower(model, x, quiet=True)
    raw = program.input.clip(program.input.from_network(x.numpy()))
    assert (program.readout.values(program.run(raw), np.full(24, 30)) == model(x)[0].detach().numpy()).all()


def test_codes_for_a_network_trained_on_samples_are_refused():
    """Its biases lie on the grid of the samples: on codes the integers were those of another network."""
    model, _ = trained()
    with pytest.raises(SettingsError, match=r"trained on samples .* and these are codes"):
        qornn.lower(model, torch.zeros(4, 9, dtype=torch.long), quiet=True)
