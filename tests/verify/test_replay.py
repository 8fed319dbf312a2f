import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from c_programs import DENSE as CASES
from c_programs import STRICT, WIDE, as_it_lies, make, needs_gcc
from single import changed

from grids import covering
from qornn import export
from qornn.errors import SettingsError
from qornn.verify import TARGETS, VerifyError, build, measure, verify
from qornn.verify.folder import find
from qornn.verify.targets import Target

pytestmark = needs_gcc
DEVICES = ["cortex-m0", "cortex-m4", "rv32"]


@pytest.fixture
def exported(tmp_path):
    """A program as a folder."""

    def write(steps=20, **settings):
        return export.c(make(**settings), tmp_path / "out", name="net", vector_steps=steps)

    return write


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['form']}-{case['k']}")
def test_exact_on_the_host(exported, case):
    result = verify(exported(**case))
    assert result.exact
    assert result.steps == 2 * 20 + 32


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize(("target", "case"), covering(DEVICES, range(len(CASES)), together=1))
def test_exact_on_emulated_devices(exported, target, case):
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    result = verify(exported(**CASES[case]), target)
    assert result.exact
    assert result.steps == 2 * 20 + 32


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize(("target", "case"), covering(["host", *DEVICES], WIDE, together=1))
def test_exact_with_few_inputs_and_many(exported, target, case):
    if target != "host":
        pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
        pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    assert verify(exported(steps=4, **case), target).exact


@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.full
@pytest.mark.parametrize("case", [WIDE[n] for n in (1, 3, 5)], ids=lambda case: f"{case['n_i']}x{case['k_U']}")
def test_helium_is_exact_with_many_inputs(exported, case):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    assert verify(exported(steps=4, **case), "cortex-m55").exact


@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.full
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_exact_on_qemu(exported, target, case):
    """Helium runs nowhere else; and where arm-none-eabi-gcc is installed, its code is replayed beside zig's."""
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    result = verify(exported(**CASES[case]), target)
    assert result.exact
    lacking = any("arm-none-eabi-gcc" in tool for tool in result.skipped)  # not installed, or without newlib
    compilers = {"zig cc", *([] if lacking else ["arm-none-eabi-gcc"])}
    assert {name.split(", ")[1] for name in result.ran_on if name.startswith("qemu")} == compilers


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("target", DEVICES)
def test_figures_of_a_device(exported, target):
    """n_h² products take more than n_h² / 2 instructions, and the sizes contain what is known to be there."""
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    found = measure(exported(n_h=64, integer=True), target)
    W, state = 64 * 64 // 2, 4 * 64 + 4 + 8
    assert 64 * 64 // 2 < found["instructions_per_step"] < 64 * 64 * 20
    assert W < found["flash_bytes"] < W + 6000
    assert state + 12 <= found["ram_bytes"] <= state + 12 + 8  # the outputs, alignment; nothing static in the model
    assert 0 < found["stack_bytes"] < 500


@pytest.mark.slow
def test_m55_is_compiled_and_says_that_it_did_not_run(exported, monkeypatch):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    monkeypatch.setattr("qornn.verify.build.shutil.which", lambda name: None)
    result = verify(exported(), "cortex-m55")
    assert (result.exact, result.steps, result.ran_on) == (None, 0, [])
    assert result.skipped == ["qemu-system-arm is not installed", "cortex-m55 was compiled but not run"]
    assert (result.flash_bytes > 0, result.instructions_per_step) == (True, None)


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("name", ["keyboard", "board", "my_example_main"])
def test_sizes_do_not_depend_on_the_name(tmp_path, name):
    """The harness is told from the model by the names of its files."""
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    program = make(n_h=20)
    folders = [export.c(program, tmp_path / n, name=n, vector_steps=3) for n in ("net", name)]
    one, other = (measure(folder, "cortex-m4") for folder in folders)
    assert one == other
    assert one["flash_bytes"] > 20 * 20 // 2


@pytest.mark.slow
@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if isinstance(target, Target)])
def test_cross_compiler_has_nothing_to_say(exported, tmp_path, target):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    folder, device = find(exported(normalised=True)), TARGETS[target]
    build.build(
        folder,
        tmp_path,
        target,
        device,
        build.cross_compiler(target),
        (*device.zig, *STRICT, "-Wno-overlength-strings"),
    )


def flip(path, array, index, bit):
    """One bit of one entry of an array in NAME.c."""
    text = path.read_text()
    start = text.index("{", text.index(f" {array}[")) + 1
    entries = list(re.finditer(r"-?\d+", text[start : text.index("}", start)]))
    entry = entries[index]
    changed = int(entry[0]) ^ (1 << bit)
    path.write_text(text[: start + entry.start()] + str(changed) + text[start + entry.end() :])


