"""The folder as a library of Arduino, PlatformIO, ESP-IDF, Zephyr and CMake: its files, and what they compile."""

import json
import re
import shutil

import pytest
from c_programs import STRICT, make, needs_gcc
from c_structured import CASES as STRUCTURED
from c_structured import structured
from calling import called
from stacks import make_stack

from qornn import export
from qornn.export.c99 import library
from qornn.verify import build

CMAKE = shutil.which("cmake")
ARM = shutil.which("arm-none-eabi-gcc")
needs_cmake = pytest.mark.skipif(CMAKE is None, reason="cmake is not installed")
# The specification of the Arduino library format, revision 2.2.
CATEGORIES = (
    """Display|Communication|Signal Input/Output|Sensors|Device Control|Timing|Data Storage|Data Processing|Other"""
)
PROPERTIES = ("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures")
VERSION = r"\d+\.\d+\.\d+"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return export.c(make(n_h=5, integer=True), tmp_path_factory.mktemp("library") / "net", name="net", vector_steps=3)


def test_the_folder_has_these_files_and_no_others(folder):
    wanted = """
        CMakeLists.txt Makefile README.md idf_component.yml keywords.txt library.json library.properties net.qornn
        examples/net/net.ino src/net.h src/net/net.c src/net/qornn.c src/net/qornn.h test/net_vectors.h
        test/test_main.c zephyr/CMakeLists.txt zephyr/Kconfig zephyr/module.yml"""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == set(wanted.split())


def test_library_properties_are_as_the_arduino_specification_asks(folder):
    lines = (folder / "library.properties").read_text().splitlines()
    fields = dict(line.split("=", 1) for line in lines)
    assert len(fields) == len(lines)
    assert set(PROPERTIES) <= fields.keys()
    assert all(fields[name].strip() for name in PROPERTIES)
    assert re.fullmatch(r"[A-Za-z0-9][\w .-]{0,62}", fields["name"])
    assert re.fullmatch(VERSION, fields["version"])
    assert fields["category"] in CATEGORIES.split("|")
    assert re.fullmatch(r"https?://\S+", fields["url"])
    assert fields["architectures"] == "*"
    assert [(folder / "src" / name).is_file() for name in fields["includes"].split(",")] == [True]
    assert (folder / "examples" / "net" / "net.ino").is_file()  # a sketch has the name of its folder
    assert not list(folder.glob("*.[ch]"))  # beside src they would not be compiled


def test_keywords_are_words_of_the_header_separated_by_one_tab(folder):
    header = (folder / "src" / "net.h").read_text()
    lines = [line for line in (folder / "keywords.txt").read_text().splitlines() if line and not line.startswith("#")]
    words = dict(line.split("\t") for line in lines)
    assert set(words.values()) == {"KEYWORD1", "KEYWORD2", "LITERAL1"}
    assert all(re.search(rf"\b{word}\b", header) for word in words)
    assert {"net_init", "net_step", "net_predict", "net_classify", "net_checksum"} == {
        word for word, kind in words.items() if kind == "KEYWORD2"
    }
    assert {"net_FLASH_BYTES", "net_RAM_BYTES", "net_STEPS_MAX"} <= words.keys()


def test_library_json_is_as_platformio_asks(folder):
    manifest = json.loads((folder / "library.json").read_text())
    assert {"name", "version", "description", "keywords", "license", "frameworks", "platforms"} <= manifest.keys()
    assert len(manifest["name"]) <= 50
    assert re.fullmatch(VERSION, manifest["version"])
    assert len(manifest["description"]) <= 255
    source = folder / manifest["build"]["srcDir"]
    chosen = re.fullmatch(r"\+<(\S+)>", manifest["build"]["srcFilter"])[1]
    assert sorted(source.glob(chosen)) == sorted(source.rglob("*.c"))
    assert (folder / manifest["build"]["includeDir"] / manifest["headers"]).is_file()
    assert all((folder / one["base"] / file).is_file() for one in manifest["examples"] for file in one["files"])


