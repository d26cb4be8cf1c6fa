"""The page on expressions: each example has the result beside it, and no function is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kardinal import cel
from kardinal.cel.syntax import Comprehension

PAGE = Path(__file__).parents[2] / "docs" / "cel.md"
ROW = re.compile(r"^\| `(.+?)` \| `(.+?)` \|", re.MULTILINE)
EXAMPLES = ROW.findall(PAGE.read_text(encoding="utf-8"))
NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def called(node: cel.Node) -> Iterator[str]:
    match node:
        case cel.Call(function=name) | Comprehension(macro=name):
            yield name
    for child in cel.children(node):
        yield from called(child)


@pytest.mark.parametrize(("source", "result"), EXAMPLES)
def test_an_example_has_the_result_beside_it(source: str, result: str) -> None:
    outcome = cel.compile(source).evaluate({}, now=NOW)
    assert outcome == cel.compile(result).evaluate({}, now=NOW)
    assert isinstance(outcome, cel.Value)


def test_every_function_and_macro_has_an_example() -> None:
    shown = {name for source, _ in EXAMPLES for name in called(cel.lower(source))}
    assert set(cel.FUNCTIONS) | set(cel.STANDARD.macros) == shown
