"""Print tables for people, and JSON and YAML for programs. Colours are used only on a terminal without NO_COLOR.

Commands print everything by `say`, which escapes control characters. On a terminal, a table is wrapped to its width
(`kardinal.cli.table`); elsewhere each row is one line, for programs that read lines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any

import click

from kardinal.cli.styles import for_terminal, mark_style, visible
from kardinal.cli.table import laid_out, text_width, wrapped
from kardinal.objects.text import escaped

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "age",
    "console",
    "one_line",
    "plain_text",
    "print_documents",
    "print_table",
    "print_value",
    "say",
    "say_labelled",
    "span",
    "state_text",
    "styled",
    "width",
    "without_managed_fields",
]

_STATE_STYLES: dict[str, dict[str, Any]] = {
    "Verified": {"fg": "green"},
    "PASS": {"fg": "green"},
    "True": {"fg": "green"},
    "Degraded": {"fg": "red"},
    "CannotBeSeen": {"fg": "yellow"},
    "Failed": {"fg": "red"},
    "FAIL": {"fg": "red"},
    "False": {"fg": "red"},
    "SkipDenied": {"fg": "red"},
    "Superseded": {"dim": True},
    "Promoting": {"fg": "yellow"},
    "WaitingForMerge": {"fg": "yellow"},
    "HealthChecking": {"fg": "yellow"},
    "PENDING": {"fg": "yellow"},
    "Waiting": {"fg": "yellow"},
    "Blocked": {"fg": "red"},
    "Skipped": {"dim": True},
    "NotTargeted": {"dim": True},
    "NotReached": {"dim": True},
}


@cache
def console() -> Console:
    """Return the rich console that live views are drawn on."""
    from rich.console import Console  # noqa: PLC0415 - a tenth of the time of every other command

    return Console(highlight=False, soft_wrap=True)


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str, prose: Collection[str] = ()
) -> None:
    """Print a table with aligned columns; without rows, print `empty` on standard error.

    `empty` tells the user what to do, for example how to create the first Bundle. `prose` names the columns whose text
    may be wrapped on a narrow terminal; defaults to none.
    """
    if not rows:
        say(empty, err=True)
        return
    titles = [styled(header, bold=True) for header in headers]
    cells = [list(map(visible, row)) for row in rows]
    for line in laid_out(titles, cells, width=width(), prose=prose):
        say(line)


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text with its control characters escaped, except those of `styled`; on standard error with `err`."""
    click.echo(for_terminal(text), err=err, nl=nl)


def say_labelled(label: str, text: str) -> None:
    """Print a label and a text, which is wrapped on a terminal.

    The further lines are indented to the text, or by six columns if the label takes more than half of the room.
    """
    room = width()
    if room is None or text_width(label) + text_width(text) <= room:
        say(label + text)
        return
    beside = room - text_width(label)
    indent = " " * text_width(label) if beside >= room // 2 else "      "
    first, *others = wrapped(text, room - len(indent))
    if label.strip() and len(indent) < text_width(label):
        say(label.rstrip())
        label = indent
    say((label if len(indent) == text_width(label) else indent) + first)
    for line in others:
        say(indent + line)


def width() -> int | None:
    """Return the number of columns of the terminal; None if standard output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def plain_text(markdown: str) -> str:
    """Return Markdown that kardinal has generated as plain text: without HTML tags, and with HTML entities resolved."""
    text = markdown.replace("<summary>", "").replace("</summary>", ":")
    text = re.sub(r"(?m)^(</?details>|<!--.*-->)\n?", "", text)
    return "\n".join(map(escaped, unescape(text).replace("\u200b", "").strip().splitlines()))


def one_line(text: str) -> str:
    """Return a text of others as one line, with its control characters escaped."""
    return escaped(" ".join(text.split()))


def styled(text: str, **style: Any) -> str:
    """Return `text` in a style of `click.style`, such as `fg="red"`; unchanged if colours are off.

    Colours are off unless standard output is a terminal, and with NO_COLOR or TERM=dumb. A value of None is ignored.
    """
    style = {name: value for name, value in style.items() if value is not None}
    if not style or not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return mark_style(text, **style)


def print_documents(documents: Sequence[Any], output: str) -> None:
    """Print resources as a List, like `kubectl get -o json` or `-o yaml`; `output` is `json` or `yaml`."""
    listing = {"apiVersion": "v1", "kind": "List", "items": [without_managed_fields(each) for each in documents]}
    print_value(listing, output)


def without_managed_fields(document: Any) -> Any:
    """Return a resource without `metadata.managedFields`."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}


def print_value(value: Any, output: str) -> None:
    if output == "json":
        say(json.dumps(value, indent=2))
    else:
        import yaml  # noqa: PLC0415 - not needed to start a local plane

        say(yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False), nl=False)


def state_text(state: str) -> str:
    """Return a state in its colour: `Verified` in green, for example."""
    return styled(state, **_STATE_STYLES.get(state, {}))


def age(moment: datetime | None) -> str:
    """Return the time since `moment` in its largest unit, like kubectl: `5m`; empty for None."""
    return span(datetime.now(UTC) - moment) if moment else ""


def span(duration: timedelta) -> str:
    seconds = max(0, int(duration.total_seconds()))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
