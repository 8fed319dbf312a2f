"""Run folders and records that were damaged, or made to mislead: an error in words, or one that loads."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from functools import cache
from pathlib import Path
from unittest import mock

import torch

sys.path.append(str(Path(__file__).parent))
from attack_programs import mutate as mutate_bytes
from attack_programs import tamper_tensors

from qornn.errors import QornnError
from qornn.recipe import resolve
from qornn.reproduce import records, tables
from qornn.reproduce.report import TABLES
from qornn.reproduce.report_records import read_records
from qornn.train import checkpoint as checkpoints
from qornn.train.log import read_metrics
from qornn.train.run import load, resume, start

LONGEST = 5000  # characters of a message about someone else's file
DEEP = "[" * 2000 + "]" * 2000
# What a hostile writer puts in place of a value, as text: JSON, and mostly TOML as well.
JUNK = ["null", "true", "0", "-1", "1", "7", "1000000", "1e308", "-1e-320", "Infinity", "NaN", '""', '"cuda:9"', "[]"]
JUNK += ["1000000000", "18446744073709551616", "9" * 5000, "0x" + "f" * 4000, "-0.5", '"x\\ny"', '"../../etc"', "{}"]
JUNK += ["[" * 40 + "]" * 40, DEEP, '{"a": ' * 300 + "1" + "}" * 300, '"' + "x" * 10_000 + '"', "inf", "nan", "5"]
JUNK += ['"hadamard"', '"projunn"', '"delay"', '"free"', '"lstm"', '"fastgrnn"', '"ptb"', '"digits"']
SMALL = ["task.T0=3", "task.train_size=16", "task.validation_size=4", "task.test_size=4", "model.n_h=4"]
SMALL += ["train.batch=4", "train.steps=2", "train.log_every=1", "train.eval_every=1"]
RECORDS = Path(__file__).parents[2] / "results" / records.FOLDER


def attack(rng, folder):
    """One run folder or record, damaged or hostile."""
    if rng.random() < 0.2:
        return _attack_record(rng, folder)
    run = folder / "attacked"
    shutil.rmtree(run, ignore_errors=True)
    bases = _bases(folder)
    shutil.copytree(bases[rng.integers(len(bases))], run)
    if rng.random() < 0.1:
        shutil.rmtree(run / "checkpoint")
    for _ in range(rng.integers(1, 4)):
        mutate(run, rng)
    return check(run)


def mutate(folder, rng):
    """Damage one file of a run folder, or write another value into it, with the right digest where it has one."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".toml", ".json", ".jsonl", ".safetensors")]
    path = files[rng.integers(len(files))]
    if rng.random() < 0.3:
        path.write_bytes(_damage(path.read_bytes(), rng))
    elif path.suffix == ".safetensors":
        _mislead(path, rng)
    else:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        path.write_text(_swap(text, rng), encoding="utf-8", errors="surrogateescape")


def check(folder):
    """Open the folder in every way; "loaded" or "refused", and any other error is a failure."""
    threads = torch.get_num_threads()
    outcomes = [_outcome(use, folder) for use in (load, _resume, _metrics)]
    torch.set_num_threads(threads)
    return " ".join(outcomes)


def _outcome(use, folder):
    try:
        use(folder)
    except QornnError as error:
        text = str(error)
        assert len(text) < LONGEST, f"a message of {len(text)} characters"
        assert "\n" not in text, f"a message of several lines: {text!r}"
        return "refused"
    return "loaded"


def _resume(folder):
    """All of resuming but the training itself, which would do whatever the recipe asks for."""
    final = folder / "model.safetensors"
    final.unlink(missing_ok=True)
    with mock.patch("qornn.train.run._finish", _ready):
        resume(folder, device="cpu", quiet=True)


def _ready(trainer, recipe, folder):
    assert 1 <= torch.get_num_threads() <= checkpoints.MOST_THREADS
    for parameter in trainer.model.parameters():
        assert bool(parameter.isfinite().all())


def _metrics(folder):
    read_metrics(folder / "metrics.jsonl")
    records.curve(read_metrics(folder / "metrics.jsonl"))


