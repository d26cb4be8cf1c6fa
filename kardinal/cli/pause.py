"""`kardinal pause` and `resume`: a freeze gate, and the holds of rollbacks, that agents ask before they touch Git.

A gate is the whole mechanism: no running process is told anything, and deleting it by hand resumes just as well.
"""

from __future__ import annotations

import getpass
from contextlib import suppress

import click

from kardinal.api import POLICY_GATE
from kardinal.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_FREEZE, freeze_name, label_value
from kardinal.cli.holds import find_hold, holds_of
from kardinal.cli.output import one_line, say
from kardinal.cli.session import Session, cluster_command
from kardinal.kube import AlreadyExists, NotFound

__all__ = ["pause", "resume"]


@click.command()
@click.argument("pipeline")
@click.option("--reason", help="Why, shown on the PromotionSteps that it holds.")
@cluster_command
async def pause(session: Session, *, pipeline: str, reason: str | None) -> None:
    """Hold every promotion of a Pipeline at its next safe point."""
    await session.pipeline(pipeline)
    gate = {
        "apiVersion": POLICY_GATE.api_version,
        "kind": POLICY_GATE.kind,
        "metadata": {
            "name": freeze_name(pipeline),
            "namespace": session.namespace,
            "labels": {LABEL_PIPELINE: label_value(pipeline), LABEL_TYPE: TYPE_FREEZE},
        },
        "spec": {"expression": "false", "message": reason or f"{pipeline} was paused by {getpass.getuser()}"},
    }
    try:
        await session.client.create(POLICY_GATE, gate, field_manager="kardinal-cli")
    except AlreadyExists:
        say(f"Pipeline {pipeline} is paused already")
        return
    say(f"Pipeline {pipeline} paused")
    say(f"Go on with: kardinal resume {pipeline} -n {session.namespace}", err=True)


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", metavar="ENVIRONMENT", help="End the hold on this environment instead.")
@cluster_command
async def resume(session: Session, *, pipeline: str, environment: str | None) -> None:
    """Let the promotions of a paused Pipeline, or to a held environment, go on.

    An environment is held since it was rolled back. Without --env those that are held are listed.
    """
    await session.pipeline(pipeline)
    if environment is not None:
        await _end_hold(session, pipeline, environment)
        return
    try:
        await session.client.delete(POLICY_GATE, freeze_name(pipeline), session.namespace)
    except NotFound:
        say(f"Pipeline {pipeline} is not paused")
    else:
        say(f"Pipeline {pipeline} resumed")
    for held, gate in await holds_of(session, pipeline):
        say(f"{held} is held: {one_line(gate['spec'].get('message') or 'since a rollback')}")
        say(f"  to let Bundles get there again: kardinal resume {pipeline} --env {held}{session.option}")


async def _end_hold(session: Session, pipeline: str, environment: str) -> None:
    hold = await find_hold(session, pipeline, environment)
    if hold is None:
        say(f"{environment} of Pipeline {pipeline} is not held")
        return
    with suppress(NotFound):
        metadata = hold["metadata"]
        await session.client.delete(POLICY_GATE, metadata["name"], session.namespace, uid=metadata["uid"])
    say(f"{environment} of Pipeline {pipeline} takes Bundles again")
