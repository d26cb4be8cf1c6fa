"""The plan of one Bundle, computed and printed: of `kardinal plan`, and of `kardinal create bundle --dry-run`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import click

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.image import bundle_title
from kardinal.api.repository_url import RepositoryURL
from kardinal.cli.checkout import caller_repositories
from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value, say, styled
from kardinal.cli.planning import Planned, Planner, own_address
from kardinal.cli.session import Session
from kardinal.extensions import load_extensions
from kardinal.git import Credentials
from kardinal.git.edit_sources import Address
from kardinal.git.rendering import ProgramRenderer, RendererOptions
from kardinal.git.secret_credentials import credentials_of
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.errors import KardinalError
from kardinal.translation import Features
from kardinal.translation.preview import preview

__all__ = ["planned", "print_plan", "uncreated"]

_NO_UID = "00000000-0000-0000-0000-000000000000"
"""In the trailers of a Bundle that does not exist."""


def uncreated(manifest: JsonObject) -> Bundle:
    """Return the Bundle of a manifest that is not created."""
    return Bundle.model_validate({**manifest, "metadata": {**manifest["metadata"], "uid": _NO_UID}})


async def planned(
    session: Session,
    pipeline: Pipeline,
    bundle: Bundle,
    *,
    environment: str | None = None,
    checkouts: tuple[Path, ...] = (),
    use_secret: bool = False,
) -> list[Planned]:
    """Return what the promotions of a Bundle would be; with `environment` that one alone. Raises `CommandError`."""
    extensions = load_extensions()
    try:
        features = Features(registry=extensions.registry, allow_local_repositories=True)
        promotions = preview(pipeline, bundle, features=features)
        chosen = _chosen(promotions, environment, pipeline.metadata.name)
        own = own_address(pipeline.spec.git, bundle, chosen)
        credentials = partial(_credentials, session) if use_secret else None
        async with caller_repositories(own.url, checkouts, credentials) as repositories:
            with closing(ProgramRenderer(RendererOptions())) as renderer:
                planner = Planner(bundle, own, repositories=repositories, extensions=extensions, renderer=renderer)
                results = [await planner.plan(step) for step in chosen]
            repositories.check_used()
    except KardinalError as error:
        raise CommandError(str(error)) from None
    return results


def print_plan(pipeline: str, bundle: Bundle, results: Sequence[Planned], output: str) -> None:
    """Print a plan, and raise the exit code 1 where an environment cannot be promoted."""
    if output != "table":
        environments = [result.document() for result in results]
        print_value({"pipeline": pipeline, "bundle": bundle.metadata.name, "environments": environments}, output)
    else:
        _print(pipeline, bundle, results)
    if any(result.error for result in results):
        raise click.exceptions.Exit(1)


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
    say(f"PLAN: {pipeline} {bundle_title(bundle.spec.artifacts)} (Bundle {bundle.metadata.name})")
    for result in results:
        say(f"\n{result.environment}: {_sentence(result)}")
        if result.note:
            say(f"    {result.note}")
        if result.error or not result.files:
            continue
        say(_indented(result.message))
        say(_coloured(result.diff))
        if result.pull_request:
            name, text = result.pull_request
            say(f"Pull request: {name}\n\n{_indented(text)}")


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
