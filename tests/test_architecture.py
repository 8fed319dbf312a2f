"""Who may import whom, and what `import qornn` costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import qornn

SOURCE = Path(qornn.__file__).parent
PARTS = {"maps", "quant", "recurrence", "tasks"}
NEVER_TORCH = ("integer", "export", "verify")
# From data to report: estimators do the training, and reproduce's report is where pages and pictures are made.
FIT = {"estimators", "export", "integer", "maps", "reproduce", "tasks", "verify"}


def imports(path):
    """(module, at module level) of every import in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        top = node in tree.body
        if isinstance(node, ast.Import):
            yield from ((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", top) for alias in node.names)


def room(module):
    """qornn.maps.bjorck -> maps"""
    parts = module.split(".")
    return parts[1] if parts[0] == "qornn" and len(parts) > 1 else None


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_rooms_import_only_what_they_may(path):
    here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    shared = {None, here, "_io", "bits", "draws", "errors", "reporting", "structure", "__version__"}
    rooms = {room(module) for module, _ in imports(path)} - shared
    if here in PARTS:
        assert not rooms, f"{here} stands alone"
    if here == "model":
        assert rooms <= {"maps", "quant", "recurrence"}
    if here == "train":
        assert rooms <= {"model", "baselines", "tasks", "recipe", "maps", "quant", "recurrence"}
    if here in NEVER_TORCH:
        assert not any(module.split(".")[0] == "torch" for module, _ in imports(path))
        assert rooms <= {"integer", "export"} - ({"export"} if here == "integer" else set())
    if here == "fit":
        assert rooms <= FIT
    if here not in ("cli", "__main__"):
        assert not {"cli", "fit"} & rooms


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("what", ["qornn", "qornn.cli", "qornn.recipe", "qornn.tasks", "qornn.integer.size"])
def test_these_do_not_import_torch(what):
    heavy = {"torch", "sklearn", "matplotlib"}
    loaded = run_python(f"import sys, {what}; print(*[m for m in sys.modules if '.' not in m])")
    assert not heavy & set(loaded)


@pytest.mark.slow
def test_the_training_room_is_also_the_function():
    """`qornn.train(...)` is public, and importing the room by its own name must not hide it."""
    got = run_python("import qornn.train.loop, qornn; print(callable(qornn.train), qornn.train.Trainer.__name__)")
    assert got == ["True", "Trainer"]


def test_public_names_are_there():
    for name in qornn.__all__:
        assert getattr(qornn, name) is not None
        assert name in dir(qornn)
    with pytest.raises(AttributeError, match="nothing_like_this"):
        qornn.nothing_like_this  # noqa: B018


def test_nothing_loads_pickles():
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "torch.load(" not in text
        assert "pickle.load" not in text
        assert "allow_pickle=True" not in text
