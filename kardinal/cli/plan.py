"""`kardinal plan`: the diff, the message and the pull request that each environment would get."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.bundle import Artifacts
from kardinal.api.image import bundle_title
from kardinal.api.new_bundle import NewBundle
from kardinal.api.repository_url import RepositoryURL
from kardinal.cli.checkout import open_checkout, open_remote
from kardinal.cli.create import read_image
from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value, styled
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.extensions import Extensions, load_extensions
from kardinal.git import Credentials, Repository
from kardinal.git.rendering import ProgramRenderer, RendererOptions
from kardinal.git.secret_credentials import credentials_of
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import NotFound
from kardinal.objects import SECRET
from kardinal.objects.errors import KardinalError
from kardinal.steps.commit_plan import commit_message, edit_of, image_changes_of
from kardinal.steps.declaration import PlannedStep, Role, Surroundings
from kardinal.steps.pull_request_text import Proposal, body, title
from kardinal.steps.sequence import planned
from kardinal.steps.sequence_values import foreseen
from kardinal.translation import Features
from kardinal.translation.preview import preview

__all__ = ["plan"]

_NO_UID = "00000000-0000-0000-0000-000000000000"
"""In the trailers of a Bundle that does not exist."""

CHANGES = 3
"""The exit code for an environment that would change, where it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The promotion into one environment; `error` is why there would be none."""

    environment: str
    approval: str
    branch: str
    files: Sequence[str] = ()
    diff: str = ""
    message: str = ""
    pull_request: tuple[str, str] | None = None
    error: str = ""

    def document(self) -> dict[str, Any]:
        document = {
            "name": self.environment,
            "approval": self.approval,
            "branch": self.branch,
            "changed": bool(self.files),
            "files": list(self.files),
            "diff": self.diff,
            "message": self.message,
        }
        if self.pull_request:
            document["pullRequest"] = dict(zip(("title", "body"), self.pull_request, strict=True))
        return document | ({"error": self.error} if self.error else {})


@click.command()
@click.argument("pipeline")
@click.option("--bundle", "name", metavar="NAME", help="The Bundle to plan; default: the one under way, or the newest.")
@click.option(
    "--image", "images", multiple=True, metavar="[NAME=]REPOSITORY:TAG[@DIGEST]", help="Plan a Bundle of these images."
)
@click.option("--env", "environment", metavar="ENVIRONMENT", help="This environment alone.")
@click.option(
    "--checkout",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Plan on what is checked out there.",
)
@click.option("--use-secret", is_flag=True, help="Read the repository with the Secret that the Pipeline names.")
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
    checkout: Path | None,
    use_secret: bool,
    exit_code: bool,
    output: str,
) -> None:
    """Show what a promotion would change, and change nothing.

    The repository is read with your own git and its credentials, one commit of it. Gates are not evaluated.
    """
    if name and images:
        raise click.UsageError("--bundle and --image exclude each other")
    if checkout and use_secret:
        raise click.UsageError("--checkout and --use-secret exclude each other")
    found = await session.pipeline(pipeline)
    bundle = _made(found, images, session.namespace) if images else await session.bundle(pipeline, name)
    extensions = load_extensions()
    try:
        features = Features(registry=extensions.registry, allow_local_repositories=True)
        promotions = preview(found, bundle, features=features)
        chosen = _chosen(promotions, environment, pipeline)
        credentials = await _credentials(session, found) if use_secret else None
        with closing(ProgramRenderer(RendererOptions())) as renderer:
            around = Surroundings(renderer=renderer)
            async with _base(found, chosen, checkout, credentials) as (repository, commit):
                results = [
                    await _planned(step, bundle, repository, commit, extensions=extensions, around=around)
                    for step in chosen
                ]
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


async def _credentials(session: Session, pipeline: Pipeline) -> Credentials | None:
    reference = pipeline.spec.git.secret_ref
    if reference is None:
        return None
    try:
        secret = await session.client.get(SECRET, reference.name, session.namespace)
    except NotFound:
        raise CommandError(f"there is no Secret {reference.name} in namespace {session.namespace}") from None
    url = RepositoryURL.parse(pipeline.spec.git.url, allow_local=True)
    if not url.host:
        return None
    if refusal := refused_host(secret, url.host):
        raise CommandError(refusal)
    return credentials_of(secret, url.scheme)


@asynccontextmanager
async def _base(
    pipeline: Pipeline, steps: Sequence[PromotionStep], checkout: Path | None, credentials: Credentials | None
) -> AsyncIterator[tuple[Repository, str | None]]:
    """Yield the repository, and the commit to plan on where it is not the head of each branch."""
    if checkout is not None:
        async with open_checkout(checkout) as (repository, commit):
            yield repository, commit
        return
    branches = {step.spec.git.branch for step in steps}
    async with open_remote(pipeline.spec.git.url, branches, credentials=credentials) as repository:
        yield repository, None


async def _planned(
    step: PromotionStep,
    bundle: Bundle,
    repository: Repository,
    commit: str | None,
    *,
    extensions: Extensions,
    around: Surroundings,
) -> Planned:
    spec = step.spec
    place = Planned(environment=spec.environment, approval=spec.approval, branch=spec.git.branch)
    try:
        base = commit or (await repository.head(spec.git.branch)).commit
        sequence = foreseen(step, bundle, planned(spec.steps, extensions.steps), {"git-clone": {"commit": base}})
        found = await repository.plan(base, edit_of(step, bundle, sequence, around))
        proposal = await _proposal(step, bundle, repository, base, sequence, around=around)
    except KardinalError as error:
        return replace(place, error=str(error))
    return replace(
        place,
        files=[change.path for change in found.changes],
        diff=found.diff,
        message=str(commit_message(step, bundle)),
        pull_request=proposal if found.changes else None,
    )


async def _proposal(
    step: PromotionStep,
    bundle: Bundle,
    repository: Repository,
    base: str,
    sequence: Sequence[PlannedStep],
    *,
    around: Surroundings,
) -> tuple[str, str] | None:
    """Return title and body of the pull request; None where there would be none."""
    if not any(entry.declaration.role is Role.PROPOSE for entry in sequence):
        return None
    changes = await repository.examine(base, lambda tree: image_changes_of(tree, step, bundle, sequence, around))
    proposal = Proposal(
        pipeline=step.spec.pipeline,
        environment=step.spec.environment,
        bundle=bundle,
        gates=None,
        changes=changes,
        diff=None,
        follows=False,
        merged_by_agent=any(entry.declaration.role is Role.MERGE for entry in sequence),
        now=datetime.now(UTC),
    )
    return title(proposal), body(proposal)


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
