"""`kardinal catalog show`: the merged hierarchy of a cluster, without rendering it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kardinal.catalog.compile import Collated, collate
from kardinal.catalog.hierarchy import BOOTSTRAP
from kardinal.catalog.inventory import find_cluster
from kardinal.catalog.lock import Locks
from kardinal.cli.catalog.session import (
    documents_option,
    format_option,
    offline_option,
    open_session,
    run_catalog_command,
)
from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_table, print_value, say
from kardinal.objects import JsonObject
from kardinal.objects.suggestions import nearest

__all__ = ["show"]

_PARTS = ("components", "packages", "classes", "parameters", "targets")


@click.command()
@click.argument("cluster")
@click.argument("part", type=click.Choice(_PARTS), default="components")
@click.argument("path", required=False)
@documents_option
@click.option("--instance", help="Show the classes and parameters that this instance sees; default: the cluster's.")
@click.option("--why", metavar="PATH", help="List the classes that set a parameter, such as nginx.replicas, in order.")
@offline_option
@format_option
def show(
    *,
    cluster: str,
    part: str,
    path: str | None,
    paths: tuple[Path, ...],
    instance: str | None,
    why: str | None,
    offline: bool,
    output: str,
) -> None:
    """Show the components, packages, classes, parameters or targets of a cluster.

    PATH leads to one parameter, such as nginx.replicas. Every version is resolved now; no lock is read.
    """
    if path is not None and part != "parameters":
        raise click.UsageError("a PATH leads to one of the parameters: write `parameters PATH`")

    async def run() -> tuple[Collated, Sequence[tuple[str, object]]]:
        async with open_session(paths, offline=offline) as session:
            found = find_cluster(session.clusters, cluster)
            collated = await collate(found, sources=session.sources, engine=session.engine, locks=Locks())
            if why is None:
                return collated, ()
            node = collated.nodes[_node(collated, instance)]
            return collated, await session.engine.origin(collated.layout, node, why)

    collated, origin = run_catalog_command(run, output=output)
    if why is not None:
        _print_origin(origin, why, output)
    else:
        _print_part(collated, part, path, _node(collated, instance), output)


def _print_origin(origin: Sequence[tuple[str, object]], why: str, output: str) -> None:
    if output == "json":
        print_value([{"class": name, "value": value} for name, value in origin], "json")
        return
    rows = [(name, json.dumps(value, ensure_ascii=False)) for name, value in origin]
    print_table(["CLASS", "VALUE"], rows, empty=f"no class sets {why}", prose=["VALUE"])


def _print_part(collated: Collated, part: str, path: str | None, node: str, output: str) -> None:
    merged = collated.merged[node]
    match part:
        case "classes":
            _print_lines(merged.classes, output)
        case "targets":
            _print_lines([instance.name for instance in collated.instances], output)
        case "parameters":
            value = _at(merged.parameters, path) if path else merged.parameters
            print_value(value, "json" if output == "json" else "yaml")
        case _:
            _print_versions(collated, part.removesuffix("s"), output)


def _print_versions(collated: Collated, kind: str, output: str) -> None:
    found = [version for version in collated.fetcher.versions if version.kind == kind]
    if output == "json":
        rows = [
            {"name": each.name, "version": each.requested, "commit": each.resolved, "url": each.url} for each in found
        ]
        print_value(rows, "json")
        return
    table = [(each.name, each.requested, each.resolved[:8], each.url) for each in found]
    print_table(["NAME", "VERSION", "COMMIT", "URL"], table, empty=f"the cluster has no {kind}")


def _print_lines(lines: Sequence[str], output: str) -> None:
    if output == "json":
        print_value(list(lines), "json")
        return
    for line in lines:
        say(line)


def _node(collated: Collated, instance: str | None) -> str:
    if instance is None:
        return BOOTSTRAP
    names = [each.name for each in collated.instances]
    if instance in names:
        return instance
    near = nearest(instance, names)
    raise CommandError(
        f"the cluster has no instance {instance}",
        remedy=f"Did you mean {near}?" if near else f"There are: {', '.join(names)}",
    )


def _at(parameters: JsonObject, path: str) -> Any:
    """Return the value of a parameter; `path` has dots between its keys."""
    value: Any = parameters
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise CommandError(f"there is no parameter {path}")
        value = value[key]
    return value
