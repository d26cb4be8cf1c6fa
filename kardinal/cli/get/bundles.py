"""`kardinal get bundles`.

This is the command that is called most. Neither it nor its view imports the pydantic models, because that would take a
third of its time.
"""

from __future__ import annotations

import click

from kardinal.cli.output import age, one_line, print_documents, print_table, state_text
from kardinal.cli.session import TABLES, Session, cluster_command, table_option
from kardinal.promotion.views.bundles import BundleLine, bundle_lines
from kardinal.promotion.views.reader import stored_pipeline

__all__ = ["bundles"]


@click.command()
@click.argument("pipeline")
@table_option
@cluster_command
async def bundles(session: Session, *, pipeline: str, output: str) -> None:
    """List the Bundles of a Pipeline, newest first, with where they came from."""
    await stored_pipeline(session.reader, session.namespace, pipeline)
    found = await session.reader.bundles(session.namespace, pipeline)
    if output not in TABLES:
        print_documents(found, output)
        return
    rows = [[*_row(line), *([one_line(line.message)] if output == "wide" else [])] for line in bundle_lines(found)]
    headers = ["BUNDLE", "VERSION", "PHASE", "ENVIRONMENTS", "COMMIT", "AUTHOR", "AGE"]
    # A cell with the versions of several artifacts may be wrapped; a single version is never wrapped.
    several = ["VERSION"] if any(" " in row[headers.index("VERSION")] for row in rows) else []
    print_table(
        [*headers, *(["MESSAGE"] if output == "wide" else [])],
        rows,
        empty=f"No Bundles. Create one: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
        prose=(*several, "ENVIRONMENTS", "AUTHOR", "MESSAGE"),
    )


def _row(line: BundleLine) -> list[str]:
    return [
        line.name,
        line.versions,
        state_text(line.phase),
        "  ".join(f"{name}={state}" for name, state in line.environments.items()),
        line.commit[:12],
        line.author,
        age(line.created),
    ]
