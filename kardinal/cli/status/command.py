"""`kardinal status` and `kardinal watch`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value, say, width
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.cli.status.document import document_of
from kardinal.cli.status.following import follow
from kardinal.cli.status.screen import screen
from kardinal.promotion.views.reading import read_objects
from kardinal.promotion.views.status import status_view

__all__ = ["status", "watch"]


@click.command()
@click.argument("pipeline", required=False)
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@click.option("--watch", "watching", is_flag=True, help="Show it again whenever it changes; ends with Ctrl-C.")
@output_option
@cluster_command
async def status(session: Session, *, pipeline: str | None, name: str | None, watching: bool, output: str) -> None:
    """Show where a Pipeline stands, what holds it, and what to type next.

    PIPELINE may be left out where the namespace has one. On a terminal --watch draws a screen that follows; elsewhere
    it prints a line for each change, with -o json a document.
    """
    chosen = pipeline or await _only(session)
    if watching:
        await follow(session, chosen, name, output=output)
        return
    now = datetime.now(UTC)
    view = status_view(await read_objects(session.reader, session.namespace, chosen, name), now=now)
    if output != "table":
        print_value(document_of(view), output)
        return
    for line in screen(view, now=now, width=width()):
        say(line)


@click.command()
@click.argument("pipeline", required=False)
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@output_option
@cluster_command
async def watch(session: Session, *, pipeline: str | None, name: str | None, output: str) -> None:
    """Follow a Pipeline: `kardinal status --watch`."""
    await follow(session, pipeline or await _only(session), name, output=output)


async def _only(session: Session) -> str:
    """Return the name of the only Pipeline of the namespace. Raises `CommandError` if there is none or several."""
    names = [item["metadata"]["name"] for item in await session.reader.pipelines(session.namespace)]
    if len(names) == 1:
        return str(names[0])
    if not names:
        raise CommandError(
            f"there is no Pipeline in namespace {session.namespace}",
            remedy="Create one: kardinal init -f kardinal.yaml",
        )
    raise CommandError(
        f"namespace {session.namespace} has {len(names)} Pipelines", remedy=f"Choose one: {', '.join(sorted(names))}"
    )
