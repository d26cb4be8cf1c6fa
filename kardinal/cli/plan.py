"""`kardinal plan`: the diff, the message and the pull request that each environment would get."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.bundle import Artifacts
from kardinal.api.image import bundle_title
from kardinal.api.new_bundle import NewBundle
from kardinal.api.repository_url import RepositoryURL
from kardinal.cli.checkout import caller_repositories
from kardinal.cli.create import read_image
from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value, styled
from kardinal.cli.planning import Planned, Planner, own_address
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.extensions import load_extensions
from kardinal.git import Credentials
from kardinal.git.edit_sources import Address
from kardinal.git.rendering import ProgramRenderer, RendererOptions
from kardinal.git.secret_credentials import credentials_of
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import NotFound
from kardinal.objects import SECRET
from kardinal.objects.errors import KardinalError
from kardinal.translation import Features
from kardinal.translation.preview import preview

__all__ = ["plan"]

_NO_UID = "00000000-0000-0000-0000-000000000000"
"""In the trailers of a Bundle that does not exist."""

CHANGES = 3
"""The exit code for an environment that would change, where it is asked for."""


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
    extensions = load_extensions()
    try:
        features = Features(registry=extensions.registry, allow_local_repositories=True)
        promotions = preview(found, bundle, features=features)
        chosen = _chosen(promotions, environment, pipeline)
        own = own_address(found.spec.git, bundle, chosen)
        credentials = partial(_credentials, session) if use_secret else None
        async with caller_repositories(own.url, checkouts, credentials) as repositories:
            with closing(ProgramRenderer(RendererOptions())) as renderer:
                planner = Planner(bundle, own, repositories=repositories, extensions=extensions, renderer=renderer)
                results = [await planner.plan(step) for step in chosen]
            repositories.check_used()
    except KardinalError as error:
        raise CommandError(str(error)) from None
    if output != "table":
        environments = [result.document() for result in results]
        print_value({"pipeline": pipeline, "bundle": bundle.metadata.name, "environments": environments}, output)
    else:
        _print(pipeline, bundle, results)
    if any(result.error for result in results):
        raise click.exceptions.Exit(1)
    if exit_code and any(result.files for result in results):
        raise click.exceptions.Exit(CHANGES)


def _made(pipeline: Pipeline, images: tuple[str, ...], namespace: str) -> Bundle:
    artifacts = Artifacts(images=tuple(map(read_image, images)))
    new = NewBundle(pipeline=pipeline.metadata.name, namespace=namespace, artifacts=artifacts, source="cli")
    manifest = next(new.manifests(now=datetime.now(UTC)))
    manifest["metadata"]["uid"] = _NO_UID
    return Bundle.model_validate(manifest)


def _chosen(steps: Sequence[PromotionStep], environment: str | None, pipeline: str) -> Sequence[PromotionStep]:
    if environment is None:
        return steps
    chosen = [step for step in steps if step.spec.environment == environment]
    if not chosen:
        known = ", ".join(step.spec.environment for step in steps)
        raise CommandError(f"Pipeline {pipeline} has no environment {environment}", remedy=f"It has: {known}")
    return chosen


async def _credentials(session: Session, address: Address) -> Credentials | None:
    """Return what the Secret of a repository holds; None for one that needs none."""
    url = RepositoryURL.parse(address.url, allow_local=True)
    if address.secret is None or not url.host:
        return None
    try:
        secret = await session.client.get(SECRET, address.secret, session.namespace)
    except NotFound:
        raise CommandError(f"there is no Secret {address.secret} in namespace {session.namespace}") from None
    if refusal := refused_host(secret, url.host):
        raise CommandError(f"{address.field}: {refusal}")
    return credentials_of(secret, url.scheme)


def _print(pipeline: str, bundle: Bundle, results: Sequence[Planned]) -> None:
    click.echo(f"PLAN: {pipeline} {bundle_title(bundle.spec.artifacts)} (Bundle {bundle.metadata.name})")
    for result in results:
        click.echo(f"\n{result.environment}: {_sentence(result)}")
        if result.error or not result.files:
            continue
        click.echo(_indented(result.message))
        click.echo(_coloured(result.diff))
        if result.pull_request:
            name, text = result.pull_request
            click.echo(f"Pull request: {name}\n\n{_indented(text)}")


def _sentence(result: Planned) -> str:
    if result.error:
        return f"cannot be promoted: {result.error}"
    if not result.files:
        return f"nothing to change on {result.branch}"
    how = "a pull request to" if result.pull_request else "a commit on"
    count = len(result.files)
    return f"{how} {result.branch} changes {count} {'file' if count == 1 else 'files'}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.rstrip("\n").splitlines()) + "\n"


def _coloured(diff: str) -> str:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return "\n".join(styled(line, fg=styles.get(line[:1])) for line in diff.splitlines())
