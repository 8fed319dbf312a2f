"""Programs of every kind of part, and their files taken apart, changed and sealed again."""

import hashlib
import json
import struct
from dataclasses import replace

import numpy as np
import safetensors.numpy
from single import changed
from stacks import make_stack
from strategies import paper, per_row, random_net, random_readout
from structured_programs import KINDS as STRUCTURED
from structured_programs import make_program, make_W


def bases():
    """Small programs that have, among them, every kind of part."""
    shape = {"n_i": 2, "n_h": 3, "n_o": 2, "k_a": 5, "e": 1, "m": 0, "alphas": (0.7, 1.3, 1.0)}
    modrelu = random_net(1, k=3, k_U=5, activation="modrelu", codes=False, **shape)
    relu = random_net(2, k=4, k_U=2, activation="relu", codes=True, **shape)
    rng = np.random.default_rng(3)
    normalised, _ = per_row(modrelu, identity=True, steps="all")
    samples = replace(normalised.input, offset=[5, -5], multiplier=[3, 1], shift=[2, 0], scale=0.1)
    return [
        paper(modrelu, "thresholds").with_provenance(seed=3, recipe={"task": "copy", "lr": 0.1}),
        paper(relu, "table", random_readout(rng, 3, relu=True)),
        paper(replace(relu, activation="identity"), "multiplier"),
        changed(normalised, input=samples, W=replace(normalised.W, alpha=[0.1, 0.2, 0.3])),
        *(
            make_program(make_W(kind, rng, small=True), "multiplier", "biased", k_a=5, bits_V=3 + number)
            for number, kind in enumerate(STRUCTURED)
        ),
        make_stack(5, layers=1, width=3, pairs=2, skip=True, window=2, channels=1),
        make_stack(6, layers=1, width=3, pairs=2, stem=False, codes=True, steps="all", lambda_bits=11),
    ]


def split(data):
    """The outer header, the JSON inside, and the tensors."""
    length = struct.unpack("<Q", data[:8])[0]
    outer = json.loads(data[8 : 8 + length])
    return outer, json.loads(outer["__metadata__"]["qornn"]), safetensors.numpy.load(data)


def sealed(facts, tensors):
    """A file of these contents with the digest they ought to have, written here and not by storage.py."""
    facts = {key: value for key, value in facts.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(f"{name!r}|{tensors[name].dtype}|{tensors[name].shape}|".encode() + tensors[name].tobytes())
    header = json.dumps({**facts, "sha256": digest.hexdigest()}, sort_keys=True)
    return safetensors.numpy.save(tensors, metadata={"qornn": header})


def at(part):
    """Where a file says what a part of a program of one layer is."""
    return (part,) if part in ("input", "readout") else ("layers", 0, part)


def as_old(facts, tensors, schema):
    """The same program as 0.1 wrote it: one layer, whose parts stand beside the input."""
    (layer,), readout = facts["layers"], dict(facts["readout"])
    steps = readout.pop("steps")
    parts = {part: value for part, value in layer.items() if part != "kind"}
    parts |= {"input": facts["input"], "readout": readout}
    old = {"format": facts["format"], "schema": schema, "steps": steps, "parts": parts}
    old["provenance"] = facts["provenance"]
    return old, {name.removeprefix("layers.0."): tensor for name, tensor in tensors.items()}


def put(*keys, value):
    def change(facts, tensors):
        for key in keys[:-1]:
            facts = facts[key]
        facts[keys[-1]] = value

    return change


def put_tensor(name, make):
    def change(facts, tensors):
        tensors[name] = make(tensors.get(name))

    return change
