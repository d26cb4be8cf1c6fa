"""`kardinal export graph`: draw a Graph for Mermaid, Graphviz or a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kardinal.cli.errors import CommandError
from kardinal.cli.files import read_file, read_input
from kardinal.cli.manifests import ManifestError, read_manifests
from kardinal.cli.output import say
from kardinal.cli.session import Session, cluster_command, cluster_options
from kardinal.graph import GraphError, compile_graph
from kardinal.graph.drawing import FORMATS, drawing_of
from kardinal.kube import NotFound
from kardinal.objects import GRAPH, JsonObject

__all__ = ["export"]


@click.group()
def export() -> None:
    """Draw a Graph for Mermaid, Graphviz or a program."""


@export.command("graph")
@click.argument("name", required=False)
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    help="A file with one Graph, or - for standard input, instead of one in the cluster.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(list(FORMATS)),
    default="mermaid",
    show_default=True,
    help="The format of the drawing.",
)
@cluster_options
def graph(name: str | None, path: Path | None, output: str, **connection: Any) -> None:
    """Draw a Graph with the states of its nodes.

    The Graph of a Bundle has the name of the Bundle.
    """
    if path is not None and name is None:
        _draw(_graph_in(path), output)
    elif name is not None and path is None:
        _draw_from_cluster(name=name, output=output, **connection)
    else:
        raise click.UsageError("Give the name of a Graph, or a file with -f.")


@cluster_command
async def _draw_from_cluster(session: Session, *, name: str, output: str) -> None:
    try:
        found = await session.client.get(GRAPH, name, session.namespace)
    except NotFound:
        remedy = f"List them: kubectl get graphs -n {session.namespace}"
        raise CommandError(f"there is no Graph {name} in namespace {session.namespace}", remedy=remedy) from None
    _draw(found, output)


def _graph_in(path: Path) -> JsonObject:
    """Return the only Graph in a file."""
    text = read_input() if path == Path("-") else read_file(path)
    place = "standard input" if path == Path("-") else str(path)
    try:
        found = [each.body for each in read_manifests(text) if each.kind == (GRAPH.api_version, GRAPH.kind)]
    except ManifestError as error:
        raise CommandError(f"{place}:{error.line}: not YAML: {error}") from None
    if len(found) != 1:
        raise CommandError(
            f"{place} has {len(found)} Graphs",
            remedy=f"Give a file with one: apiVersion: {GRAPH.api_version}, kind: Graph.",
        )
    return found[0]


def _draw(found: JsonObject, output: str) -> None:
    spec = found.get("spec")
    status = found.get("status")
    try:
        compiled = compile_graph(spec if isinstance(spec, dict) else {})
    except GraphError as error:
        raise CommandError(
            f"the Graph does not compile: {error}", remedy="kardinal lint -f FILE names the line of each problem."
        ) from None
    say(FORMATS[output](drawing_of(compiled, status if isinstance(status, dict) else {})))
