"""`kardinal promote` and `retry`: request the promotion of a Bundle, or another attempt of a failed one."""

from __future__ import annotations

from typing import Literal

import click

from kardinal.cli.output import say
from kardinal.cli.session import Session, cluster_command
from kardinal.cli.status.following import wait_for_end, wait_option
from kardinal.promotion.requests import Unanswered, ask, find_promoted, pipeline_of, stored_bundle

__all__ = ["make_request", "promote", "retry"]


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", metavar="ENVIRONMENT", help="Default: everywhere the Bundle goes.")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@wait_option
@cluster_command
async def promote(session: Session, *, pipeline: str, environment: str | None, name: str | None, waiting: bool) -> None:
    """Promote a Bundle to an environment, before all Bundles that were created until now."""
    if environment is None and name is None:
        raise click.UsageError("name what is promoted: --env ENVIRONMENT, --bundle NAME, or both")
    bundle = await find_promoted(session.requester, pipeline, environment, name)
    await make_request(session, bundle, "promote", environment, must_be_answered=waiting)
    say(f"Bundle {bundle} goes on to {environment or 'every environment it is meant for'}")
    if waiting:
        await wait_for_end(session, pipeline, bundle)
        return
    say(f"Follow it: kardinal watch {pipeline}{session.option}", err=True)


@click.command()
@click.argument("bundle")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT", help="Where the Bundle is Failed.")
@wait_option
@cluster_command
async def retry(session: Session, *, bundle: str, environment: str, waiting: bool) -> None:
    """Try a Bundle again in an environment where it is Failed."""
    stored = await stored_bundle(session.requester, bundle)
    await make_request(session, bundle, "retry", environment, must_be_answered=waiting)
    say(f"Bundle {bundle} is tried again in {environment}")
    pipeline = pipeline_of(stored)
    if waiting:
        await wait_for_end(session, pipeline, bundle)
        return
    say(f"Follow it: kardinal watch {pipeline}{session.option}", err=True)


async def make_request(
    session: Session,
    bundle: str,
    action: Literal["promote", "retry"],
    environment: str | None,
    *,
    must_be_answered: bool,
) -> None:
    """Make a request. A missing answer prints a note.

    With `must_be_answered` it is an error, because the caller would wait for the promotion in vain.
    """
    try:
        await ask(session.requester, bundle, action, environment)
    except Unanswered as error:
        if must_be_answered:
            raise
        say(f"{error.message} {error.remedy}", err=True)
