"""`bits` and `activation_bits` mean the same in every command."""

import json

import pytest

from qornn.recipe import ModelSettings, resolve
from qornn.reproduce.formulas import size_of

NETWORKS = {
    "dense": (["--map", "bjorck", "--bits", 4], 4),
    "structured": (["--map", "hadamard", "--bits", 2, "--set", "model.bits_V=5"], 5),
}


@pytest.mark.parametrize(
    ("settings", "bits"),
    [
        ({"map": "bjorck", "bits": 4, "bits_V": 8}, 4),  # of W and U
        ({"map": "bjorck", "bits": 4, "bits_U": 6}, 6),
        ({"map": "bjorck", "bits": 4, "bits_W": 3, "bits_U": 2}, 3),
        ({"map": "hadamard", "bits": 4}, 4),  # of U and V
        ({"map": "cycle", "bits": 2, "bits_V": 4}, 4),
        ({"map": "bjorck", "bits": None}, None),
        ({"kind": "lstm", "bits": 8}, 8),
    ],
)
def test_bits_are_those_of_the_widest_stored_matrix(settings, bits):
    assert ModelSettings(**settings).weight_bits == bits


@pytest.mark.parametrize(("words", "bits"), NETWORKS.values(), ids=list(NETWORKS))
def test_eval_lower_and_size_say_the_same_bits(words, bits, qornn_command, tiny, tmp_path):
    def told(*command):
        return json.loads(qornn_command(*command, "--json").stdout)

    settings = [word for text in (*tiny, "model.n_h=16") for word in ("--set", text)]
    run, file = tmp_path / "run", tmp_path / "net.qornn"
    figures = [told("train", "copy", *words, *settings, "--steps", 4, "--out", run)]
    figures += [told("eval", run), told("lower", run, "-o", file, "--activation-bits", 10)]
    states = [told("eval", file), told("size", file), figures[-1]]
    figures += [*states, told("size", "copy", *words)]
    assert [f["bits"] for f in figures] == [bits] * len(figures)
    assert [f["activation_bits"] for f in states] == [10] * 3


@pytest.mark.parametrize("map", ["bjorck", "hadamard"])
def test_fit_says_what_its_program_says(map, qornn_command, tmp_path):
    rows = [f"{'a' if i % 2 else 'b'},{i % 2},{i % 3},{i % 2},{i % 5}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["label,a,b,c,d", *rows]) + "\n", encoding="utf-8")
    words = ["--map", map, "--n-hidden", 8, "--bits", 3, "--epochs", 1, "--target", "host"]
    fitted = qornn_command("fit", tmp_path / "rows.csv", "-o", tmp_path / "out", *words, "--json")
    size = qornn_command("size", tmp_path / "out" / "model.qornn", "--json")
    told = [[json.loads(done.stdout)[key] for key in ("bits", "activation_bits")] for done in (fitted, size)]
    assert told == [[3, 12], [3, 12]]


def test_the_size_of_a_structured_recipe_is_that_of_its_map():
    found = size_of(resolve("smnist", map="hadamard", bits=4))
    assert found.parameters == 512 * (1 + 10)
    assert found.true_bytes == 4976  # as structured_size tells
