"""What each target needs on this machine, and the one command that installs what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from qornn.errors import unknown
from qornn.verify import build, qemu, simavr
from qornn.verify.build import VerifyError
from qornn.verify.targets import TARGETS, Avr

MCU: Final = "pip install 'qornn[mcu]'"
QEMU: Final = f"apt-get install {qemu.QEMU}"


@dataclass(frozen=True, kw_only=True)
class Need:
    """One target; `missing` and `install` are empty where everything is there."""

    target: str
    device: str
    missing: str = ""
    install: str = ""

    @property
    def ready(self) -> bool:
        return not self.missing


def need(target: str) -> Need:
    """Of one target."""
    if target not in TARGETS:
        raise unknown("target", target, TARGETS)
    device = TARGETS[target]
    if device is None:
        return Need(target=target, device="this machine", **_host())
    if isinstance(device, Avr):
        lacking = simavr.absent()
        found = {"missing": lacking, "install": simavr.INSTALL} if lacking else {}
        return Need(target=target, device=f"{device.mcu}, simulated", **found)
    modules = {"ziglang": "a cross compiler (ziglang)"}
    modules |= {"unicorn": "an emulator (unicorn)"} if device.cpu else {}
    lacking = " and ".join(what for module, what in modules.items() if find_spec(module) is None)
    found = {"missing": lacking, "install": MCU} if lacking else {}
    if not device.cpu and build.tool(qemu.QEMU) is None:
        both = [MCU, QEMU] if lacking else [QEMU]
        found = {"missing": " and ".join(filter(None, (lacking, qemu.QEMU))), "install": " && ".join(both)}
    return Need(target=target, device=f"{device.family}, emulated", **found)


def needs() -> list[Need]:
    """Of all targets."""
    return [need(target) for target in TARGETS]


def _host() -> dict[str, str]:
    try:
        build.host_compiler()
    except VerifyError as error:
        return {"missing": str(error).split(";")[0], "install": MCU}
    return {}
