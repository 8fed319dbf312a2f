"""The native library and its structs are those of this version, as the compiler lays them out."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from qornn.errors import QornnError
from qornn.integer.engine import structs
from qornn.integer.engine.library import library

RUNTIME = Path(__file__).parents[2] / "src" / "qornn" / "runtime"


def test_a_library_of_another_version_is_refused(tmp_path, monkeypatch):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    old = 'const char *qornn_digest(void) { return "%s"; }'
    for body in (old % ("0" * 64), "unsigned qornn_abi(void) { return 7; }", "int nothing;"):
        source, path = tmp_path / "old.c", tmp_path / f"old{len(body)}.so"
        source.write_text(body)
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", path], check=True)
        monkeypatch.setenv("QORNN_RUNTIME_LIBRARY", str(path))
        with pytest.raises(QornnError, match=r"another version.*install again"):
            library.__wrapped__()


def test_the_mirror_of_the_structs_is_as_the_compiler_lays_them_out(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    lines = [f"  P({name}, {field})" for name, fields in structs.declared().items() for field, *_ in fields]
    source = tmp_path / "offsets.c"
    source.write_text(
        '#include <stdio.h>\n#include "host/qornn_host_readout.h"\n#include "qornn_stream.h"\n'
        '#define P(s, f) printf("%s %s %zu %zu %zu\\n", #s, #f, offsetof(s, f), sizeof(((s *)0)->f), sizeof(s));\n'
        "int main(void) {\n" + "\n".join(lines) + "\n  return 0;\n}\n"
    )
    subprocess.run(["gcc", f"-I{RUNTIME}", source, "-o", tmp_path / "offsets"], check=True)
    said = subprocess.run([tmp_path / "offsets"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert {"qornn_input", "qornn_recurrent", "qornn_readout", "qornn_host_model", "qornn_batch"} <= {
        line.split()[0] for line in said
    }
    for line in said:
        name, field, offset, size, whole = line.split()
        mirror = structs.struct(name)
        place = getattr(mirror, field)
        assert (place.offset, place.size, ctypes.sizeof(mirror)) == (int(offset), int(size), int(whole)), line


def test_every_constant_has_the_value_of_the_compiler(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    names = list(structs.constants())
    source = tmp_path / "constants.c"
    source.write_text(
        '#include <stdio.h>\n#include "host/qornn_host.h"\nint main(void) {\n'
        + "".join(f'  printf("%d\\n", (int){name});\n' for name in names)
        + "  return 0;\n}\n"
    )
    subprocess.run(["gcc", f"-I{RUNTIME}", source, "-o", tmp_path / "constants"], check=True)
    said = subprocess.run([tmp_path / "constants"], check=True, capture_output=True, text=True).stdout.split()
    assert list(map(int, said)) == list(structs.constants().values())


def test_another_header_is_another_digest(monkeypatch):
    before, texts = structs.digest(), structs.headers()
    name = next(iter(texts))
    monkeypatch.setattr(structs, "headers", lambda: {**texts, name: texts[name] + b" "})
    assert structs.digest.__wrapped__() != before
