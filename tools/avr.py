"""Networks on an Arduino Uno's chip: cycles, flash and RAM, as simavr counts them.

docs/deploy.md shows the record, results/avr.json.

python examples/real/measure_stacks.py --data-dir DATA --sets har --seeds 0 --keep OUT
python examples/keywords/train.py --data-dir DATA --network small --seeds 0 --keep OUT
python tools/avr.py forda=zoo:forda-stack har=OUT/har-stack.qornn keywords=OUT/small.qornn --record
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from qornn import __version__, export
from qornn._io.files import to_json, write_atomically
from qornn.errors import QornnError
from qornn.integer.program import IntegerProgram
from qornn.verify import TARGETS, measure
from qornn.verify.simavr import GCC
from qornn.zoo.opening import load_program

RECORD = Path(__file__).parent.parent / "results" / "avr.json"
CHIP = "atmega328p"
MEASURED = ("cycles_per_step", "cycles_per_readout", "instructions_per_step", "flash_bytes", "ram_bytes", "stack_bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("networks", nargs="+", metavar="NAME=PROGRAM", help="A program file, or a name of the zoo.")
    parser.add_argument("--record", action="store_true", help="Write results/avr.json; else it is printed.")
    options = parser.parse_args()
    try:
        networks = dict(word.split("=", 1) for word in options.networks)
        found = {name: measured(name, load_program(what)) for name, what in networks.items()}
    except (QornnError, ValueError) as error:
        sys.exit(f"error: {error}")
    text = to_json({"chip": CHIP, "compiler": compiler(), "version": __version__, "networks": found}, indent=1) + "\n"
    if options.record:
        write_atomically(RECORD, text)
    print(text, end="")


def measured(name: str, program: IntegerProgram) -> dict[str, Any]:
    """One network, exact on the chip; a step reads one sample of every channel, or several one after another."""
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(export.c(program, Path(folder, "c"), name=name), CHIP)
    window, seconds = program.input.window, figures["cycles_per_step"] / TARGETS[CHIP].hertz
    return {
        "bytes": program.true_bytes,
        "channels": program.input.n_raw // window,
        "samples_per_step": window,
        **{key: figures[key] for key in MEASURED},
        "cycles_per_sample": round(figures["cycles_per_step"] / window),
        "ms_per_sample": round(1000 * seconds / window, 3),
        "ms_per_readout": round(1000 * figures["cycles_per_readout"] / TARGETS[CHIP].hertz, 3),
        "exact": figures["exact"],
    }


def compiler() -> str:
    """avr-gcc and its version."""
    return f"{GCC} {subprocess.check_output([GCC, '-dumpversion'], encoding='utf-8').strip()}"


if __name__ == "__main__":
    main()
