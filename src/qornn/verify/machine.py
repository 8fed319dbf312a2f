"""An emulated microcontroller: flash that cannot be written, RAM that cannot be executed, semihosting, and counting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from qornn.verify.build import VerifyError
from qornn.verify.elf import Image
from qornn.verify.targets import Target

PAGE: Final = 0x1000
CONTROL: Final = 0xE000_E000
PAINT: Final = 0xA5
WRITE0, EXIT, SUCCESS = 0x04, 0x18, 0x20026
LONGEST: Final = 64 * 1024  # characters a program may say
MICROSECONDS: Final = 600 * 10**6


class Machine:
    """A processor with an image in its flash, about to come out of reset."""

    def __init__(self, image: Image, target: Target) -> None:
        if not find_spec("unicorn"):
            raise VerifyError("running this target needs an emulator; `pip install 'qornn[mcu]'` brings unicorn")
        import unicorn
        from unicorn import arm_const, riscv_const

        self.image, self.target = image, target
        self.said = ""
        self.status: int | None = None
        self._uc: Any
        if target.family == "arm":
            self._uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
            self._uc.ctl_set_cpu_model(getattr(arm_const, f"UC_CPU_ARM_{target.cpu}"))
            names = {"pc": "PC", "sp": "SP", "link": "LR", "call": "R0", "argument": "R1"}
            self._registers = {key: getattr(arm_const, f"UC_ARM_REG_{name}") for key, name in names.items()}
        else:
            self._uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
            self._uc.ctl_set_cpu_model(getattr(riscv_const, f"UC_CPU_RISCV32_{target.cpu}"))
            names = {"pc": "PC", "sp": "SP", "link": "RA", "call": "A0", "argument": "A1"}
            self._registers = {key: getattr(riscv_const, f"UC_RISCV_REG_{name}") for key, name in names.items()}
        self._load(unicorn)
        self._uc.hook_add(unicorn.UC_HOOK_INTR, self._interrupt)
        self._hook_code = unicorn.UC_HOOK_CODE
        self._error = unicorn.UcError

    def _load(self, unicorn: Any) -> None:
        target = self.target
        self._uc.mem_map(target.flash, _pages(target.flash_bytes), unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        self._uc.mem_map(target.ram, _pages(target.ram_bytes), unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        # Nothing may rely on what RAM holds at power-up.
        self._uc.mem_write(target.ram, bytes([PAINT]) * target.ram_bytes)
        for address, data in self.image.loads:
            if not target.flash <= address <= target.flash + target.flash_bytes - len(data):
                raise VerifyError(f"the image puts {len(data)} bytes at {address:#x}, which is not flash")
            self._uc.mem_write(address, data)
        if target.family == "arm":
            # The system control space, where start-up switches the FPU on; here it is always on.
            self._uc.mem_map(CONTROL, PAGE, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
            # As the hardware does: the first two words are the stack and the reset handler.
            self["sp"] = int.from_bytes(self._uc.mem_read(target.flash, 4), "little")
            self["pc"] = int.from_bytes(self._uc.mem_read(target.flash + 4, 4), "little")
        else:
            self["pc"] = self.image.symbols["board_reset"][0]

    def __getitem__(self, register: str) -> int:
        return int(self._uc.reg_read(self._registers[register]))

    def __setitem__(self, register: str, value: int) -> None:
        self._uc.reg_write(self._registers[register], value)

    def run(self) -> None:
        """Go on to the end of the program."""
        self._go(0xFFFF_FFFE)
        if self.status is None:
            raise VerifyError(f"the program did not end within {MICROSECONDS // 10**6} s")

    def run_to(self, function: str) -> bool:
        """Go on to the first instruction of a function; False if the program ends before."""
        self._go(self.image.symbols[function][0])
        return self.status is None

    def call(self, *, counted: bool) -> tuple[int, int]:
        """From the first instruction of a function to its return: instructions, and the deepest stack in bytes."""
        with self._painted() as depth, self._counting(counted) as count:
            self._go(self["link"])
        return count[0], depth[0]

    def _go(self, until: int) -> None:
        self._uc.ctl_flush_tb()  # code translated earlier knows neither this end nor a new hook
        try:
            self._uc.emu_start(self["pc"] | (self.target.family == "arm"), until & ~1, timeout=MICROSECONDS)
        except self._error as error:
            raise VerifyError(f"the program fails on the device at {self['pc']:#x}: {error}") from error

    @contextmanager
    def _painted(self) -> Iterator[list[int]]:
        """The bytes below the stack pointer that are written meanwhile."""
        top, floor = self["sp"], self.image.symbols["bss_end"][0]
        self._uc.mem_write(floor, bytes([PAINT]) * (top - floor))
        depth = [0]
        yield depth
        used = bytes(self._uc.mem_read(floor, top - floor)).lstrip(bytes([PAINT]))
        depth[0] = len(used)

    @contextmanager
    def _counting(self, counted: bool) -> Iterator[list[int]]:
        count = [0]

        def one(*_: Any) -> None:
            count[0] += 1

        hook = self._uc.hook_add(self._hook_code, one) if counted else None
        yield count
        if hook is not None:
            self._uc.hook_del(hook)

    def _interrupt(self, uc: Any, number: int, _: Any) -> None:
        """Semihosting: BKPT 0xAB, or ECALL, which unicorn has already passed; any other exception ends the run."""
        arm = self.target.family == "arm"
        at = self["pc"] if arm else self["pc"] - 4
        if bytes(uc.mem_read(at, 2 if arm else 4)) != (b"\xab\xbe" if arm else b"\x73\0\0\0"):
            self.said += f"exception {number} at {at:#x}\n"
            self._leave(1)
        elif self["call"] == WRITE0:
            self._say(self["argument"])
            if arm:
                self["pc"] = at + 2 | 1
        else:
            self._leave(int(self["call"] != EXIT or self["argument"] != SUCCESS))

    def _say(self, at: int) -> None:
        text = bytearray()
        while len(self.said) + len(text) < LONGEST and (byte := self._uc.mem_read(at + len(text), 1)) != b"\0":
            text += byte
        self.said += text.decode("ascii", "replace")

    def _leave(self, status: int) -> None:
        self.status = status
        self._uc.emu_stop()


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE
