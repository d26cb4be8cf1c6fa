"""Which of two API versions is the better one: stable before beta before alpha, and of each the later."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["precedence"]

_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES: Final = {None: 0, "beta": 1, "alpha": 2}


def precedence(version: str) -> tuple[int, int, int, str]:
    """A key under which the preferred version comes first; names of another form follow in the alphabet's order."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return (_STAGES[stage], -int(major), -int(minor or 0), version)
