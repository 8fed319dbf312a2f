"""examples/boards: both projects compile, and in an emulator every answer is that of Python."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "verify"))  # c_programs.py
from c_programs import make

from qornn import export
from qornn.verify import build, elf

BOARDS = Path(__file__).parents[2] / "examples" / "boards"
STEPS = 20
ZIG = {
    "stm32f4": ("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp"),
    "rp2040": ("-target", "thumb-freestanding-eabi", "-mcpu=cortex_m0plus"),
}
MEMORY = {"stm32f4": [(0x0800_0000, 256), (0x2000_0000, 64)], "rp2040": [(0x2000_0000, 256)]}  # kB
PERIPHERALS = [(0x4000_0000, 512), (0xD000_0000, 4), (0xE000_E000, 4)]
SAMPLE = {"stm32f4": 0x4001_204C, "rp2040": 0x4004_C004}  # the converter's newest
WAITED_FOR = {"stm32f4": {}, "rp2040": {0x4000_C008: 2**32 - 1, 0x4002_4004: 2**31}}  # out of reset, crystal stable
PIN = {"stm32f4": {(0x4002_0018, 1 << 5): 1, (0x4002_0018, 1 << 21): 0}}
PIN["rp2040"] = {(0xD000_0014, 1 << 15): 1, (0xD000_0018, 1 << 15): 0}


class Board:
    """A processor with memory where the board has it. Peripherals are plain memory; interrupts come when told."""

    def __init__(self, board, image):
        unicorn = pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
        from unicorn import arm_const

        self.image, self.board, self.pins, self.count = image, board, [], 0
        self.registers = {name: getattr(arm_const, f"UC_ARM_REG_{name}") for name in ("PC", "SP", "LR")}
        self.uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        self.uc.ctl_set_cpu_model(
            arm_const.UC_CPU_ARM_CORTEX_M4 if board == "stm32f4" else arm_const.UC_CPU_ARM_CORTEX_M0
        )
        for start, size in [*MEMORY[board], *PERIPHERALS]:
            self.uc.mem_map(start, size * 1024)
        for address, data in image.loads:
            self.uc.mem_write(address, data)
        for address, value in WAITED_FOR[board].items():
            self.uc.mem_write(address, value.to_bytes(4, "little"))
        self.uc.hook_add(unicorn.UC_HOOK_MEM_WRITE, self._write, begin=0x4000_0000, end=0xDFFF_FFFF)
        self.uc.hook_add(unicorn.UC_HOOK_CODE, self._step)
        start = MEMORY[board][0][0]
        if board == "stm32f4":  # the first two words are the stack and the reset handler; a RAM image begins with code
            self["SP"], start = (int.from_bytes(self.uc.mem_read(start + 4 * i, 4), "little") for i in (0, 1))
        self["PC"] = start

    def __setitem__(self, register, value):
        self.uc.reg_write(self.registers[register], value)

    def __getitem__(self, register):
        return self.uc.reg_read(self.registers[register])

    def _write(self, uc, kind, address, size, value, data):
        if (address, value) in PIN[self.board]:
            self.pins.append((PIN[self.board][address, value], self.count))

    def _step(self, *_):
        self.count += 1

    def word(self, name):
        return int.from_bytes(self.uc.mem_read(self.image.symbols[name][0], 4), "little", signed=True)

    def go_to(self, address):
        self.uc.ctl_flush_tb()  # code translated earlier does not know this end
        self.uc.emu_start(self["PC"] | 1, address & ~1, timeout=20_000_000)
        assert self["PC"] & ~1 == address & ~1, f"stopped at {self['PC']:#x}"

    def sleep(self):
        """On to the instruction that waits for an interrupt."""
        self.go_to(self.image.symbols["board_wait"][0])

    def tick(self, sample):
        """The timer's interrupt, with that sample in the converter; then on after the sleep."""
        self.uc.mem_write(SAMPLE[self.board], int(sample).to_bytes(4, "little"))
        vectors = int.from_bytes(self.uc.mem_read(0xE000_ED08, 4), "little")  # VTOR, as start-up set it
        back, context = self["LR"], self.uc.context_save()
        self["PC"] = int.from_bytes(self.uc.mem_read(vectors + 4 * 15, 4), "little")  # SysTick
        self.go_to(back)
        self.uc.context_restore(context)
        self["PC"] = back


def by_zig(board, net, out):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    options = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-ffunction-sections"]
    sources = [BOARDS / "main.c", BOARDS / "startup.c", BOARDS / board / "board.c", *net.glob("src/net/*.c")]
    link = ["-T", BOARDS / board / "link.ld", "-Wl,--gc-sections", "-o", out / "board.elf"]
    include = [f"-I{BOARDS}", f"-I{net}/src"]
    words = [*build.cross_compiler("cortex-m4"), *ZIG[board], *options, *include, *sources, *link]
    return subprocess.run([str(word) for word in words], capture_output=True, text=True), out / "board.elf"


def by_make(board, net, out):
    for tool in ("make", "arm-none-eabi-gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    words = ["make", "-C", BOARDS, f"BOARD={board}", f"NET={net}", f"OUT={out}"]
    return subprocess.run([str(word) for word in words], capture_output=True, text=True), out / f"{board}.elf"


@pytest.mark.parametrize("compiler", [by_zig, by_make])
@pytest.mark.parametrize("board", ["stm32f4", "rp2040"])
def test_every_answer_on_the_board_is_that_of_python(tmp_path, board, compiler):
    program = make(n_h=12, n_i=2, n_o=4, integer=True, seed=5)
    net = export.c(program, tmp_path / "net_c", name="net", vector_steps=1)
    done, path = compiler(board, net, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    machine = Board(board, elf.read(path))
    samples = np.random.default_rng(0).integers(0, 2**12, (STEPS, 2))
    session, answers, wanted = program.session(), [], []
    machine.sleep()
    assert machine.word("board_answer") == -1
    for step, x in enumerate(samples):
        for sample in x:
            machine.tick(sample)
            machine.sleep()
        answers.append(machine.word("board_answer"))
        assert machine.word("board_answers") == step + 1
        wanted.append(int(np.argmax(session.step(program.input.clip(x)))))
    assert answers == wanted
    assert len(set(answers)) > 1
    assert machine.word("board_late") == 0
    levels, counts = zip(*machine.pins, strict=True)
    assert levels == (1, 0) * STEPS  # high once per step, while the network works
    assert all(500 < low - high < 20_000 for high, low in zip(counts[::2], counts[1::2], strict=True))
