"""Patterns are compared with text of others in time that grows with its length, and no faster."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.pattern_costs import ambiguous

ROOT = Path(__file__).parents[2]
PACKAGES = ("kardinal", "kardinal_agent", "kardinal_controller")
"""Those that see text of others; the local plane is a program of one workstation."""

SEARCHES = {"search", "findall", "finditer", "sub", "subn", "split"}
COMPARISONS = {"match", "fullmatch"}

Used = tuple[str | bytes, int, set[str]]
"""A pattern, its flags and the methods that it is used with."""


def patterns(path: Path) -> Iterator[Used]:
    """Yield the patterns of a module."""
    text = path.read_text()
    tree = ast.parse(text)
    methods = defaultdict[str, set[str]](set)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        methods[node.value.id].add(node.attr)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method), args=[ast.Constant(value), *_]):
                if method in SEARCHES | COMPARISONS and isinstance(value, str | bytes):
                    yield value, 0, {method}
    if "re.compile(" not in text:
        return
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                found = getattr(module, name, None)
                if isinstance(found, re.Pattern):
                    flags = found.flags & ~re.UNICODE if isinstance(found.pattern, bytes) else found.flags
                    yield found.pattern, flags, methods[name] & (SEARCHES | COMPARISONS) or SEARCHES


@pytest.mark.parametrize("package", PACKAGES)
def test_no_pattern_takes_the_square_of_a_text(package: str) -> None:
    slow = [
        f"{path.relative_to(ROOT)}: {pattern!r}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for pattern, flags, methods in patterns(path)
        if ambiguous(pattern, flags, searched=bool(methods & SEARCHES), whole="fullmatch" in methods)
    ]
    assert slow == [], "make a repetition possessive (`*+`), or anchor what is looked for"


@pytest.mark.parametrize(
    "pattern",
    [
        r"\$\{\s*([^{}]*?)\s*\}",
        r"(a+)+b",
        r"(?:fatal|panic): .*memory",
        r"\s*<!-- marker -->",
        r"a+(?:b|c)?a+d",
        r"(?m)^\s*x",
        r"x(?:\d*)*y",
        r"(?i)[a-z]+[A-Z]+1",
    ],
)
def test_patterns_that_take_the_square_are_found(pattern: str) -> None:
    assert ambiguous(pattern, 0, searched=True, whole=False)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\$\{([^{}]*+)\}",
        r"^(?>.*?(?:fatal|panic): ).*memory",
        r"(?<!\s)\s*+<!-- marker -->",
        r"a+ba+",
        r"(?m)^remote: .*$",
        r"[a-z0-9]+(?:[._-][a-z0-9]+)*",
        r"\d+",
    ],
)
def test_patterns_that_do_not_are_let_through(pattern: str) -> None:
    assert not ambiguous(pattern, 0, searched=pattern.startswith(("\\$", "^", "(")), whole=False)
