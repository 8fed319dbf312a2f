"""Every target says what it lacks on this machine, and the command that installs it."""

import json

import pytest
from typer.testing import CliRunner

from qornn.cli import app
from qornn.errors import QornnError
from qornn.verify import TARGETS, build, needs, simavr
from qornn.verify.requirements import need


def test_every_target_is_listed_in_order():
    assert [found.target for found in needs()] == list(TARGETS)
    assert all(bool(found.missing) == bool(found.install) for found in needs())


def test_what_is_missing_is_named_with_one_command(monkeypatch):
    monkeypatch.setattr(build, "tool", lambda name: None)
    monkeypatch.setattr(build, "zig", lambda: None)
    monkeypatch.setattr("qornn.verify.requirements.find_spec", lambda name: None)
    monkeypatch.delenv("CC", raising=False)
    found = {each.target: each for each in needs()}
    assert not any(each.ready for each in found.values())
    assert found["host"].install == found["cortex-m4"].install == found["rv32"].install == "pip install 'qornn[mcu]'"
    assert "unicorn" in found["cortex-m4"].missing
    assert "ziglang" in found["cortex-m4"].missing
    assert found["cortex-m55"].install == "pip install 'qornn[mcu]' && apt-get install qemu-system-arm"
    assert (found["atmega328p"].missing, found["atmega328p"].install) == ("avr-gcc", simavr.INSTALL)


def test_an_unknown_target_is_refused():
    with pytest.raises(QornnError, match="cortex-m4"):
        need("cortex-m5")


def test_command_line_lists_them():
    rows = json.loads(CliRunner().invoke(app, ["verify", "--json"]).stdout)["targets"]
    assert [row["target"] for row in rows] == list(TARGETS)
    assert set(rows[0]) == {"target", "device", "missing", "install", "ready"}
    shown = CliRunner().invoke(app, ["verify"]).stdout
    assert all(target in shown for target in TARGETS)