def _attack_record(rng, folder):
    """A record of a result."""
    names = sorted(path.name for path in RECORDS.glob("*.json"))
    name = names[rng.integers(len(names))]
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    path = results / records.FOLDER / name
    path.parent.mkdir(parents=True)
    text = (RECORDS / name).read_text(encoding="utf-8")
    if rng.random() < 0.3:
        path.write_bytes(_damage(text.encode(), rng))
    else:
        path.write_text(_swap(text, rng), encoding="utf-8")
    whole, warnings = read_records(results)
    assert len(whole) + len(warnings) == 1
    assert all(len(warning) < LONGEST and "\n" not in warning for warning in warnings)
    for table in TABLES:
        tables.table(table, whole)
    return _outcome(records.read_all, results)


def _damage(data, rng):
    """Some bytes changed; where no length of a header comes first, as if there were one."""
    if len(data) > 8 and 8 + int.from_bytes(data[:8], "little") < len(data):
        return mutate_bytes(data, rng)
    return mutate_bytes(bytes(8) + data, rng)[8:] if data else rng.bytes(9)


def _swap(text, rng):
    """The text with one value replaced, one line lost or one said twice; lines as of TOML and indented JSON."""
    lines = text.split("\n")
    at = int(rng.integers(len(lines)))
    mark = next((mark for mark in (" = ", ": ", ":") if mark in lines[at]), None)
    what = rng.random()
    if what < 0.1:
        del lines[at]
    elif what < 0.2:
        lines.insert(at, lines[rng.integers(len(lines))])
    elif mark is None or what < 0.3:
        lines[at] = _junk(rng)
    else:
        parts = lines[at].split(mark)  # of a line of JSON, any of its values
        place = int(rng.integers(1, len(parts)))
        rest = parts[place].partition(",")
        parts[place] = _junk(rng) + rest[1] + rest[2]
        if "," not in parts[place] and "}" in rest[0]:
            parts[place] += "}"
        lines[at] = mark.join(parts)
    return "\n".join(lines)


def _junk(rng):
    return JUNK[rng.integers(len(JUNK))]


def _mislead(path, rng):
    """Another tensor or fact, sealed with the digest it ought to have."""
    data = path.read_bytes()
    try:
        checkpoints.load_tensors(path)
    except QornnError:
        return  # damaged before
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["qornn"])
    facts = {key: value for key, value in header.items() if key not in ("schema", "sha256")}
    tensors = {name: tensor.numpy() for name, tensor in checkpoints.parse(data).items()}
    if rng.random() < 0.4:
        tensors = tamper_tensors(tensors, rng)
        _seal(path, tensors, json.dumps(facts, sort_keys=True))
        return
    keys = list(_places(facts))
    *outer, key = keys[rng.integers(len(keys))]
    inner = facts
    for name in outer:
        inner = inner[name]
    if rng.random() < 0.2:
        del inner[key]
        _seal(path, tensors, json.dumps(facts, sort_keys=True))
    else:
        inner[key] = "@"
        _seal(path, tensors, json.dumps(facts, sort_keys=True).replace('"@"', _junk(rng)))


def _places(facts, outer=()):
    """The keys that lead to every value."""
    for key, value in facts.items():
        yield (*outer, key)
        if isinstance(value, dict):
            yield from _places(value, (*outer, key))


def _seal(path, tensors, facts):
    """A file of these tensors and this text, and the digest of both; written here and not by checkpoint.py."""
    plain = {name: torch.from_numpy(tensor.copy()) for name, tensor in tensors.items()}
    digest = hashlib.sha256(facts.encode())
    for name in sorted(plain):
        tensor = plain[name]
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    header = f'{facts[:-1]}, "schema": 1, "sha256": "{digest.hexdigest()}"}}'
    path.write_bytes(checkpoints.serialise(plain, metadata={"qornn": header}))


@cache
def _bases(folder):
    """Runs finished and cut short, of stored matrices and of others, of this version and of older ones."""
    made = []
    for number, map_ in enumerate(("projunn", "hadamard", "bjorck", "cycle")):
        run = folder / f"base-{map_}"
        start(resolve("copy", map=map_, bits=4, settings=SMALL), run, quiet=True)
        for extra in ("tensorboard", "curve.png"):
            target = run / extra
            shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        if number % 2:
            (run / "model.safetensors").unlink()
        made += [run, shutil.copytree(run, folder / f"old-{map_}")]
        for path in made[-1].rglob("*.safetensors"):  # old ones do not say their recipe
            tensors, facts = checkpoints.load_tensors(path)
            facts.get("extra", facts).pop("recipe")
            checkpoints.save_tensors(path, tensors, facts)
    return made
