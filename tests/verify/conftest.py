import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # c_programs.py
from qornn.verify import qemu


@pytest.fixture
def one_emulator(request, monkeypatch):
    """Unicorn alone; where everything is run QEMU is asked too, and arm-none-eabi-gcc compiles for it."""
    if request.config.option.markexpr:
        monkeypatch.setattr(qemu, "outputs", lambda *_: ([], []))
