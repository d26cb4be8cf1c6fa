"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("kardinal", "kardinal_agent", "kardinal_controller", "kardinal_local", "kardinal_supplychain")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONGEST_MODULE = 600
"""Lines from which on a module is looked at again: has it one idea?"""
SHARED_NAMES = {
    # The two state machines use one word for each of their stages.
    "Facts",
    "Projection",
}
"""Names of classes that stand for the same idea in two rooms."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {module: length for module, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_every_module_says_what_it_is_for() -> None:
    assert [name(path) for path in MODULES if not ast.get_docstring(parsed(path))] == []


def test_nothing_is_left_for_later() -> None:
    left = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b|\bfor now\b")
    assert [name(path) for path in MODULES if left.search(path.read_text())] == []


def test_imported_packages_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {canonical(requirement) for requirement in project["dependencies"]}
    extra = {canonical(requirement) for requirement in project["optional-dependencies"]["catalog"]}
    # One release of pydantic works with exactly one of its core.
    known = {"pydantic-core": "pydantic"}
    distributions = importlib.metadata.packages_distributions()
    for path in MODULES:
        for imported in {found.partition(".")[0] for found in imports(parsed(path))}:
            if imported in sys.stdlib_module_names or imported in PACKAGES:
                continue
            names = {known.get(canonical(found), canonical(found)) for found in distributions[imported]}
            allowed = declared | extra if path.is_relative_to(ROOT / "kardinal/catalog/worker") else declared
            assert names & allowed, f"{name(path)} imports {imported}"


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_every_room_exports_what_it_names() -> None:
    for path in MODULES:
        tree = parsed(path)
        exported = next((exports(node) for node in tree.body if exports(node) is not None), None)
        if exported is None:
            continue
        known = {bound for node in tree.body for bound in bound_names(node)}
        assert set(exported) <= known, f"{name(path)} exports what it does not have: {set(exported) - known}"


def exports(node: ast.stmt) -> list[str] | None:
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
        return [str(value) for value in ast.literal_eval(node.value)]
    return None


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module binds."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return {node.name}
        case ast.Assign():
            return {leaf.id for target in node.targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=bound)):
            return {bound}
        case ast.If() | ast.Try():
            return {
                bound
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt)
                for bound in bound_names(child)
            }
    return set()


@pytest.mark.parametrize(
    ("lock", "groups"),
    [
        ("requirements.txt", []),
        ("requirements-catalog.txt", ["catalog"]),
        ("requirements-dev.txt", ["catalog", "dev", "build"]),
        ("requirements-build.txt", None),
    ],
)
def test_the_lock_holds_every_dependency_with_hashes(lock: str, groups: list[str] | None) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups_and_extras = project["dependency-groups"] | project["project"]["optional-dependencies"]
    wanted = [] if groups is None else list(project["project"]["dependencies"])
    for group in ["build"] if groups is None else groups:
        wanted += [entry for entry in groups_and_extras[group] if isinstance(entry, str)]
    text = (ROOT / lock).read_text()
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==\S+ (?:; .*)?\\\n    --hash=sha256:", text, re.MULTILINE)

    assert {canonical(requirement) for requirement in wanted} <= {canonical(entry) for entry in pinned}
    assert len(pinned) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE)), "an entry has no hash"


def canonical(requirement: str) -> str:
    bare = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert bare is not None
    return re.sub(r"[-_.]+", "-", bare[0]).lower()


def test_make_says_which_python_it_needs(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit\nexit 1\n')
    old.chmod(0o700)
    made = subprocess.run(
        ["make", "--always-make", f"PYTHON={old}", f"VENV={tmp_path}/venv", "lint"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert made.returncode != 0
    assert "kardinal needs Python 3.11 or newer" in made.stderr
    assert "(Python 3.9.2)" in made.stderr
    assert "make PYTHON=python3.13 lint" in made.stderr
    assert not (tmp_path / "venv").exists()


def test_interpreters_are_started_without_the_modules_of_the_current_directory() -> None:
    """A person starts the programs in any directory, such as a clone of others, and `-m` looks there first."""
    started = [
        (name(path), after.value if isinstance(after, ast.Constant) else None)
        for path in MODULES
        if ".executable" in path.read_text()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.List | ast.Tuple)
        for before, after in pairwise(node.elts)
        if isinstance(before, ast.Attribute) and before.attr == "executable"
    ]
    assert len(started) > 1
    assert [path for path, option in started if option not in ("-P", "-I")] == []


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        if name(path).startswith("kardinal_local/plane/"):
            continue
        for node in parsed(path).body:
            # The models of the answers of hosts (`ApiUser`) are named by the host's documentation.
            if isinstance(node, ast.ClassDef) and not node.name.startswith(("_", "Api")):
                places.setdefault(node.name, []).append(name(path))
    twice = {word: where for word, where in places.items() if len(where) > 1 and word not in SHARED_NAMES}
    assert twice == {}, "give each a name that says the difference (docs/design/words.md)"
