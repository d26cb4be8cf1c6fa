"""The page on security names tests: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:\w+/)*test_\w+\.py)::(test_\w+)`")


def test_each_attack_of_the_page_is_a_test() -> None:
    named = NAMED.findall((ROOT / "docs/security.md").read_text())
    assert len(named) >= 32
    missing = [f"{file}::{test}" for file, test in named if not re.search(rf"def {test}\(", _path(file).read_text())]
    assert missing == []
    assert len(set(named)) == len(named)


def _path(file: str) -> Path:
    """Return the path of a file of tests; one without a room is among the attacks."""
    return ROOT / "tests" / (file if "/" in file else f"attacks/{file}")
