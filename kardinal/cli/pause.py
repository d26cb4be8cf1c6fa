"""`kardinal pause` and `resume`: a freeze gate that agents ask before they touch Git (promotion.md, "Translation").

The gate is the whole mechanism: no running process is told anything, and deleting it by hand resumes just as well.
"""

from __future__ import annotations

import getpass

import click

from kardinal.api import POLICY_GATE
from kardinal.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_FREEZE, freeze_name, label_value
from kardinal.cli.session import Session, cluster_command
from kardinal.kube import AlreadyExists, NotFound

__all__ = ["pause", "resume"]


@click.command()
@click.argument("pipeline")
@click.option("--message", help="Why, shown on the PromotionSteps that it holds.")
@cluster_command
async def pause(session: Session, *, pipeline: str, message: str | None) -> None:
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
        "spec": {"expression": "false", "message": message or f"{pipeline} was paused by {getpass.getuser()}"},
    }
    try:
        await session.client.create(POLICY_GATE, gate, field_manager="kardinal-cli")
    except AlreadyExists:
        click.echo(f"Pipeline {pipeline} is paused already")
        return
    click.echo(f"Pipeline {pipeline} paused")
    click.echo(f"Go on with: kardinal resume {pipeline} -n {session.namespace}", err=True)


@click.command()
@click.argument("pipeline")
@cluster_command
async def resume(session: Session, *, pipeline: str) -> None:
    """Let the promotions of a paused Pipeline go on."""
    await session.pipeline(pipeline)
    try:
        await session.client.delete(POLICY_GATE, freeze_name(pipeline), session.namespace)
    except NotFound:
        click.echo(f"Pipeline {pipeline} is not paused")
        return
    click.echo(f"Pipeline {pipeline} resumed")
