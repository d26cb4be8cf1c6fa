"""`kardinal rollback`: restore the artifacts of an earlier Bundle in one environment, by a new Bundle."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from kardinal.cli.output import say
from kardinal.cli.session import Session, cluster_command
from kardinal.cli.status.following import wait_for_end, wait_option
from kardinal.kube import NotFound
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.names import freeze_name
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.requests import find_rollback, roll_back
from kardinal.promotion.views.status import unattended

__all__ = ["rollback"]


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT", help="What is rolled back.")
@click.option("--to", "bundle", metavar="BUNDLE", help="What it goes back to; default: the one Verified there before.")
@click.option("--emergency", is_flag=True, help="Tell gates that it is urgent, as bundle.emergency; they decide.")
@click.option("--no-hold", is_flag=True, help="Do not keep other Bundles from the environment afterwards.")
@wait_option
@cluster_command
async def rollback(
    session: Session,
    *,
    pipeline: str,
    environment: str,
    bundle: str | None,
    emergency: bool,
    no_hold: bool,
    waiting: bool,
) -> None:
    """Bring an environment back to what was Verified there before.

    It is a promotion like others: a new Bundle with the artifacts of an earlier one, which goes to this environment
    alone, past the same gates and by the same pull request. Afterwards no other Bundle gets there until
    `kardinal resume PIPELINE --env ENVIRONMENT`.
    """
    planned = await find_rollback(session.requester, pipeline, environment, bundle)
    await roll_back(session.requester, planned, hold=not no_hold, emergency=emergency)
    say(f"bundle.kardinal.io/{planned.name} created")
    say(f"{environment} goes back from {planned.old} to {planned.new}, that of {planned.restores['metadata']['name']}")
    if not no_hold:
        say(f"Nothing else gets there until: kardinal resume {pipeline} --env {environment}{session.option}")
    await _note_what_holds(session, planned.pipeline)
    if waiting:
        await wait_for_end(session, pipeline, planned.name)
    else:
        say(f"Follow it: kardinal watch {pipeline}{session.option}", err=True)


async def _note_what_holds(session: Session, pipeline: Pipeline) -> None:
    name = pipeline.metadata.name
    try:
        await session.client.get(POLICY_GATE, freeze_name(name), session.namespace)
    except NotFound:
        pass
    else:
        say(f"Note: {name} is paused, which holds this too; to go on: kardinal resume {name}", err=True)
    if warning := unattended([pipeline], now=datetime.now(UTC)):
        say(f"Note: {warning}", err=True)
