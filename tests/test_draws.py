"""Every random number of a training comes from generators of its own, so the same seed gives the same bits."""

import ast
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import qornn
from qornn.draws import drawing, generator
from qornn.recipe import TrainSettings, from_tables, resolve
from qornn.structure import MAPS as STRUCTURED
from qornn.train import Trainer, resume
from qornn.train import checkpoint as checkpoints
from qornn.train.build import MODELS, build_model, build_task
from qornn.train.run import start

SOURCE = Path(qornn.__file__).parent
DENSE = ("bjorck", "projunn", "penalty", "free")
DRAWS = {"bernoulli", "dropout", "multinomial", "normal", "poisson", "rand", "randint", "randn", "randperm"}
DRAWS |= {"rand_like", "randint_like", "randn_like", "alpha_dropout", "feature_dropout", "gumbel_softmax", "rrelu"}
IN_PLACE = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_"}
IN_PLACE |= {"kaiming_normal_", "kaiming_uniform_", "orthogonal_", "sparse_", "trunc_normal_", "xavier_normal_"}
IN_PLACE |= {"xavier_uniform_"}
UNSEEDED = {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "manual_seed", "seed", "set_rng_state"}
OF_NUMPY = {"Generator", "RandomState", "SeedSequence", "default_rng"}  # the only names of numpy.random to call


def tiny(map_, *settings, noise=0.3):
    """A recipe of the digits whose network trains in a blink."""
    model = {"map": map_, "n_h": 16, "bits": 4, "noise": noise, "lines": 4, "block": 4, "activation": "identity"}
    model |= {} if map_ in STRUCTURED else {"activation": "relu"}
    train = {"steps": 5, "batch": 8, "checkpoint_every": 2, "log_every": 1}
    return from_tables({"task": {"name": "digits"}, "model": model, "train": train}).override(settings)


def global_states():
    """Where the generators that everybody shares stand."""
    kind, keys, *place = np.random.get_state()  # noqa: NPY002
    return hash((torch.random.get_rng_state().numpy().tobytes(), kind, keys.tobytes(), *place, random.getstate()))


def final_bytes(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("map_", [*DENSE, *STRUCTURED])
def test_noise_is_a_function_of_the_seed_and_resuming_repeats_it(map_, tmp_path):
    before = global_states()
    start(tiny(map_), tmp_path / "once", quiet=True)
    assert global_states() == before
    torch.randn(3)  # others draw what they like
    start(tiny(map_), tmp_path / "cut", quiet=True)
    assert final_bytes(tmp_path / "cut") == final_bytes(tmp_path / "once")
    (tmp_path / "cut" / "model.safetensors").unlink()
    checkpoints.files(tmp_path / "cut" / "checkpoint")[-1].unlink()  # as if killed after step 4
    torch.randn(3)
    resume(tmp_path / "cut", quiet=True)
    assert final_bytes(tmp_path / "cut") == final_bytes(tmp_path / "once")


def test_another_seed_draws_other_noise():
    recipe, states = tiny("hadamard"), []
    task = build_task(recipe)
    for seed, noise in ((0, 0.3), (1, 0.3), (0, 0.0)):
        model = build_model(tiny("hadamard", noise=noise), task)
        trainer = Trainer(model, task, TrainSettings(batch=8, seed=seed), quiet=True)
        trainer._one_step(model, next(task.batches("train", 8)), False)
        states.append(model.V.grad)
    assert not any(torch.equal(states[a], states[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_every_step_and_every_process_draws_other_numbers():
    drawn = []
    for key in ((0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)):
        with drawing(*key):
            drawn += [torch.randn(4, generator=generator(torch.device("cpu"))) for _ in range(2)]
    assert len({tuple(numbers.tolist()) for numbers in drawn}) == 8


def test_outside_of_a_training_torch_s_own_generator_serves():
    assert generator(torch.device("cpu")) is None
    with drawing(1):
        inner = generator(torch.device("cpu"))
        assert inner is generator(torch.device("cpu"))  # one stream, not the same numbers for every layer
    assert generator(torch.device("cpu")) is None


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_building_and_training_any_network_leaves_shared_generators_alone(kind):
    before = global_states()
    size = "model.width=8" if kind == "stack" else "model.n_h=8"
    recipe = resolve("digits", model=kind, settings=[size, "train.steps=1", "train.batch=8"])
    task = build_task(recipe)
    model = build_model(recipe, task)
    Trainer(model, task, recipe.train, quiet=True).probe(1)
    assert global_states() == before


@pytest.mark.parametrize("map_", ["bjorck", "hadamard"])
def test_estimators_leave_shared_generators_alone(map_):
    x = np.random.default_rng(0).normal(size=(40, 6, 2))
    before = global_states()
    fitted = [
        qornn.QORNNClassifier(n_hidden=8, map=map_, max_epochs=2, random_state=3)
        .fit(x, x[:, 0, 0] > 0)
        .predict_proba(x)
        for _ in range(2)
    ]
    assert global_states() == before
    assert (fitted[0] == fitted[1]).all()


def drawn_globally(path):
    """Calls in the file that would draw from a generator that everybody shares."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            if "random" in names:
                yield node.lineno, "import random"
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, ast.unparse(node.func.value)
        given = {keyword.arg for keyword in node.keywords}
        from_torch = owner in ("torch", "F", "nn.functional", "torch.nn.functional") and name in DRAWS
        if (from_torch or name in IN_PLACE) and "generator" not in given:
            yield node.lineno, ast.unparse(node)
        if owner in ("torch", "torch.random", "torch.cuda", "nn", "torch.nn") and name in UNSEEDED:
            yield node.lineno, ast.unparse(node)
        if owner in ("np.random", "numpy.random") and name not in OF_NUMPY:
            yield node.lineno, ast.unparse(node)
        if owner in ("np.random", "numpy.random") and name in ("default_rng", "RandomState") and not node.args:
            yield node.lineno, ast.unparse(node)


def test_the_search_sees_what_it_is_for(tmp_path):
    lines = ["import random", "torch.randn_like(h)", "nn.init.normal_(w)", "F.dropout(h)", "nn.Dropout(0.1)"]
    lines += ["torch.manual_seed(0)", "np.random.seed(0)", "np.random.default_rng()", "h.bernoulli_(0.5)"]
    (tmp_path / "bad.py").write_text("\n".join(lines))
    assert [number for number, _ in drawn_globally(tmp_path / "bad.py")] == list(range(1, len(lines) + 1))
    (tmp_path / "good.py").write_text("torch.randn(3, generator=g)\nnp.random.default_rng(seed)\nrng.normal(3)\n")
    assert not list(drawn_globally(tmp_path / "good.py"))


def test_no_source_draws_from_a_shared_generator():
    files = {str(path.relative_to(SOURCE)): list(drawn_globally(path)) for path in SOURCE.rglob("*.py")}
    assert not {name: calls for name, calls in files.items() if calls}
