"""`kardinal promote`: let a Bundle go further than it was meant to."""

from __future__ import annotations

import click

from kardinal.api import BUNDLE
from kardinal.cli.errors import CommandError
from kardinal.cli.session import Session, cluster_command
from kardinal.kube import PatchType
from kardinal.translation.environment_order import OrderError, ancestors, upstreams

__all__ = ["promote"]


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT", help="The new target of the Bundle.")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@cluster_command
async def promote(session: Session, *, pipeline: str, environment: str, name: str | None) -> None:
    """Move the target of a Bundle forward to an environment."""
    found = await session.pipeline(pipeline)
    known = [entry.name for entry in found.spec.environments]
    if environment not in known:
        raise CommandError(
            f"Pipeline {pipeline} has no environment {environment}", remedy=f"It has: {', '.join(known)}"
        )
    bundle = await session.bundle(pipeline, name)
    title = f"Bundle {bundle.metadata.name}"
    if bundle.status.has_ended and bundle.status.phase != "Verified":
        raise CommandError(
            f"{title} is {bundle.status.phase} and goes nowhere any more",
            remedy=f"Create a new one: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
        )
    target = bundle.spec.intent.target
    if target is None:
        click.echo(f"{title} is already on its way to every environment of {pipeline}")
        return
    if target == environment:
        click.echo(f"{title} is already on its way to {environment}")
        return
    try:
        before = ancestors(upstreams(found.spec.environments), environment)
    except OrderError as error:
        raise CommandError(f"Pipeline {pipeline} cannot be ordered: {error}") from error
    if target not in before:
        raise CommandError(
            f"{title} is already meant for {target}, and {environment} does not come after it",
            remedy="A target only moves forward; to go back, promote a Bundle of the older artifacts.",
        )
    await session.client.patch(
        BUNDLE,
        bundle.metadata.name,
        session.namespace,
        {"spec": {"intent": {"target": environment}}},
        kind=PatchType.MERGE,
        field_manager="kardinal-cli",
    )
    click.echo(f"{title} goes on to {environment}")
    click.echo(f"Follow it: kardinal explain {pipeline} --env {environment} -n {session.namespace} --watch", err=True)
