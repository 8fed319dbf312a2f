"""The machines that exported C is checked on: one entry each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

KB: Final = 1024


@dataclass(frozen=True, kw_only=True)
class Target:
    """An emulated device: how to compile for it and where its memory lies."""

    emulator: ClassVar[str] = "unicorn"
    family: Literal["arm", "rv32"]
    zig: tuple[str, ...]  # options of `zig cc`
    gcc: tuple[str, ...] = ()  # options of arm-none-eabi-gcc, where installed
    cpu: str | None = None  # unicorn's name of it; None where it knows none
    qemu: str | None = None  # machine of qemu-system-arm with that processor and true ROM
    flash: int = 0
    flash_bytes: int
    ram: int
    ram_bytes: int


@dataclass(frozen=True, kw_only=True)
class Avr:
    """A chip that simavr knows, compiled for by avr-gcc. Its replay is fed: vectors have no room in such a flash."""

    emulator: ClassVar[str] = "simavr"
    mcu: str  # as avr-gcc and simavr both call it
    flash_bytes: int
    ram: int = 0x100  # where it begins, after the registers
    ram_bytes: int
    hertz: int


# Memories are those of QEMU's machines of the same processors, so that one image runs on both.
TARGETS: Final[Mapping[str, Target | Avr | None]] = {
    "host": None,  # the machine this runs on, by its own compiler
    "cortex-m0": Target(
        family="arm",
        zig=("-target", "thumb-freestanding-eabi", "-mcpu=cortex_m0"),
        gcc=("-mcpu=cortex-m0", "-mthumb"),
        cpu="CORTEX_M0",
        qemu="microbit",
        flash_bytes=256 * KB,
        ram=0x2000_0000,
        ram_bytes=16 * KB,
    ),
    "cortex-m4": Target(  # with its FPU, as nearly all are sold: a fused product in the float readout would show here
        family="arm",
        zig=("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp"),
        gcc=("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
        cpu="CORTEX_M4",
        qemu="netduinoplus2",
        flash=0x0800_0000,
        flash_bytes=1024 * KB,
        ram=0x2000_0000,
        ram_bytes=128 * KB,
    ),
    "cortex-m55": Target(
        family="arm",
        zig=("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m55+mve_fp"),
        gcc=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
        qemu="mps3-an547",
        flash_bytes=512 * KB,
        ram=0x2000_0000,
        ram_bytes=512 * KB,
    ),
    "rv32": Target(  # rv32imc, memories as on a FE310 board
        family="rv32",
        zig=("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+c"),
        cpu="SIFIVE_E31",
        flash=0x2000_0000,
        flash_bytes=4096 * KB,
        ram=0x8000_0000,
        ram_bytes=16 * KB,
    ),
    # Arduino Uno; its bootloader takes half a kilobyte
    "atmega328p": Avr(mcu="atmega328p", flash_bytes=32 * KB - 512, ram_bytes=2 * KB, hertz=16_000_000),
}
