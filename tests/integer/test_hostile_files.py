"""Files damaged or made to mislead are errors in words, or programs that are valid."""

import hashlib
import json
import struct

import numpy as np
import pytest
from attack_programs import load_or_reason, mutate, tamper, tamper_tensors
from program_files import put, sealed, split
from strategies import random_input, same

from qornn.errors import ProgramError
from qornn.integer.readout import FloatReadout
from qornn.integer.simulate import simulate
from qornn.integer.storage import HEADER_LIMIT, load


def test_a_mutated_file_is_an_error_or_an_equal_program(saved):
    pairs, folder = saved
    rng, path, equal = np.random.default_rng(0), folder / "mutated.qornn", 0
    for i in range(1800):
        program, data = pairs[i % len(pairs)]
        mutated = mutate(data, rng)
        path.write_bytes(mutated)
        got = load_or_reason(path)
        if isinstance(got, str):
            assert str(path) in got
            assert mutated != data
        else:
            assert same(got, program)
            equal += 1
    assert equal < 180  # what changes nothing is rare: a byte swapped with its like, a space


def test_every_flipped_bit_of_the_tensors_is_an_error(saved):
    pairs, folder = saved
    _, data = pairs[1]
    path, header = folder / "flipped.qornn", 8 + struct.unpack("<Q", data[:8])[0]
    for at in range(header, len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        with pytest.raises(ProgramError, match="do not match its digest"):
            load(path)


def test_every_truncation_is_an_error(saved):
    pairs, folder = saved
    _, data = pairs[1]
    path = folder / "short.qornn"
    for end in range(0, len(data), 3):
        path.write_bytes(data[:end])
        with pytest.raises(ProgramError, match="damaged or truncated" if end > 8 else "is not a program"):
            load(path)


@pytest.mark.slow
def test_a_hostile_file_with_the_right_digest_is_an_error_or_a_valid_program(saved):
    pairs, folder = saved
    rng, path, accepted = np.random.default_rng(1), folder / "hostile.qornn", 0
    for i in range(2000):
        _, facts, tensors = split(pairs[i % len(pairs)][1])
        if i % 2:
            facts = {**facts, "layers": tamper(facts["layers"], rng)} if rng.random() < 0.9 else tamper(facts, rng)
        else:
            tensors = tamper_tensors(tensors, rng)
        if not isinstance(facts, dict):
            continue
        path.write_bytes(sealed(facts, tensors))
        got = load_or_reason(path)
        if isinstance(got, str):
            assert len(got) < 5000
        else:
            accepted += 1
            assert got.accumulator_bound < 2**31
            if not isinstance(got.readout, FloatReadout):
                simulate(got, random_input(got, i))
    assert 40 < accepted < 1000  # other weights and scales are other programs


def outer_header(text, data=b""):
    return struct.pack("<Q", len(text)) + text + data


def with_metadata(metadata):
    return outer_header(json.dumps({"__metadata__": metadata}).encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a program"),
        (b"short", "is not a program"),
        (b"PK\x03\x04 a zip file, or a pickle of torch", "is not a program"),
        (b"\x80\x04\x95" + b"\x00" * 40, "is not a program"),
        (struct.pack("<Q", 2**63) + b"{" + b" " * 99, "is not a program"),
        (struct.pack("<Q", HEADER_LIMIT + 1) + b"{}" + b" " * (HEADER_LIMIT + 99), "is not a program"),
        (struct.pack("<Q", 500) + b"{}", "damaged or truncated .it ends after 10 bytes, inside its own header"),
        (outer_header(b"{not json"), "damaged or truncated .its header cannot be read"),
        (outer_header(b'{"a": \xff\xfe}'), "its header cannot be read"),
        (outer_header(b"{}"), "is a safetensors file, but not a program of qornn"),
        (with_metadata({"format": "pt"}), "is a safetensors file, but not a program of qornn"),
        (with_metadata({"qornn": "[]"}), "is a safetensors file, but not a program of qornn"),
        (with_metadata({"qornn": "not json"}), "its header cannot be read"),
        (with_metadata({"qornn": "[" * 100_000}), "its header cannot be read"),
        (with_metadata({"qornn": "1" * 10_000}), "its header cannot be read"),
        (with_metadata({"qornn": {"schema": 1}}), "its header cannot be read"),
        (with_metadata(["qornn"]), "its header cannot be read"),
        (with_metadata("qornn"), "its header cannot be read"),
        (with_metadata(3), "its header cannot be read"),
        (with_metadata({"qornn": '{"format": "qornn-program", "schema": 1}'}), "do not match its digest"),
    ],
)
def test_what_is_no_program_is_refused_in_words(tmp_path, data, message):
    path = tmp_path / "net.qornn"
    path.write_bytes(data)
    with pytest.raises(ProgramError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def deep_file(data, depth, *keys):
    """The file with a value nested that deep, and the digest it ought to have."""
    length, deep = struct.unpack("<Q", data[:8])[0], "[" * depth + "]" * depth
    outer, facts, tensors = split(data)
    put(*keys, value="@")(facts, tensors)
    del facts["sha256"]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).replace('"@"', deep).encode())
    for name in sorted(tensors):
        digest.update(f"{name!r}|{tensors[name].dtype}|{tensors[name].shape}|".encode() + tensors[name].tobytes())
    inside = json.dumps({**facts, "sha256": digest.hexdigest()}).replace('"@"', deep)
    return outer_header(json.dumps({**outer, "__metadata__": {"qornn": inside}}).encode(), data[8 + length :])


@pytest.mark.parametrize("keys", [("provenance", "a"), ("layers", 0, "state", "alpha"), ("layers", 0, "W", "kind")])
def test_deep_nesting_is_an_error_or_a_provenance_like_any_other(saved, keys):
    """Reading may still work at a depth where writing, for the digest or for the message, does not."""
    pairs, folder = saved
    path, outcomes = folder / "deep.qornn", set()
    for depth in [3, 300, *range(880, 1000), 5000]:
        path.write_bytes(deep_file(pairs[2][1], depth, *keys))
        got = load_or_reason(path)
        outcomes.add(got.partition(" is ")[2].partition(" (")[0][:20] if isinstance(got, str) else "loaded")
    assert outcomes == {"damaged or truncated", "loaded" if keys[0] == "provenance" else "not a valid program:"}


def test_tensors_that_lie_about_where_they_are(saved):
    pairs, folder = saved
    _, data = pairs[0]
    outer, _, _ = split(data)
    length = struct.unpack("<Q", data[:8])[0]
    path = folder / "lies.qornn"
    for change in (
        {"shape": [2**62, 2**62]},
        {"data_offsets": [0, 2**60]},
        {"data_offsets": [8, 0]},
        {"data_offsets": [-1, 4]},
        {"dtype": "BF16"},
        {"dtype": "F8_E4M3"},
        {"dtype": "PICKLE"},
        {"shape": "4"},
    ):
        header = {**outer, "layers.0.W.integers": {**outer["layers.0.W.integers"], **change}}
        path.write_bytes(outer_header(json.dumps(header).encode(), data[8 + length :]))
        with pytest.raises(ProgramError, match="damaged or truncated"):
            load(path)