def test_manifests_of_esp_idf_and_zephyr(folder):
    component = dict(re.findall(r"^(\w+): \"?(.*?)\"?$", (folder / "idf_component.yml").read_text(), re.MULTILINE))
    assert re.fullmatch(VERSION, component["version"])
    assert component["description"]
    module = (folder / "zephyr" / "module.yml").read_text()
    assert module == "name: net\nbuild:\n  cmake: zephyr\n  kconfig: zephyr/Kconfig\n"
    options = re.findall(r"^config (\w+)\n\tbool \"", (folder / "zephyr" / "Kconfig").read_text(), re.MULTILINE)
    assert options == ["QORNN_NET"]


@pytest.mark.slow
@needs_cmake
def test_cmake_builds_tests_installs_and_is_found_again(folder, tmp_path):
    called(CMAKE, "-S", folder, "-B", tmp_path / "build", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'place'}")
    called(CMAKE, "--build", tmp_path / "build")
    assert "exact steps=38" in called("ctest", "--test-dir", tmp_path / "build", "-V")
    called(CMAKE, "--install", tmp_path / "build")
    user = tmp_path / "user"
    user.mkdir()
    (user / "main.c").write_text('#include "net.h"\nint main(void) { net_state s; net_init(&s); return 0; }\n')
    (user / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.14)\nproject(user C)\nfind_package(net {library.version()} REQUIRED)\n"
        "add_executable(user main.c)\ntarget_link_libraries(user net::net)\n"
    )
    called(CMAKE, "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'place'}")
    called(CMAKE, "--build", user / "build")
    called(user / "build" / "user")


ESP = """
set(ESP_PLATFORM 1)
function(idf_component_register)
  cmake_parse_arguments(PARSE_ARGV 0 asked "" "" "SRCS;INCLUDE_DIRS")
  message("SRCS ${asked_SRCS}")
  message("INCLUDE_DIRS ${asked_INCLUDE_DIRS}")
endfunction()
include(${FOLDER}/CMakeLists.txt)
"""
ZEPHYR = """
set(CONFIG_QORNN_NET ${WANTED})
function(zephyr_library)
endfunction()
function(zephyr_library_sources)
  message("SRCS ${ARGN}")
endfunction()
function(zephyr_include_directories)
  message("INCLUDE_DIRS ${ARGN}")
endfunction()
include(${FOLDER}/zephyr/CMakeLists.txt)
"""


def asked_for(script, folder, tmp_path, **variables):
    """What a CMakeLists.txt registers with a build system that only listens."""
    (tmp_path / "listen.cmake").write_text(script)
    words = [f"-D{key}={value}" for key, value in {"FOLDER": folder, **variables}.items()]
    return dict(line.split(" ", 1) for line in called(CMAKE, *words, "-P", tmp_path / "listen.cmake").splitlines())


