"""Printing: tables for people, JSON and YAML for programs. Colour only on a terminal, and never with NO_COLOR.

A row is never cut to the width of the terminal: a name that lost its end is of no use.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

import click
import yaml

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["age", "console", "print_documents", "print_table", "print_value", "span", "state_text", "styled"]

_STATE_STYLES: dict[str, dict[str, Any]] = {
    "Verified": {"fg": "green"},
    "PASS": {"fg": "green"},
    "True": {"fg": "green"},
    "Failed": {"fg": "red"},
    "FAIL": {"fg": "red"},
    "False": {"fg": "red"},
    "SkipDenied": {"fg": "red"},
    "Superseded": {"dim": True},
    "Promoting": {"fg": "yellow"},
    "WaitingForMerge": {"fg": "yellow"},
    "HealthChecking": {"fg": "yellow"},
}
_GAP = "   "


@cache
def console() -> Console:
    """Return what the live view of the demo is drawn on."""
    from rich.console import Console  # noqa: PLC0415 - a tenth of the time of every other command

    return Console(highlight=False, soft_wrap=True)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Aligned columns, or `empty` (what to do when there is nothing) when there are no rows."""
    if not rows:
        click.echo(empty, err=True)
        return
    lines = [tuple(styled(header, bold=True) for header in headers), *_lines(rows)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        click.echo(_GAP.join(padded).rstrip())


def _lines(rows: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
    """Split cells of several lines over as many rows."""
    for row in rows:
        yield from zip_longest(*(cell.splitlines() or [""] for cell in row), fillvalue="")


def _width(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    plain = click.unstyle(text)
    if plain.isascii():
        return len(plain)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in plain)


def styled(text: str, **style: Any) -> str:
    """Return `text` in a style where colours can be seen and are wanted."""
    if not style or not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return click.style(text, **style)


def print_documents(documents: Sequence[Any], output: str) -> None:
    """Return a list of resources, as `kubectl get -o json|yaml` prints one."""
    listing = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    print_value(listing, output)


def print_value(value: Any, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(value, indent=2))
    else:
        click.echo(yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False), nl=False)


def state_text(state: str) -> str:
    """Return a state in its colour."""
    return styled(state, **_STATE_STYLES.get(state, {}))


def age(moment: datetime | None) -> str:
    """How long ago, in the largest unit, as kubectl writes it."""
    return span(datetime.now(UTC) - moment) if moment else ""


def span(duration: timedelta) -> str:
    seconds = max(0, int(duration.total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
