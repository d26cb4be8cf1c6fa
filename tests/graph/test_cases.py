"""Every case of the engine has a test."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.graph.cases import CASES

TESTS = Path(__file__).parents[1]


def marked() -> Iterator[tuple[str, str]]:
    """Yield the id of each mark `case` in the tests, and its place."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        if "mark.case(" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "case":
                place = f"{path.relative_to(TESTS)}:{call.lineno}"
                yield from ((str(ast.literal_eval(each)), place) for each in call.args)


def test_every_case_has_a_test_and_every_mark_a_case() -> None:
    places = dict(marked())
    assert sorted(CASES.keys() - places.keys()) == []
    assert {case: place for case, place in places.items() if case not in CASES} == {}
