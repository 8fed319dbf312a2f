"""Count what the tests assert, in one tree or in two: python tools/assertions.py OLD [NEW].

Counted by syntax: assert statements, pytest.raises and warns, the assert_* functions of numpy and torch, and
scikit-learn's check_* functions. A parametrized test counts its assertions once.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path

CALLS = ("raises", "warns", "fail")


def kind(node: ast.AST) -> str | None:
    """The name under which this node counts."""
    if isinstance(node, ast.Assert):
        return "assert"
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name.startswith(("assert_", "check_estimator")) or (name in CALLS and isinstance(node.func, ast.Attribute)):
        return name
    return None


def assertions(text: str) -> Counter[str]:
    """The number of each kind in one file."""
    return Counter(found for node in ast.walk(ast.parse(text)) if (found := kind(node)))


def tree(root: Path) -> dict[str, Counter[str]]:
    """The same for every file under tests/."""
    files = sorted((root / "tests").rglob("*.py"))
    return {str(path.relative_to(root)): assertions(path.read_text(encoding="utf-8")) for path in files}


def main() -> None:
    """Print the totals, and with two trees the files that differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path, help="one checkout or two")
    found = [tree(root) for root in parser.parse_args().trees]
    if len(found) == 2:
        for name in sorted(found[0].keys() | found[1].keys()):
            old, new = (sum(counts.get(name, Counter()).values()) for counts in found)
            if old != new:
                print(f"{new - old:+5d}  {old:5d} -> {new:5d}  {name}")
    for counts in found:
        total = sum(counts.values(), Counter())
        print(f"{total.total()} assertions in {len(counts)} files: {dict(total.most_common())}")


if __name__ == "__main__":
    main()
