"""Public classes list their parameters, and a misspelt one is reported where it was given."""

import inspect
import re

import pytest

from qornn.errors import SettingsError
from qornn.maps import Bjorck
from qornn.model import ModReLU, OrthogonalRecurrence, OrthogonalRNN

CLASSES = (ModReLU, OrthogonalRecurrence, OrthogonalRNN)


def parameters(kind):
    return [p for p in inspect.signature(kind.__init__).parameters.values() if p.name != "self"]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_parameter_is_documented_with_its_default(kind):
    for parameter in parameters(kind):
        assert f"`{parameter.name}`" in kind.__doc__, parameter.name
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            said = re.search(rf"`{parameter.name}`[^\n]*?\((.*?)\)", kind.__doc__)
            assert said, parameter.name
            assert said[1].strip('"') == str(parameter.default), parameter.name


def test_the_network_documents_the_recurrence_s_keywords_too():
    for parameter in parameters(OrthogonalRecurrence):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            assert f"`{parameter.name}` (" in OrthogonalRNN.__doc__, parameter.name


@pytest.mark.parametrize("map", ["bjorck", "hadamard", Bjorck()])
def test_a_misspelt_keyword_is_the_class_s_own(map):
    with pytest.raises(SettingsError, match=r"unknown keyword of OrthogonalRNN 'readuot'; .* Did you mean 'readout'"):
        OrthogonalRNN(1, 4, 2, map=map, readuot="all")
    with pytest.raises(SettingsError, match=r"unknown keyword of OrthogonalRecurrence 'bit'; .* Did you mean 'bits'"):
        OrthogonalRecurrence(1, 4, map=map, bit=4)
    with pytest.raises(SettingsError, match="unknown keyword of OrthogonalRecurrence 'readout'"):
        OrthogonalRecurrence(1, 4, map=map, readout="all")
