"""A transcript of a page, and whether a run of its commands printed that.

What differs from run to run (times, ages, hashes, the day of a gate, numbers that are measured) is compared as if it
were the same. `…` stands for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["differences", "transcript"]

_VOLATILE = (
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"-\d{10}\b"), "-SECOND"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "COMMIT"),
    (re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun)day", re.IGNORECASE), "DAY"),
    (re.compile(r"\b\d+(s|m) old\b"), "AGE old"),
    (re.compile(r"= \d+(\.\d+)?"), "= NUMBER"),
    # Columns are as wide as the name of the day.
    (re.compile(r"(?<=\S) {2,}"), "  "),
)
_LEFT_OUT = "…"


def transcript(page: Path) -> dict[str, list[str]]:
    """Return the commands of a page's transcript in their order, each with the lines that it printed."""
    block = page.read_text().partition("\n## Transcript\n")[2].partition("```console\n")[2].partition("\n```")[0]
    found: dict[str, list[str]] = {}
    for line in block.splitlines():
        if line.startswith("$ "):
            found[line.removeprefix("$ ")] = lines = []
        else:
            lines.append(line)
    return found


def differences(wanted: Mapping[str, list[str]], printed: Mapping[str, str]) -> list[str]:
    """Return what a page shows and a run did not print; empty where they agree."""
    if list(wanted) != list(printed):
        return [f"the commands are {list(wanted)}, and {list(printed)} were typed"]
    return [
        f"{command}: {missing!r} is not in\n{printed[command]}"
        for command in wanted
        if (missing := _first_missing(wanted[command], printed[command].splitlines())) is not None
    ]


def _first_missing(wanted: list[str], printed: list[str]) -> str | None:
    """Return the first line of a page that is not where it should be."""
    lines = [_steady(line) for line in printed]
    at = 0
    anywhere = False
    for line in wanted:
        if line == _LEFT_OUT:
            anywhere = True
            continue
        there = [index for index in range(at, len(lines)) if lines[index] == _steady(line)]
        if not there or (there[0] != at and not anywhere):
            return line
        at = there[0] + 1
        anywhere = False
    if at < len(lines) and not anywhere:
        return f"{_LEFT_OUT}, after which it goes on with {printed[at]!r},"
    return None


def _steady(line: str) -> str:
    for pattern, name in _VOLATILE:
        line = pattern.sub(name, line)
    return line.rstrip()
