"""Who may import whom, and what `import qornn` costs."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import qornn

SOURCE = Path(qornn.__file__).parent
ROOT_MODULES = 6
LEAVES = {"_io", "bits", "draws", "errors", "structure"}  # what everybody may import
NEVER_TORCH = ("integer", "export", "verify")
MAY_IMPORT = {  # beside the leaves; a room that is not here may import no other
    "baselines": {"quant"},
    "model": {"maps", "quant", "recurrence"},
    "recipe": {"tasks"},
    "train": {"baselines", "integer", "maps", "model", "quant", "recipe", "recurrence", "reporting", "tasks"},
    "export": {"integer", "tasks"},  # a task says how its inputs are drawn
    "verify": {"export", "integer"},
    "lowering": {"integer", "model", "quant", "tasks", "train"},
    "demo": {"export", "integer", "lowering", "recipe", "train", "verify"},
    "zoo": {"integer", "train"},  # opening: a run, or a program
    "estimators": {"export", "integer", "lowering", "maps", "model", "recipe", "recurrence", "tasks", "train"},
    "fit": {"estimators", "export", "integer", "maps", "reporting", "tasks", "verify"},
    "reproduce": {"integer", "lowering", "maps", "model", "quant", "recipe", "reporting", "tasks", "train"},
}
USERS = ("bench", "cli", "__main__", "__init__")  # they may import every room
LAZY = {"qornn.integer.program"}  # its methods call what is made of it


def module_of(path):
    """.../maps/bjorck.py -> qornn.maps.bjorck"""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(["qornn", *(part for part in parts if part != "__init__")])


FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
MODULES = {module_of(path): path for path in FILES}


def running(tree, *, lazily):
    """The nodes of a file but for what is for type checkers alone; `lazily`: those in functions too."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        elif lazily or not isinstance(node, ast.FunctionDef):
            waiting += ast.iter_child_nodes(node)


def imported(nodes):
    """(module, name) of every import; name is None for `import module`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def targets(nodes):
    """The modules of the package that these import."""
    for module, name in imported(nodes):
        inner = f"{module}.{name}"
        yield from (inner if inner in MODULES else module,) if {inner, module} & MODULES.keys() else ()


def room(module):
    """qornn.maps.bjorck -> maps"""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def cycle(graph):
    """One cycle of the graph, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_rooms_import_only_what_they_may(path):
    here = room(module_of(path))
    nodes = list(ast.walk(TREES[path]))
    rooms = {room(module) for module in targets(nodes)} - {here, "__init__"}
    if here == "_io":
        assert rooms <= {"errors"}
    elif here not in USERS:
        assert rooms - LEAVES <= MAY_IMPORT.get(here, set())
    if here in NEVER_TORCH:
        assert not any(module.split(".")[0] == "torch" for module, _ in imported(nodes))
    if here not in ("cli", "__main__"):
        assert "cli" not in rooms


def test_few_modules_stand_at_the_root():
    assert len(list(SOURCE.glob("*.py"))) <= ROOT_MODULES


def test_no_modules_import_each_other():
    graph = {}
    for path, tree in TREES.items():
        here = module_of(path)
        nodes = running(tree, lazily=here not in LAZY)
        graph[here] = set(targets(nodes)) - {here}
    assert cycle(graph) is None


def test_no_rooms_import_each_other():
    graph = {}
    for path, tree in TREES.items():
        here = room(module_of(path))
        graph.setdefault(here, set()).update(room(module) for module in targets(ast.walk(tree)))
    rooms = {here: others - {here, "__init__"} for here, others in graph.items() if here != "__init__"}
    assert cycle(rooms) is None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_private_names_stay_in_their_module(path):
    """Neither `from module import _name` nor `module._name`."""
    nodes = list(ast.walk(TREES[path]))
    own = {name for module, name in imported(nodes) if name and f"{module}.{name}" in MODULES}
    taken = {f"{module}.{name}" for module, name in imported(nodes) if module in MODULES and is_private(name or "")}
    taken |= {
        f"{node.value.id}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in own
        if is_private(node.attr)
    }
    assert not taken - MODULES.keys()


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def test_no_module_is_callable_but_the_training_room():
    def swaps_its_class(node):
        assigned = node.targets if isinstance(node, ast.Assign) else []
        return any(isinstance(target, ast.Attribute) and target.attr == "__class__" for target in assigned)

    found = [module_of(path) for path, tree in TREES.items() if any(map(swaps_its_class, ast.walk(tree)))]
    assert found == ["qornn.train"]


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


LIGHT = ("qornn", "qornn.cli", "qornn.recipe", "qornn.tasks", "qornn.integer.size", "qornn.export.c99", "qornn.verify")


@pytest.mark.parametrize("what", LIGHT)
def test_these_do_not_import_torch(what):
    heavy = {"torch", "sklearn", "matplotlib"}
    loaded = run_python(f"import sys, {what}; print(*[m for m in sys.modules if '.' not in m])")
    assert not heavy & set(loaded)


@pytest.mark.slow
def test_the_training_room_is_also_the_function():
    """`qornn.train(...)` is public, and importing the room by its own name must not hide it."""
    got = run_python("import qornn.train.loop, qornn; print(callable(qornn.train), qornn.train.Trainer.__name__)")
    assert got == ["True", "Trainer"]


def test_public_functions_are_functions_whatever_was_imported():
    rooms = "qornn.lowering.lower, qornn.lowering.calibrate, qornn.zoo.opening, qornn.cli.lower, qornn"
    got = run_python(f"import {rooms}; print(*(type(f).__name__ for f in (qornn.lower, qornn.calibrate, qornn.load)))")
    assert got == ["function"] * 3


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
