"""Windows and macOS: nothing that only POSIX has without a way around it, and native code that compiles for them.

Neither system is at hand. Python is run with what Windows lacks taken away; the libraries are compiled and linked by
zig, and not run.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qornn._io.zig import zig

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "qornn"

# What Python on Windows does not have.
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "mmap": {"MADV_HUGEPAGE", "MAP_ANONYMOUS", "MAP_PRIVATE", "PROT_READ", "PROT_WRITE"},
    "os": {
        *("chown", "chroot", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getloadavg"),
        *("getpgid", "getuid", "initgroups", "killpg", "lchown", "mkfifo", "mknod", "nice", "openpty", "posix_spawn"),
        *("pread", "pwrite", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "setpgid", "setpriority"),
        *("setsid", "setuid", "sysconf", "uname", "wait", "wait3", "wait4", "waitid", "WTERMSIG", "O_CLOEXEC"),
        *("O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY"),
    },
    "signal": {
        *("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGUSR1", "SIGUSR2"),
        *("ITIMER_REAL", "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer", "sigwait"),
    },
    "time": {"tzset"},
}
# Where they are used, each with a way around it.
GUARDED = {
    ("_io/files.py", "chown"),  # hasattr
    ("_io/flock.py", "fcntl"),  # msvcrt on Windows, else no locks
    ("bench/infer.py", "sched_getaffinity"),  # hasattr
    ("recurrence/pool.py", "MAP_ANONYMOUS"),  # hasattr
    ("recurrence/pool.py", "MAP_PRIVATE"),
    ("recurrence/pool.py", "MADV_HUGEPAGE"),
    ("reproduce/cells.py", "ITIMER_REAL"),  # hasattr
    ("reproduce/cells.py", "SIGALRM"),
    ("reproduce/cells.py", "setitimer"),
    ("train/build.py", "sysconf"),  # AttributeError
    ("train/run.py", "resource"),  # ImportError
}


def posix_only(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from MODULES.intersection(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            yield from MODULES.intersection([node.module]) | names & NAMES.get(node.module, set())
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from {node.attr} & NAMES.get(node.value.id, set())


def test_names_that_only_posix_has_are_found():
    text = "import fcntl, os\nfrom signal import SIGKILL\nos.fork()\nos.getpid()\nself.fork()"
    assert sorted(posix_only(text)) == ["SIGKILL", "fcntl", "fork"]


def test_what_only_posix_has_is_used_where_there_is_a_way_around_it():
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = {(name, used) for name, text in texts.items() for used in posix_only(text)}
    assert found == GUARDED


WITHOUT = """
import builtins, importlib, json, sys
import numpy, torch, sklearn, sklearn.datasets  # they know Windows; here they would look for what is taken away
import subprocess, tempfile, multiprocessing, asyncio, pathlib
modules, names = set(json.loads(sys.argv[1])), json.loads(sys.argv[2])
real = builtins.__import__

def without(name, scope=None, *rest, **named):
    if name in modules and (scope or {}).get("__name__", "").startswith("qornn"):
        raise ImportError(name)
    return real(name, scope, *rest, **named)

builtins.__import__ = without
for module, gone in names.items():
    for name in gone:
        vars(importlib.import_module(module)).pop(name, None)
from qornn.cli import main

for words in json.loads(sys.argv[3]):
    sys.argv = ["qornn", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def test_the_commands_run_without_what_only_posix_has(tmp_path):
    """Training, its estimate, evaluation, lowering, export and size, with files written and locked."""
    tiny = [f"--set={setting}" for setting in ("train.steps=2", "train.batch=8", "model.n_h=8")]
    commands = [
        ["train", "digits", "--dry-run", "--json", *tiny],
        ["train", "digits", "--out", "run", *tiny],
        ["eval", "run"],
        ["lower", "run", "-o", "net.qornn"],
        ["export", "net.qornn", "--to", "c", "-o", "net_c", "--name", "net"],
        ["size", "net.qornn"],
        ["eval", "zoo:digits-k4"],
    ]
    names = {module: sorted(gone) for module, gone in NAMES.items()}
    env = {**os.environ, "USERNAME": "someone"}  # as on Windows; torch asks who it is
    words = [sys.executable, "-c", WITHOUT, *map(json.dumps, (sorted(MODULES), names, commands))]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout[: done.stdout.index("}") + 1])["peak_memory_bytes"] is None  # not told on Windows
    assert (tmp_path / "net_c" / "README.md").is_file()


TARGETS = {
    "x86_64-windows-gnu": ("Windows", "x86_64", ".dll", b"MZ"),
    "aarch64-macos": ("Darwin", "arm64", ".dylib", b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01"),
    "x86_64-macos": ("Darwin", "x86_64", ".dylib", b"\xcf\xfa\xed\xfe\x07\x00\x00\x01"),
}


@pytest.mark.full
@pytest.mark.parametrize("target", TARGETS)
def test_the_native_libraries_are_built_for_other_systems(target, tmp_path):
    """By the same CMakeLists.txt as everywhere. The first time, zig compiles its C++ library too: minutes."""
    cmake, path = shutil.which("cmake"), zig()
    if cmake is None or path is None or shutil.which("ninja") is None:
        pytest.skip("cmake, ninja and ziglang are needed")
    system, processor, ending, magic = TARGETS[target]
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_SYSTEM_NAME": system,
        "CMAKE_SYSTEM_PROCESSOR": processor,
        "CMAKE_C_COMPILER": f"{path};cc;-target;{target}",
        "CMAKE_CXX_COMPILER": f"{path};c++;-target;{target}",
        "CMAKE_INSTALL_NAME_TOOL": shutil.which("true"),  # of Apple's tools, and needed to install only
        "CMAKE_OSX_SYSROOT": "",  # zig brings its own
    }
    words = [f"-D{name}={value}" for name, value in options.items()]
    run(cmake, "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-Wno-dev", *words)
    run(cmake, "--build", tmp_path)
    for room, name in (("runtime", b"qornn_run"), ("recurrence", b"qornn_backward")):
        library = (tmp_path / f"libqornn_{room}{ending}").read_bytes()
        assert library.startswith(magic)
        assert name in library


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, encoding="utf-8", timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
