"""`kardinal get pipelines`."""

from __future__ import annotations

import click

from kardinal.cli.output import age, one_line, print_documents, print_table, state_text
from kardinal.cli.session import TABLES, Session, cluster_command, table_option
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.views.pipelines import PipelineLine, pipeline_lines
from kardinal.promotion.views.reader import stored_pipeline

__all__ = ["pipelines"]


@click.command()
@click.argument("name", required=False)
@table_option
@cluster_command
async def pipelines(session: Session, *, name: str | None, output: str) -> None:
    """List Pipelines with the Bundle that is verified in each environment."""
    reader = session.reader
    namespace = session.namespace
    found = [await stored_pipeline(reader, namespace, name)] if name is not None else await reader.pipelines(namespace)
    if output not in TABLES:
        print_documents(found, output)
        return
    lines = pipeline_lines(
        map(Pipeline.model_validate, found),
        bundles=map(Bundle.model_validate, await reader.bundles(namespace)),
        gates=await reader.gates(namespace),
    )
    wide = output == "wide"
    print_table(
        ["PIPELINE", "READY", "VERIFIED", "AGE", *(["MESSAGE"] if wide else [])],
        [[*_row(line), *([one_line(line.message)] if wide else [])] for line in lines],
        empty=f"No Pipelines in namespace {namespace}. Create one: kardinal init -f kardinal.yaml",
        prose=("VERIFIED", "MESSAGE"),
    )


def _row(line: PipelineLine) -> list[str]:
    return [
        f"{line.name} (paused)" if line.paused else line.name,
        state_text(line.ready),
        "  ".join(f"{name}={version or '-'}" for name, version in line.verified.items()),
        age(line.created),
    ]
