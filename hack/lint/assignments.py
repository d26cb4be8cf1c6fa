"""Find assignments of several values to several names on one line: `name, size = entry.name, len(content)`.

Each assignment belongs on its own line, where a reader finds it by its name. Allowed are the exchange of values and the
unpacking of a result: `old, new = new, old`, `head, tail = split(path)`.

    python -m hack.lint.assignments          exits with 1 if it finds a joined assignment
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["joined_assignments", "main"]

_PACKAGES = (
    "kardinal",
    "kardinal_agent",
    "kardinal_controller",
    "kardinal_local",
    "kardinal_supplychain",
    "hack",
    "tests",
)
_FROZEN = ("kardinal_local/plane", "tests/local/plane", "tests/local/contract")
"""Directories that are not checked: the local plane and its suites, which are frozen."""


def joined_assignments(source: str) -> Iterator[int]:
    """Yield the numbers of the lines of `source` that join assignments."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        targets = node.targets[0]
        if not isinstance(targets, ast.Tuple) or any(isinstance(each, ast.Starred) for each in targets.elts):
            continue
        if not _depends(targets.elts, node.value.elts):
            yield node.lineno


def _depends(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    """Return whether a value reads an earlier target, as in the exchange of two values, which needs one statement."""
    return any(
        _places(target) & _places(value) for index, target in enumerate(targets) for value in values[index + 1 :]
    )


def _places(expression: ast.expr) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(expression) if isinstance(node, ast.Name | ast.Attribute)}


def main() -> int:
    """Print each line that joins assignments; return 1 if there is any, else 0."""
    found = 0
    for package in _PACKAGES:
        for path in sorted(Path(package).rglob("*.py")):
            if path.as_posix().startswith(_FROZEN):
                continue
            for line in joined_assignments(path.read_text()):
                found += 1
                print(f"{path}:{line}: write each assignment on a line of its own")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
