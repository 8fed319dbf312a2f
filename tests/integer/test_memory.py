"""program.memory() is what the exported header states, for every kind of program."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "verify"))  # the programs of exported C
from c_programs import DENSE, WIDE
from c_programs import make as dense
from c_stacks import CASES as STACKS
from c_structured import CASES, MIXED, ODD, structured
from stacks import make_stack

from qornn.export.c99.make import make

PROGRAMS = {
    "dense": lambda: [dense(**parts) for parts in [*DENSE, *WIDE]],
    "structured": lambda: [structured(kind, form, **parts) for kind, form, parts in [*CASES, *ODD, *MIXED]],
    "stacked": lambda: [make_stack(1, **parts) for parts in STACKS],
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_memory_is_what_the_header_states(kind):
    for program in PROGRAMS[kind]():
        made = make(program, name="net", vector_steps=1, command="")
        memory = program.memory()
        header = made.files["src/net.h"].decode()
        for name, value in (("FLASH", memory.flash_bytes), ("RAM", memory.ram_bytes)):
            assert f"#define net_{name}_BYTES {value} " in header
        assert f"#define net_STEPS_MAX {memory.steps_max} " in header
        assert bool(memory.steps_max) == program.readout.pooled
