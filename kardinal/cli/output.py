"""Printing: tables for people, JSON and YAML for programs. Colour only on a terminal, and never with NO_COLOR."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import click
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["age", "console", "print_documents", "print_table", "print_value", "span", "state_text"]

_STATE_STYLES = {
    "Verified": "green",
    "PASS": "green",
    "True": "green",
    "Failed": "red",
    "FAIL": "red",
    "False": "red",
    "SkipDenied": "red",
    "Superseded": "dim",
    "Promoting": "yellow",
    "WaitingForMerge": "yellow",
    "HealthChecking": "yellow",
}
_WIDE = 10_000
"""Columns of a console that is not a terminal: whoever reads the output cuts the lines, not we."""


@cache
def console() -> Console:
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str | Text]], *, empty: str) -> None:
    """Aligned columns, or `empty` (what to do when there is nothing) when there are no rows."""
    if not rows:
        click.echo(empty, err=True)
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for header in headers:
        table.add_column(header, no_wrap=True, overflow="fold")
    for row in rows:
        table.add_row(*row)
    with console().capture() as captured:
        console().print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def print_documents(documents: Sequence[Any], output: str) -> None:
    """Return a list of resources, as `kubectl get -o json|yaml` prints one."""
    listing = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    print_value(listing, output)


def print_value(value: Any, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(value, indent=2))
    else:
        click.echo(yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False), nl=False)


def state_text(state: str) -> Text:
    return Text(state, style=_STATE_STYLES.get(state, ""))


def age(moment: datetime | None) -> str:
    """How long ago, in the largest unit, as kubectl writes it."""
    return span(datetime.now(UTC) - moment) if moment else ""


def span(duration: timedelta) -> str:
    seconds = max(0, int(duration.total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
