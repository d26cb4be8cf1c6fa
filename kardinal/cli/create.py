"""`kardinal create bundle`: create a Bundle from the command line or CI."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from pydantic import ValidationError

from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value, say, without_managed_fields
from kardinal.cli.session import Session, cluster_command
from kardinal.cli.status.following import wait_for_end, wait_option
from kardinal.kube import create_first_free
from kardinal.objects import JsonObject
from kardinal.objects.image_reference import ImageReferenceError
from kardinal.promotion.api.artifacts import artifact_problems
from kardinal.promotion.api.bundle import Artifacts, Image, Intent, Provenance
from kardinal.promotion.api.image import promoted_image
from kardinal.promotion.api.names import ANNOTATION_PIN, is_reserved_for_ci
from kardinal.promotion.api.new_bundle import NAME_ATTEMPTS, NewBundle
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.views.missing import unknown_environment
from kardinal.promotion.views.status import unattended

if TYPE_CHECKING:
    from kardinal.promotion.api import Pipeline

__all__ = ["create", "read_image"]


@click.group()
def create() -> None:
    """Create a resource."""


@create.command()
@click.argument("pipeline")
@click.option(
    "--image",
    "images",
    multiple=True,
    required=True,
    metavar="[NAME=]REPOSITORY:TAG[@DIGEST]",
    help="NAME is that of the artifact, by default the last part of the repository. May be repeated.",
)
@click.option("--target", metavar="ENVIRONMENT", help="Promote up to this environment; default: all of them.")
@click.option(
    "--skip", "skips", multiple=True, metavar="ENVIRONMENT", help="Leave this environment out; needs permission."
)
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label that gates can read. May be repeated."
)
@click.option("--pin", is_flag=True, help="Keep its place: newer Bundles do not supersede it.")
@click.option("--commit", help="Commit the artifacts were built from.")
@click.option("--ci-run", metavar="URL", help="The CI run that built them.")
@click.option("--author", help="Who made the change.")
@click.option("--dry-run", is_flag=True, help="Show what it would change, as `kardinal plan` does, and create nothing.")
@wait_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "name"]),
    default="table",
    show_default=True,
    help="How to print the result.",
)
@cluster_command
async def bundle(
    session: Session,
    *,
    pipeline: str,
    images: tuple[str, ...],
    target: str | None,
    skips: tuple[str, ...],
    labels: tuple[str, ...],
    pin: bool,
    commit: str | None,
    ci_run: str | None,
    author: str | None,
    dry_run: bool,
    waiting: bool,
    output: str,
) -> None:
    """Create a Bundle of images; its promotion starts at once."""
    if dry_run and (waiting or output == "name"):
        raise click.UsageError(f"{'--wait' if waiting else '-o name'} needs a Bundle, and --dry-run creates none")
    found = await session.pipeline(pipeline)
    environments = [environment.name for environment in found.spec.environments]
    for name in (*skips, *([target] if target else [])):
        if name not in environments:
            raise unknown_environment(pipeline, name, environments)
    artifacts = Artifacts(images=tuple(map(read_image, images)))
    for problem in artifact_problems("image", artifacts):
        raise CommandError(problem.message, remedy=problem.remedy.capitalize())
    provenance = Provenance(commit_sha=commit or None, ci_run_url=ci_run or None, author=author or None)
    new = NewBundle(
        pipeline=pipeline,
        namespace=session.namespace,
        artifacts=artifacts,
        source="cli",
        provenance=provenance if provenance != Provenance() else None,
        intent=Intent(target=target, skip=skips),
        labels=_labels(labels),
        pin=pin,
    )
    manifests = new.manifests(now=datetime.now(UTC))
    if dry_run:
        await _plan(session, found, next(manifests), output)
        return
    created = await create_first_free(session.client, BUNDLE, manifests, field_manager="kardinal-cli")
    if created is None:
        message = f"{NAME_ATTEMPTS} Bundles of this version of {pipeline} were created in this second"
        raise CommandError(message, remedy="Try again in a second.")
    name = created["metadata"]["name"]
    if output in ("json", "yaml"):
        print_value(without_managed_fields(created), output)
    else:
        say(f"bundle.kardinal.io/{name}" + (" created" if output == "table" else ""))
    if warning := unattended([found], now=datetime.now(UTC)):
        say(f"Note: {warning}", err=True)
    if waiting:
        await wait_for_end(session, pipeline, name)
    elif output == "table":
        say(f"Follow it: kardinal watch {pipeline}{session.option}", err=True)


async def _plan(session: Session, pipeline: Pipeline, manifest: JsonObject, output: str) -> None:
    from kardinal.cli.bundle_plan import planned, print_plan, uncreated  # noqa: PLC0415 - a second, for this option alone

    bundle = uncreated(manifest)
    results = await planned(session, pipeline, bundle)
    if output == "table":
        say("Nothing is created: --dry-run. Gates are not evaluated.", err=True)
    print_plan(pipeline.metadata.name, bundle, results, output)


def read_image(text: str) -> Image:
    """Parse `[NAME=]REPOSITORY:TAG[@DIGEST]`, such as `app=ghcr.io/acme/app:1.2.3`.

    NAME defaults to the last part of the repository, here `app`. Raises `CommandError` for an invalid reference.
    """
    name, _, reference = text.rpartition("=")
    try:
        parsed = promoted_image(Image(reference=reference))
    except (ImageReferenceError, ValidationError) as error:
        message = str(error) if isinstance(error, ImageReferenceError) else f"{text!r} is no image"
        raise CommandError(
            message, remedy="Write it as ghcr.io/acme/app:1.2.3, or app=ghcr.io/acme/app:1.2.3"
        ) from None
    return Image(name=name or parsed.repository.rpartition("/")[2], reference=reference)


def _labels(pairs: tuple[str, ...]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--label")
        if key == ANNOTATION_PIN:
            raise click.BadParameter(f"{key} is an annotation: pass --pin", param_hint="--label")
        if is_reserved_for_ci(key):
            raise click.BadParameter(f"{key} is one of kardinal's own labels", param_hint="--label")
        labels[key] = value
    return labels
