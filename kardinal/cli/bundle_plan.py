"""Compute and print the plan of one Bundle, for `kardinal plan` and `kardinal create bundle --dry-run`.

Note the difference: `environment_plan` computes the plan of one environment, this module the plan of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import click

from kardinal.cli.checkout import caller_repositories
from kardinal.cli.environment_plan import Planned, Planner, own_address
from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value, say, styled
from kardinal.cli.session import Session
from kardinal.extensions import load_extensions
from kardinal.git import GitCredentials
from kardinal.git.secret_credentials import credentials_of
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Bundle, Pipeline, PromotionStep
from kardinal.promotion.api.image import bundle_title
from kardinal.promotion.sources.edit_sources import Address
from kardinal.promotion.translation import Features
from kardinal.promotion.translation.preview import preview
from kardinal.rendering.programs import ProgramRenderer, RendererOptions
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["planned", "print_plan", "uncreated"]

_NO_UID = "00000000-0000-0000-0000-000000000000"
"""The uid in the commit trailers of a Bundle that does not exist."""


def uncreated(manifest: JsonObject) -> Bundle:
    """Return a Bundle for a manifest that is not created in the cluster."""
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
    """Return the planned promotions of a Bundle.

    `environment` limits them to one environment; defaults to all of the route. `checkouts` are clones that are read in
    place of their repositories; defaults to none. `use_secret` reads repositories with the Secret that the Pipeline
    names, and not with the user's own git; defaults to False. Raises `CommandError`, for example for an unknown
    environment.
    """
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
    """Print a plan, and exit with code 1 if a promotion in it would fail."""
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


async def _credentials(session: Session, address: Address) -> GitCredentials | None:
    """Return the credentials in the Secret of a repository; None for a local repository or one without a Secret.

    Raises `CommandError` if the Secret does not exist, or is not meant for the host.
    """
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
        say(f"\n{result.environment}: {result.sentence}")
        if result.note:
            say(f"    {result.note}")
        if result.error or not result.files:
            continue
        say(_indented(result.message))
        say(_coloured(result.diff))
        if result.pull_request:
            name, text = result.pull_request
            say(f"Pull request: {name}\n\n{_indented(text)}")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.rstrip("\n").splitlines()) + "\n"


def _coloured(diff: str) -> str:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return "\n".join(styled(line, fg=styles.get(line[:1])) for line in diff.splitlines())
