"""Follow a Pipeline by watches: on a terminal redraw a screen, elsewhere print a line for each change."""

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
from kardinal.cli.status.document import document_of
from kardinal.cli.status.screen import change_lines
from kardinal.objects import ResourceType
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.views.reading import read_objects
from kardinal.promotion.views.status import StatusView, status_view

__all__ = ["WATCHED", "follow", "wait_for_end", "wait_option"]

WATCHED: dict[ResourceType, str | None] = {PIPELINE: None, BUNDLE: None, PROMOTION_STEP: None, POLICY_GATE: None}
"""The kinds to watch, as `changes` takes them. Graphs are missing, because these kinds change with every Graph."""

_TICK = 1.0
"""The time in seconds after which a screen is redrawn without a change, because it shows durations."""

SUPERSEDED = 3
"""The exit code for a Bundle that was superseded by a newer one."""


wait_option = click.option(
    "--wait", "waiting", is_flag=True, help="Show the Bundle until it has ended; ends with 1, or 3 if superseded."
)
"""The option `--wait`, passed as `waiting`, of commands that start or continue a promotion."""


class _Display(Protocol):
    def show(self, view: StatusView, *, now: datetime) -> None: ...


async def follow(
    session: Session, pipeline: str, bundle: str | None, *, output: str, until_end: bool = False
) -> StatusView:
    """Show a Pipeline again after each change until Ctrl-C.

    `bundle` defaults to the newest one under way if it is None. `output` is `table`, `json` or `yaml`. With `until_end`
    it returns the last view when the Bundle has ended; defaults to False.
    """
    with _display(output) as display:
        objects = await read_objects(session.reader, session.namespace, pipeline, bundle)
        async with aclosing(changes(session, WATCHED, tick=_TICK)) as ticks:
            async for changed in ticks:
                if changed:
                    objects = await read_objects(session.reader, session.namespace, pipeline, bundle)
                now = datetime.now(UTC)
                view = status_view(objects, now=now)
                display.show(view, now=now)
                if until_end and view.bundle is not None and view.bundle.status.has_ended:
                    return view
    raise AssertionError("watches do not end")


async def wait_for_end(session: Session, pipeline: str, bundle: str) -> None:
    """Show the Bundle until it has ended. Exits with code 3 if it was superseded, with 1 unless it is Verified."""
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
    """Prints a line for each fact that has changed, with the time."""

    def __init__(self) -> None:
        self._before: StatusView | None = None

    def show(self, view: StatusView, *, now: datetime) -> None:
        for line in change_lines(self._before, view):
            say(f"{now:%H:%M:%S}  {line}")
        self._before = view


class _Documents:
    """Prints the JSON document on one line whenever it has changed."""

    def __init__(self) -> None:
        self._before = ""

    def show(self, view: StatusView, *, now: datetime) -> None:
        document = json.dumps(document_of(view))
        if document != self._before:
            say(document)
        self._before = document
