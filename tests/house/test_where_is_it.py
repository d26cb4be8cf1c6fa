"""The table "Where is it?" of the architecture page leads a newcomer to the right file."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
HEADING = "## Where is it?"
QUESTIONS = 27

_ROW = re.compile(r"\| (?P<question>[^|]+) \| `(?P<path>[^`|]+)` \| `(?P<text>[^`|]+)` \|")


class Row(NamedTuple):
    """One question; `text` stands in the file at `path`."""

    question: str
    path: str
    text: str


def rows() -> list[Row]:
    """Return the rows of the table, without its two lines of head."""
    section = PAGE.read_text().partition(f"\n{HEADING}\n")[2].splitlines()
    lines = [line for line in takewhile(lambda line: not line.startswith("## "), section) if line.startswith("|")]
    matches = [_ROW.fullmatch(line) for line in lines[2:]]
    assert all(matches), f"a row is not a question, one path and one text: {lines[2:]}"
    return [Row(*match.groups()) for match in matches if match]


def test_each_of_the_questions_has_one_answer() -> None:
    assert len({row.question for row in rows()}) == len(rows()) == QUESTIONS


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.question)
def test_the_answer_is_there(row: Row) -> None:
    path = ROOT / row.path
    assert path.is_file(), f"{row.path} does not exist"
    assert row.text in path.read_text(), f"{row.path} does not hold {row.text}"
