"""Follow a Pipeline by watches: a screen that is drawn again on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from typing import Protocol

import click

from kardinal.cli.changes import changes
from kardinal.cli.output import console, say, width
from kardinal.cli.session import Session
from kardinal.cli.status.advice import document_of
from kardinal.cli.status.reading import WATCHED, read_objects
from kardinal.cli.status.screen import change_lines
from kardinal.cli.status.view import View, make_view

__all__ = ["follow", "wait_for_end", "wait_option"]

_TICK = 1.0
"""Seconds between two drawings of a screen on which nothing but time has changed."""

SUPERSEDED = 3
"""The exit code for a Bundle whose place a newer one took."""


wait_option = click.option(
    "--wait", "waiting", is_flag=True, help="Show the Bundle until it has ended; ends with 1, or 3 if superseded."
)
"""Gives `waiting`, for commands that let a Bundle go on."""


class _Display(Protocol):
    def show(self, view: View, *, now: datetime) -> None: ...


async def follow(session: Session, pipeline: str, bundle: str | None, *, output: str, until_end: bool = False) -> View:
    """Show each change until Ctrl-C, or with `until_end` until the Bundle has ended; return the last view."""
    with _display(output) as display:
        objects = await read_objects(session, pipeline, bundle)
        async with aclosing(changes(session, WATCHED, tick=_TICK)) as ticks:
            async for changed in ticks:
                if changed:
                    objects = await read_objects(session, pipeline, bundle)
                now = datetime.now(UTC)
                view = make_view(objects, now=now)
                display.show(view, now=now)
                if until_end and view.bundle is not None and view.bundle.status.has_ended:
                    return view
    raise AssertionError("watches do not end")


async def wait_for_end(session: Session, pipeline: str, bundle: str) -> None:
    """Show the Bundle until it has ended; the exit code is its outcome: 0 Verified, 3 Superseded, else 1."""
    view = await follow(session, pipeline, bundle, output="table", until_end=True)
    if view.phase == "Superseded":
        raise click.exceptions.Exit(SUPERSEDED)
    if view.phase != "Verified":
        raise click.exceptions.Exit(1)


@contextmanager
def _display(output: str) -> Iterator[_Display]:
    if output != "table":
        yield _Documents()
    elif width() is None:
        yield _Lines()
    else:
        from rich.live import Live  # noqa: PLC0415 - a tenth of the time of every other command

        from kardinal.cli.status.live import Screen  # noqa: PLC0415

        with Live(console=console(), auto_refresh=False) as live:
            yield Screen(live)


class _Lines:
    """Prints what has changed."""

    def __init__(self) -> None:
        self._before: View | None = None

    def show(self, view: View, *, now: datetime) -> None:
        for line in change_lines(self._before, view):
            say(f"{now:%H:%M:%S}  {line}")
        self._before = view


class _Documents:
    """Prints a JSON document on one line whenever it is another one."""

    def __init__(self) -> None:
        self._before = ""

    def show(self, view: View, *, now: datetime) -> None:
        document = json.dumps(document_of(view))
        if document != self._before:
            say(document)
        self._before = document
