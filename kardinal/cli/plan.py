"""`kardinal plan`: show the diff, the commit message and the pull request that each environment would get."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from kardinal.cli.bundle_plan import planned, print_plan, uncreated
from kardinal.cli.create import read_image
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.bundle import Artifacts
from kardinal.promotion.api.new_bundle import NewBundle

__all__ = ["plan"]

CHANGES = 3
"""The exit code with `--exit-code` if an environment would change."""


@click.command()
@click.argument("pipeline")
@click.option("--bundle", "name", metavar="NAME", help="The Bundle to plan; default: the one under way, or the newest.")
@click.option(
    "--image", "images", multiple=True, metavar="[NAME=]REPOSITORY:TAG[@DIGEST]", help="Plan a Bundle of these images."
)
@click.option("--env", "environment", metavar="ENVIRONMENT", help="This environment alone.")
@click.option(
    "--checkout",
    "checkouts",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Plan on what is checked out there, of the Pipeline's repository; more of others, told by their remotes.",
)
@click.option("--use-secret", is_flag=True, help="Read repositories with the Secrets that the Pipeline names.")
@click.option("--exit-code", is_flag=True, help=f"End with {CHANGES} where an environment would change.")
@output_option
@cluster_command
async def plan(
    session: Session,
    *,
    pipeline: str,
    name: str | None,
    images: tuple[str, ...],
    environment: str | None,
    checkouts: tuple[Path, ...],
    use_secret: bool,
    exit_code: bool,
    output: str,
) -> None:
    """Show what a promotion would change, and change nothing.

    Repositories are read with your own git and its credentials: of the Pipeline's, and of those that steps read from,
    one commit; of a configuration its branch. Gates are not evaluated.
    """
    if name and images:
        raise click.UsageError("--bundle and --image exclude each other")
    if checkouts and use_secret:
        raise click.UsageError("--checkout and --use-secret exclude each other")
    found = await session.pipeline(pipeline)
    bundle = _made(found, images, session.namespace) if images else await session.bundle(pipeline, name)
    results = await planned(session, found, bundle, environment=environment, checkouts=checkouts, use_secret=use_secret)
    print_plan(pipeline, bundle, results, output)
    if exit_code and any(result.files for result in results):
        raise click.exceptions.Exit(CHANGES)


def _made(pipeline: Pipeline, images: tuple[str, ...], namespace: str) -> Bundle:
    artifacts = Artifacts(images=tuple(map(read_image, images)))
    new = NewBundle(pipeline=pipeline.metadata.name, namespace=namespace, artifacts=artifacts, source="cli")
    return uncreated(next(new.manifests(now=datetime.now(UTC))))
