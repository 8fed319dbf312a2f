"""The record of the atmega328p is what its tool measures."""

import json

import avr
import pytest

from qornn.verify import simavr
from qornn.zoo.opening import load_program


@pytest.mark.slow
@pytest.mark.skipif(simavr.missing() is not None, reason=f"atmega328p: {simavr.missing()}")
def test_the_zoo_s_network_takes_what_the_record_says():
    record = json.loads(avr.RECORD.read_text(encoding="utf-8"))
    found = avr.measured("forda", load_program("zoo:forda-stack"))
    assert found["exact"]
    if avr.compiler() != record["compiler"]:
        pytest.skip(f"the record was made with {record['compiler']}, here is {avr.compiler()}")
    assert found == record["networks"]["forda"]


def test_every_network_of_the_record_runs_in_real_time():
    """Frames of 20 ms for keywords, and samples at 50 Hz for human activity; a readout comes on top of a step."""
    networks = json.loads(avr.RECORD.read_text(encoding="utf-8"))["networks"]
    for name in ("har", "keywords"):
        assert networks[name]["ms_per_sample"] < 20
        assert networks[name]["exact"]