@needs_cmake
@pytest.mark.parametrize(
    ("script", "place", "options"),
    [
        (ESP, "", ("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+c")),  # an ESP32-C3
        (ZEPHYR, "zephyr", ("-target", "thumb-freestanding-eabi", "-mcpu=cortex_m0")),
    ],
    ids=["esp-idf", "zephyr"],
)
def test_what_esp_idf_and_zephyr_are_given_compiles_without_a_system(folder, tmp_path, script, place, options):
    pytest.importorskip("ziglang", reason="pip install 'qornn[mcu]'")
    asked = asked_for(script, folder, tmp_path, WANTED="y")
    sources = [(folder / place / name).resolve() for name in asked["SRCS"].split(";")]
    assert {path.relative_to(folder).as_posix() for path in sources} == {"src/net/net.c", "src/net/qornn.c"}
    include = (folder / place / asked["INCLUDE_DIRS"]).resolve()
    assert include == folder / "src"
    (tmp_path / "main.c").write_text('#include "net.h"\nint main(void) { return net_N_O; }\n')
    compiler = [*build.cross_compiler("rv32"), *options, *STRICT, "-O2", "-ffreestanding", f"-I{include}"]
    for source in [*sources, tmp_path / "main.c"]:
        called(*compiler, "-c", source, "-o", tmp_path / "out.o")
    if script == ZEPHYR:
        assert asked_for(script, folder, tmp_path, WANTED="n") == {}


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        (lambda: make(n_h=5, integer=True), "transform|rotations|mix_layer|hadamard|float"),
        (lambda: structured(*STRUCTURED[0][:2], **STRUCTURED[0][2]), "rotations|mix_layer|plane8|qornn_packed"),
        (
            lambda: make_stack(7, bits=4, width=6, pairs=5, channels=2, window=2, n_o=3),
            "transform|hadamard|qornn_dense|readout_float|qornn_next_paper",
        ),
    ],
    ids=["dense", "structured", "stacked"],
)
def test_only_functions_that_the_network_uses_are_there(tmp_path, program, absent):
    out = export.c(program(), tmp_path / "out", name="net", vector_steps=1)
    text = "".join((out / "src" / "net" / name).read_text() for name in ("qornn.h", "qornn.c"))
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert not re.findall(rf"^(?!typedef|enum|#).*\b\w*(?:{absent})\w*\(", code, re.MULTILINE | re.IGNORECASE)
    defined = re.findall(r"^(?:QORNN_INLINE|QORNN_RARE|void) [^;{}]*?\b(qornn_\w+)\([^;{}]*\) \{", code, re.MULTILINE)
    model = (out / "src" / "net" / "net.c").read_text()
    assert len(defined) > 5
    for name in defined:
        assert len(re.findall(rf"\b{name}\b", code + model)) > defined.count(name)


@needs_gcc
def test_every_symbol_of_the_runtime_has_the_name_of_the_model(folder, tmp_path):
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    called("gcc", "-O0", "-c", folder / "src" / "net" / "qornn.c", "-o", tmp_path / "qornn.o")
    symbols = called("nm", "-g", "--defined-only", tmp_path / "qornn.o").split()[2::3]
    assert symbols
    assert all(symbol.lstrip("_").startswith("net_") for symbol in symbols)


@pytest.mark.skipif(ARM is None, reason="arm-none-eabi-gcc is not installed")
@pytest.mark.parametrize(
    ("core", "level", "program"),
    [
        ("cortex-m0", "-Os", lambda: structured("hadamard", "shift", n_h=32)),  # Zephyr and Arduino compile for size
        ("cortex-m0", "-O2", lambda: structured("hadamard", "shift", n_h=32)),
        ("cortex-m4", "-O2", lambda: make_stack(7, bits=4, width=16, pairs=16, channels=1, window=4, n_o=2)),
        ("cortex-m4", "-O3", lambda: make_stack(7, bits=4, width=16, pairs=16, channels=1, window=4, n_o=2)),
    ],
)
def test_gcc_for_arm_compiles_it_without_a_word(tmp_path, core, level, program):
    out = export.c(program(), tmp_path / "out", name="net", vector_steps=1)
    words = (ARM, f"-mcpu={core}", "-mthumb", level, *STRICT, "-ffreestanding", f"-I{out / 'src'}")
    for name in ("net.c", "qornn.c"):
        assert not called(*words, "-c", out / "src" / "net" / name, "-o", tmp_path / "out.o")


@needs_gcc
@pytest.mark.parametrize("parts", [{"integer": True}, {"codes": True, "n_i": 5}])
def test_the_lines_of_its_readme_are_c(tmp_path, parts):
    out = export.c(make(**parts), tmp_path / "out", name="net", vector_steps=1)
    shown = re.search(r"```c\n(#include [^\n]*\n)(.*?)```", (out / "README.md").read_text(), re.DOTALL)
    (tmp_path / "main.c").write_text(f"{shown[1]}int main(void) {{\n{shown[2]}return 0;\n}}\n")
    assert not called("gcc", "-std=c99", "-Wall", "-fsyntax-only", f"-I{out / 'src'}", tmp_path / "main.c")
