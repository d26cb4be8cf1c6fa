"""Docstrings, comments and names of tests use the terms of Kubernetes and Python, without a key to read them by."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("kardinal", "kardinal_agent", "kardinal_controller", "kardinal_local", "kardinal_supplychain", "tests", "hack")
FROZEN = ("kardinal_local/plane", "tests/local/plane", "tests/local/contract")
"""The API server of the local plane and its suites get fixes only, and are left as they are."""

OPENINGS = ("What", "Who", "Where")
"""First words of a docstring that announce a subject instead of saying what the code does."""

NOT_IMPERATIVE = ("Whether",)
"""First words of a docstring of a module, class or function; a field may be described by them."""

NO_SUBJECT = ("what", "who", "where", "why", "how", "when", "that", "if", "of", "in", "on", "at", "it")
"""First words of the name of a test that do not say what it is about."""

LONGEST_NAME = 90

METAPHORS = ("somebody", "whoever", "nobody", "weather", "voice", "nerves", "hands")

_OPENING = re.compile(rf"""["']\s*(?:{"|".join(OPENINGS + NOT_IMPERATIVE)})\b""")
_TEST_NAME = re.compile(rf"\bdef (test_(?:{'|'.join(NO_SUBJECT)})_\w+|test_\w{{{LONGEST_NAME - 4},}})")
_METAPHOR = re.compile(rf"\b(?:{'|'.join(METAPHORS)})\b", re.IGNORECASE)


def complaints(source: str) -> list[tuple[int, str]]:
    """Return (line, what to change) for each docstring, comment and test name, by line."""
    said = source.replace("_", " ")
    if not _OPENING.search(source) and not _TEST_NAME.search(source) and not _METAPHOR.search(said):
        return []  # No such word is anywhere, which most modules are told by in a hundredth of the time.
    tree = ast.parse(source)
    return sorted({*_of_docstrings(tree), *_of_comments(source), *_of_test_names(tree)})


def _of_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, documented) and node.body}
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                opening = next(iter(text.split()), "")
                if opening in OPENINGS or (opening in NOT_IMPERATIVE and id(node) in first):
                    yield line, f"opens with {opening!r}"
                yield from _metaphors(text, line)


def _of_comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _metaphors(token.string, token.start[0])


def _of_test_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield from _metaphors(node.name.replace("_", " "), node.lineno)
            if (opening := node.name.split("_")[1]) in NO_SUBJECT:
                yield node.lineno, f"name begins with {opening!r}"
            if len(node.name) > LONGEST_NAME:
                yield node.lineno, f"name has {len(node.name)} characters, and {LONGEST_NAME} are allowed"


def _metaphors(text: str, line: int) -> Iterator[tuple[int, str]]:
    for index, content in enumerate(text.splitlines()):
        for found in _METAPHOR.finditer(content):
            yield line + index, f"says {found[0]!r}"


def test_docstrings_comments_and_test_names_are_plain() -> None:
    modules = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    names = {path: path.relative_to(ROOT).as_posix() for path in modules}
    found = [
        f"{names[path]}:{line}: {complaint}"
        for path in modules
        if not names[path].startswith(tuple(f"{room}/" for room in FROZEN))
        for line, complaint in complaints(path.read_text())
    ]
    assert not found, f"{len(found)} places need a plainer word:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""What is read."""', [(1, "opens with 'What'")]),
        ('def f():\n    """Whether it is read."""', [(2, "opens with 'Whether'")]),
        ('class C:\n    a: int\n    """Who reads it."""', [(3, "opens with 'Who'")]),
        ("x = 1  # Nobody reads it", [(1, "says 'Nobody'")]),
        ('"""Read.\n\nIn good hands, and whoever asks.\n"""', [(3, "says 'hands'"), (3, "says 'whoever'")]),
        ("def test_nobody_reads(): ...", [(1, "says 'nobody'")]),
        ("async def test_a_voice(): ...", [(1, "says 'voice'")]),
        ("def test_what_is_read(): ...", [(1, "name begins with 'what'")]),
        (f"def test_{'x' * 86}(): ...", [(1, "name has 91 characters, and 90 are allowed")]),
    ],
)
def test_each_kind_of_complaint_is_found(source: str, found: list[tuple[int, str]]) -> None:
    assert complaints(source) == found


@pytest.mark.parametrize(
    "source",
    [
        'class C:\n    a: bool\n    """Whether it is read."""',
        '"""Return whether it is read, and what was."""',
        'x = "What nobody reads is no docstring"',
        '"""A handshake, and a handsome voicemail."""',
        "def nobody(): ...",
        "def test_whatever_is_read(): ...",
        f"def test_{'x' * 85}(): ...",
    ],
)
def test_the_rest_is_let_through(source: str) -> None:
    assert complaints(source) == []
