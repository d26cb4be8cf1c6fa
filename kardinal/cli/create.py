"""`kardinal create bundle`: start a promotion from a shell."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from kardinal.api import BUNDLE
from kardinal.api.bundle import Artifacts, Image
from kardinal.api.image import ImageReferenceError, bundle_version, promoted_image
from kardinal.api.names import ANNOTATION_SOURCE, LABEL_PIPELINE, bundle_name, label_value
from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.kube import AlreadyExists

__all__ = ["create"]


@click.group()
def create() -> None:
    """Create a resource."""


@create.command()
@click.argument("pipeline")
@click.option(
    "--image", "images", multiple=True, required=True, metavar="REPOSITORY:TAG[@DIGEST]", help="May be repeated."
)
@click.option("--target", metavar="ENVIRONMENT", help="Promote up to this environment; default: all of them.")
@click.option(
    "--skip", "skips", multiple=True, metavar="ENVIRONMENT", help="Leave this environment out; needs permission."
)
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label that gates can read. May be repeated."
)
@click.option("--commit", help="Commit the artifacts were built from.")
@click.option("--ci-run", metavar="URL", help="The CI run that built them.")
@click.option("--author", help="Who made the change.")
@output_option
@cluster_command
async def bundle(
    session: Session,
    *,
    pipeline: str,
    images: tuple[str, ...],
    target: str | None,
    skips: tuple[str, ...],
    labels: tuple[str, ...],
    commit: str | None,
    ci_run: str | None,
    author: str | None,
    output: str,
) -> None:
    """Create a Bundle of images; its promotion starts at once."""
    found = await session.pipeline(pipeline)
    environments = [environment.name for environment in found.spec.environments]
    for name in (*skips, *([target] if target else [])):
        if name not in environments:
            raise CommandError(
                f"Pipeline {pipeline} has no environment {name}", remedy=f"It has: {', '.join(environments)}"
            )
    artifacts = Artifacts(images=tuple(_image(reference) for reference in images))
    provenance = {"commitSHA": commit, "ciRunURL": ci_run, "author": author}
    spec: dict[str, Any] = {
        "type": "image",
        "artifacts": artifacts.to_json(),
        "provenance": {key: value for key, value in provenance.items() if value} or None,
        "intent": {key: value for key, value in (("target", target), ("skip", list(skips))) if value} or None,
    }
    name = bundle_name(pipeline, bundle_version(artifacts), str(int(datetime.now(UTC).timestamp())))
    body = {
        "apiVersion": BUNDLE.api_version,
        "kind": BUNDLE.kind,
        "metadata": {
            "name": name,
            "namespace": session.namespace,
            "labels": {**_labels(labels), LABEL_PIPELINE: label_value(pipeline)},
            "annotations": {ANNOTATION_SOURCE: "cli"},
        },
        "spec": {key: value for key, value in spec.items() if value is not None},
    }
    try:
        created = await session.client.create(BUNDLE, body, field_manager="kardinal-cli")
    except AlreadyExists as error:
        raise CommandError(f"Bundle {name} was created this very second", remedy="Try again in a second.") from error
    if output != "table":
        print_value(created, output)
        return
    click.echo(f"bundle.kardinal.io/{name} created")
    click.echo(f"Follow it: kardinal get steps {pipeline} -n {session.namespace}", err=True)


def _image(reference: str) -> Image:
    try:
        parsed = promoted_image(Image(reference=reference))
    except ImageReferenceError as error:
        raise CommandError(str(error), remedy="Write it as ghcr.io/acme/app:1.2.3") from error
    return Image(name=parsed.repository.rpartition("/")[2], reference=reference)


def _labels(pairs: tuple[str, ...]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--label")
        labels[key] = value
    return labels