@pytest.mark.slow
def test_a_flipped_weight_is_caught_with_its_unit(exported):
    """Row 5 of W: two words of 8 weights; any weight of the 13, any of its bits."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        folder = exported()
        j = int(rng.integers(13))
        field = j % 8 // 2 * 4 + j % 2 * 16  # qornn_plane.h
        flip(folder / "src/net/net.c", "net_layer0_W_planes", 5 * 2 + j // 8, field + int(rng.integers(4)))
        result = as_it_lies(folder)
        assert result.exact is False
        assert result.difference.unit == 5
        assert result.difference.got != result.difference.want


@pytest.mark.parametrize("integer", [False, True])
def test_a_flipped_readout_is_caught_with_its_output(exported, integer):
    folder = exported(integer=integer)
    flip(folder / "src/net/net.c", "net_readout_b_o_int" if integer else "net_readout_b_o", 0, 0)
    result = as_it_lies(folder)
    assert result.exact is False
    assert (result.difference.step, result.difference.output) == (0, 0)


def test_a_flip_that_no_step_shows_is_caught_by_the_checksum(exported):
    """Weights past n_h meet states that are always zero."""
    folder = exported()
    flip(folder / "src/net/net.c", "net_layer0_W_planes", 1, 31)
    result = as_it_lies(folder)
    assert result.exact is False
    assert result.difference.step is None
    assert "checksum" in str(result.difference)


@pytest.mark.usefixtures("one_emulator")
def test_a_flipped_weight_is_caught_on_a_device(exported):
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    folder = exported()
    flip(
        folder / "src/net/net.c", "net_layer0_W_planes", 7 * 2, 4 + 2
    )  # two words per row; the second field is weight 2's
    result = as_it_lies(folder, "cortex-m4")
    assert result.exact is False
    assert result.difference.unit == 7


def test_without_its_program_a_folder_cannot_be_compared(exported):
    folder = exported()
    (folder / "net.qornn").unlink()
    with pytest.raises(SettingsError, match=r"no net\.qornn.*export again"):
        verify(folder)


def test_bad_folders_are_refused(tmp_path, exported):
    with pytest.raises(SettingsError, match="no folder"):
        verify(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="found none"):
        verify(tmp_path)
    folder = exported()
    with pytest.raises(SettingsError, match="cortex-m4"):
        verify(folder, "cortex-m5")
    (folder / "src/net.h").unlink()
    result = verify(folder)
    assert result.exact is False
    assert "net.h" in str(result.difference)


def test_code_that_does_not_compile_says_why(exported):
    folder = exported()
    (folder / "src/net/net.c").write_text("int net_init(void) { return oops; }\n")
    with pytest.raises(VerifyError, match="oops"):
        as_it_lies(folder)


def test_code_that_crashes_is_an_error(exported):
    folder = exported()
    (folder / "test/test_main.c").write_text("int main(void) { return 7; }\n")
    with pytest.raises(VerifyError, match="status 7"):
        as_it_lies(folder)


def test_missing_tools_are_named(exported, monkeypatch):
    folder = exported()
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(VerifyError, match="no-such-compiler"):
        verify(folder)
    monkeypatch.delenv("CC")
    monkeypatch.setattr("qornn._io.zig.find_spec", lambda name: None)
    with pytest.raises(VerifyError, match=r"qornn\[mcu\]"):
        verify(folder, "cortex-m4")
    monkeypatch.setattr("qornn.verify.build.shutil.which", lambda name: None)
    with pytest.raises(VerifyError, match="no C compiler"):
        verify(folder)


@pytest.mark.slow
def test_too_large_is_said_before_compiling(exported, monkeypatch):
    """n_h = 730, 8 bits per weight: 533 kB and more do not fit 256 kB."""
    monkeypatch.setattr("qornn.verify.build.compiled", lambda *_: pytest.fail("compiled"))
    folder = exported(n_h=730, k=8, k_a=8)
    with pytest.raises(VerifyError, match=r"5\d{5} bytes.* of 262144 bytes of flash"):
        verify(folder, "cortex-m0")


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
def test_writing_to_flash_is_a_fault(exported):
    """A linker mistake must not pass: flash cannot be written on a device, nor here."""
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    folder = exported()
    text = (folder / "test/test_main.c").read_text()
    broken = text.replace("    uint32_t seed =", "    *(volatile int16_t *)net_inputs = 1;\n    uint32_t seed =")
    assert broken != text
    (folder / "test/test_main.c").write_text(broken)
    for target in ("cortex-m0", "rv32"):
        with pytest.raises(VerifyError, match=r"fails on the device|fault|exception"):
            as_it_lies(folder, target)


def test_every_target_is_one_entry():
    assert list(TARGETS) == ["host", "cortex-m0", "cortex-m4", "cortex-m55", "rv32", "atmega328p"]


@pytest.mark.slow
@pytest.mark.usefixtures("one_emulator")
@pytest.mark.parametrize("normalised", [False, True])
def test_figures_are_those_without_floats(exported, tmp_path, normalised):
    """Replaying from floats links NAME_quantize; its size is not that of a step and a readout."""
    pytest.importorskip("unicorn", reason="pip install 'qornn[mcu]'")
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    program = make(normalised=normalised, integer=True, n_i=5)
    assert (program.input.raw_scale is None) == normalised
    bare = changed(program, input=replace(program.input, scale=None, raw_scale=None))
    found = [
        measure(export.c(one, tmp_path / str(number), name="net", vector_steps=3), "cortex-m0")
        for number, one in enumerate((program, bare))
    ]
    for figure in ("flash_bytes", "ram_bytes", "stack_bytes"):
        assert found[0][figure] == found[1][figure]
