"""`kardinal get bundles`.

The command that is called most: it reads the objects as the API server sends them, because importing the models would
take a third of its time.
"""

from __future__ import annotations

import math
from datetime import datetime

import click

from kardinal.api.image import stored_versions
from kardinal.api.names import LABEL_PIPELINE, label_value
from kardinal.cli.output import age, one_line, print_documents, print_table, state_text
from kardinal.cli.session import TABLES, Session, cluster_command, table_option
from kardinal.objects import BUNDLE, JsonObject
from kardinal.objects.conditions import find_condition

__all__ = ["bundles"]


@click.command()
@click.argument("pipeline")
@table_option
@cluster_command
async def bundles(session: Session, *, pipeline: str, output: str) -> None:
    """List the Bundles of a Pipeline, newest first, with where they came from."""
    await session.stored_pipeline(pipeline)
    labels = f"{LABEL_PIPELINE}={label_value(pipeline)}"
    found = (await session.client.list(BUNDLE, session.namespace, labels=labels)).items
    if output not in TABLES:
        print_documents(found, output)
        return
    listed = sorted(found, key=_age, reverse=True)
    rows = [[*_row(bundle), *([_message(bundle)] if output == "wide" else [])] for bundle in listed]
    headers = ["BUNDLE", "VERSION", "PHASE", "ENVIRONMENTS", "COMMIT", "AUTHOR", "AGE"]
    # The versions of several artifacts may be wrapped between them; one version never needs a line of its own.
    several = ["VERSION"] if any(" " in row[headers.index("VERSION")] for row in rows) else []
    print_table(
        [*headers, *(["MESSAGE"] if output == "wide" else [])],
        rows,
        empty=f"No Bundles. Create one: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
        prose=(*several, "ENVIRONMENTS", "AUTHOR", "MESSAGE"),
    )


def _message(bundle: JsonObject) -> str:
    ready = find_condition(bundle.get("status") or {}, "Ready")
    return one_line(ready.get("message") or "") if ready else ""


def _row(bundle: JsonObject) -> list[str]:
    spec, status = bundle["spec"], bundle.get("status") or {}
    provenance = spec.get("provenance") or {}
    environments = status.get("environments") or {}
    return [
        bundle["metadata"]["name"],
        stored_versions(spec["artifacts"]),
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
