"""The page on security names tests: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def test_each_attack_of_the_page_is_a_test() -> None:
    named = NAMED.findall((ROOT / "docs/security.md").read_text())
    assert len(named) >= 32
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not re.search(rf"def {test}\(", (ROOT / "tests/attacks" / file).read_text())
    ]
    assert missing == []
    assert len(set(named)) == len(named)
