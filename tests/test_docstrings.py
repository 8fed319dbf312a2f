"""Docstrings of the public classes and functions list every parameter with its default."""

import ast
import inspect
import re
from typing import Any

import pytest

import qornn
from qornn.export.c99 import make
from qornn.export.onnx_scan import scan
from qornn.export.web_page import page
from qornn.recipe import ModelSettings, TrainSettings
from qornn.train.run import train

DOCUMENTED = {
    "OrthogonalRNN": qornn.OrthogonalRNN,
    "OrthogonalRecurrence": qornn.OrthogonalRecurrence,
    "Stack": qornn.Stack,
    "Stack.rotations": qornn.Stack.rotations,
    "Rotations": qornn.Rotations,
    "Mix": qornn.Mix,
    "ModReLU": qornn.ModReLU,
    "lower": qornn.lower,
    "calibrate": qornn.calibrate,
    "train": train,
    "resume": qornn.resume,
    "Trainer": qornn.Trainer,
    "simulate": qornn.simulate,
    "IntegerProgram": qornn.IntegerProgram,
    "ModelSettings": ModelSettings,
    "TrainSettings": TrainSettings,
    "QORNNClassifier": qornn.QORNNClassifier,
    "export.c": qornn.export.c,
    "export.onnx": qornn.export.onnx,
    "export.web": qornn.export.web,
}
# Keywords that a function only passes on are listed in its own docstring.
PASSED_ON = {
    "OrthogonalRNN": qornn.OrthogonalRecurrence,
    "export.c": make.c,
    "export.onnx": scan.onnx,
    "export.web": page.web,
}
RENAMED = {"path": "out"}  # of scan.onnx, which is called by position
FACTORY = "<factory>"  # how dataclasses show a default that is a new dict for each object
ENTRY = re.compile(r"`(\w+)`(?: \(((?:[^()]|\([^()]*\))*)\))?")


def listed(docstring: str) -> dict[str, Any]:
    """The parameters of a docstring's list, each with its default; Parameter.empty where there is none.

    >>> listed("- `a`, `b` (None): first.\\n- `c`: last.") == {"a": None, "b": None, "c": inspect.Parameter.empty}
    True
    """
    found: dict[str, Any] = {}
    for head in re.findall(r"^ *- (`\w+`.*?):", docstring, flags=re.MULTILINE):
        default: Any = inspect.Parameter.empty
        for name, text in reversed(ENTRY.findall(head)):
            default = ast.literal_eval(text) if text else default
            found[name] = default
    return found


def parameters(name: str) -> dict[str, Any]:
    """The parameters of the signature, each with its default; of those that are only passed on, also theirs."""
    found: dict[str, Any] = {}
    for passed_on in (PASSED_ON.get(name), DOCUMENTED[name]):
        if passed_on is not None:
            for p in inspect.signature(passed_on).parameters.values():
                if p.kind is not p.VAR_KEYWORD or passed_on is DOCUMENTED[name]:
                    found[RENAMED.get(p.name, p.name)] = {} if repr(p.default) == FACTORY else p.default
    return found


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_parameter_is_listed_with_its_default(name):
    docstring = inspect.getdoc(DOCUMENTED[name])
    assert docstring is not None
    assert listed(docstring) == parameters(name)
