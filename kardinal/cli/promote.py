"""`kardinal promote` and `retry`: ask for a Bundle in an environment, or for another attempt there."""

from __future__ import annotations

import click

from kardinal.api.names import LABEL_PIPELINE
from kardinal.cli.errors import CommandError
from kardinal.cli.holds import find_hold
from kardinal.cli.output import say
from kardinal.cli.requests import ask
from kardinal.cli.session import Session, cluster_command
from kardinal.cli.status.following import wait_for_end, wait_option
from kardinal.kube import NotFound
from kardinal.objects import BUNDLE, JsonObject

__all__ = ["promote", "retry"]


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
    found = await session.pipeline(pipeline)
    known = [entry.name for entry in found.spec.environments]
    if environment is not None and environment not in known:
        raise CommandError(
            f"Pipeline {pipeline} has no environment {environment}", remedy=f"It has: {', '.join(known)}"
        )
    bundle = await session.bundle(pipeline, name)
    if environment is not None:
        await _refuse_held(session, pipeline, environment, bundle.metadata.name)
    await ask(session, bundle.metadata.name, "promote", environment, must_be_answered=waiting)
    say(f"Bundle {bundle.metadata.name} goes on to {environment or 'every environment it is meant for'}")
    if waiting:
        await wait_for_end(session, pipeline, bundle.metadata.name)
        return
    say(f"Follow it: kardinal watch {pipeline}{session.option}", err=True)


async def _refuse_held(session: Session, pipeline: str, environment: str, bundle: str) -> None:
    """Refuse what a hold would keep from its environment: it would seem to work, and nothing would come of it."""
    hold = await find_hold(session, pipeline, environment)
    if hold is not None and hold["spec"].get("exceptBundle") != bundle:
        raise CommandError(
            f"{environment} is held: {hold['spec'].get('message') or 'since a rollback'}",
            remedy=f"Let Bundles get there again: kardinal resume {pipeline} --env {environment}",
        )


@click.command()
@click.argument("bundle")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT", help="Where the Bundle is Failed.")
@wait_option
@cluster_command
async def retry(session: Session, *, bundle: str, environment: str, waiting: bool) -> None:
    """Try a Bundle again in an environment where it is Failed."""
    try:
        stored = await session.client.get(BUNDLE, bundle, session.namespace)
    except NotFound as error:
        raise CommandError(
            f"no Bundle {bundle} in namespace {session.namespace}", remedy="List them: kubectl get bundles"
        ) from error
    await ask(session, bundle, "retry", environment, must_be_answered=waiting)
    say(f"Bundle {bundle} is tried again in {environment}")
    pipeline = _pipeline_of(stored)
    if waiting:
        await wait_for_end(session, pipeline, bundle)
        return
    say(f"Follow it: kardinal watch {pipeline}{session.option}", err=True)


def _pipeline_of(bundle: JsonObject) -> str:
    """Return the Pipeline that a Bundle is believed to belong to."""
    pinned = (bundle.get("status") or {}).get("pipeline")
    return str(pinned or (bundle["metadata"].get("labels") or {}).get(LABEL_PIPELINE, ""))
