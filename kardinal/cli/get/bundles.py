"""`kardinal get bundles`.

The command that is called most: it reads the objects as the API server sends them, because importing the models would
take a third of its time.
"""

from __future__ import annotations

import math
from datetime import datetime

import click

from kardinal.api.image import stored_title
from kardinal.api.names import LABEL_PIPELINE, label_value
from kardinal.cli.output import age, print_documents, print_table, state_text
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.objects import BUNDLE, JsonObject

__all__ = ["bundles"]


@click.command()
@click.argument("pipeline")
@output_option
@cluster_command
async def bundles(session: Session, *, pipeline: str, output: str) -> None:
    """List the Bundles of a Pipeline, newest first, with where they came from."""
    await session.stored_pipeline(pipeline)
    labels = f"{LABEL_PIPELINE}={label_value(pipeline)}"
    found = (await session.client.list(BUNDLE, session.namespace, labels=labels)).items
    if output != "table":
        print_documents(found, output)
        return
    print_table(
        ["BUNDLE", "VERSION", "PHASE", "ENVIRONMENTS", "COMMIT", "AUTHOR", "AGE"],
        [_row(bundle) for bundle in sorted(found, key=_age, reverse=True)],
        empty=f"No Bundles. Create one: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
        prose=("ENVIRONMENTS", "AUTHOR"),
    )


def _row(bundle: JsonObject) -> list[str]:
    spec, status = bundle["spec"], bundle.get("status") or {}
    provenance = spec.get("provenance") or {}
    environments = status.get("environments") or {}
    return [
        bundle["metadata"]["name"],
        stored_title(spec["artifacts"]),
        state_text(status.get("phase") or "Available"),
        "  ".join(f"{name}={entry['state']}" for name, entry in environments.items()),
        (provenance.get("commitSHA") or "")[:12],
        provenance.get("author") or "",
        age(_created(bundle)),
    ]


def _created(bundle: JsonObject) -> datetime:
    return datetime.fromisoformat(bundle["metadata"]["creationTimestamp"])


def _age(bundle: JsonObject) -> tuple[datetime, float, str]:
    """Return what sorts Bundles: those of one second by the order in which they were admitted, new ones last."""
    sequence = (bundle.get("status") or {}).get("sequence", math.inf)
    return _created(bundle), sequence, bundle["metadata"]["name"]
