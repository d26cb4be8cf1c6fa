"""`kardinal get steps`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from kardinal.cli.output import one_line, print_documents, print_table, say, state_text
from kardinal.cli.session import TABLES, Session, cluster_command, table_option
from kardinal.objects import JsonObject
from kardinal.promotion.api.image import bundle_versions
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.views.missing import no_bundle
from kardinal.promotion.views.reading import read_objects
from kardinal.promotion.views.render_failures import read_render_failures
from kardinal.promotion.views.states import phase_of
from kardinal.promotion.views.status import unattended
from kardinal.promotion.views.steps import NodeLine, node_lines

__all__ = ["steps"]


@click.command()
@click.argument("pipeline")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@table_option
@cluster_command
async def steps(session: Session, *, pipeline: str, name: str | None, output: str) -> None:
    """Show the PromotionSteps and PolicyGates of a Bundle with their states.

    Once they are gone with their Graph, it shows what the Bundle keeps of them; with -o json and -o yaml the Bundle.
    """
    objects = await read_objects(session.reader, session.namespace, pipeline, name)
    bundle = objects.bundle
    if bundle is None:
        raise no_bundle(pipeline)
    if output not in TABLES:
        print_documents(await _documents(session, bundle.metadata.name), output)
        return
    lines = node_lines(objects, await read_render_failures(session.reader, session.namespace))
    versions = bundle_versions(bundle.spec.artifacts)
    say(f"Bundle {bundle.metadata.name} ({versions}): {phase_of(bundle)}", err=True)
    if warning := unattended([objects.pipeline, bundle], now=datetime.now(UTC)):
        say(f"Note: {warning}", err=True)
    print_table(["ENVIRONMENT", "NODE", "STATE", "MESSAGE"], list(map(_row, lines)), empty="", prose=("MESSAGE",))


async def _documents(session: Session, bundle: str) -> list[JsonObject]:
    reader = session.reader
    stored = [*await reader.steps(session.namespace, bundle), *await reader.instances(session.namespace, bundle)]
    return stored or [await session.client.get(BUNDLE, bundle, session.namespace)]


def _row(line: NodeLine) -> list[str]:
    node = f"gate {line.gate.name} [{line.gate.scope}]" if line.gate is not None else "step"
    return [line.environment, node, state_text(line.state), one_line(line.message)]
