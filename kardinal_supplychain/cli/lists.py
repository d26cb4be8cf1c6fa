"""`kardinal get workloads`, `deliverables` and `runnables`.

The rows are computed from stored objects, because importing the models would take a third of the time of a command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import click

from kardinal.cli.output import age, one_line, print_documents, print_table, say, state_text
from kardinal.cli.session import TABLES, Session, cluster_command
from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.conditions import find_condition
from kardinal_supplychain.api.kinds import DELIVERABLE, RUNNABLE, WORKLOAD
from kardinal_supplychain.cli.reading import read_all, read_named

__all__ = ["deliverables", "runnables", "workloads"]


def _list_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.argument("named", metavar="[NAME]", required=False),
        click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List those of all namespaces."),
        click.option(
            "-o",
            "--output",
            type=click.Choice([*TABLES, "json", "yaml", "name"]),
            default="table",
            show_default=True,
            help="How to print the result; wide: with messages.",
        ),
    ):
        function = option(function)
    return function


@click.command()
@_list_options
@cluster_command
async def workloads(session: Session, /, **options: Any) -> None:
    """List Workloads with the supply chain that each matches."""
    await _list(session, _WORKLOADS, **options)


@click.command()
@_list_options
@cluster_command
async def deliverables(session: Session, /, **options: Any) -> None:
    """List Deliverables with the delivery that each matches."""
    await _list(session, _DELIVERABLES, **options)


@click.command()
@_list_options
@cluster_command
async def runnables(session: Session, /, **options: Any) -> None:
    """List Runnables with the template of their runs."""
    await _list(session, _RUNNABLES, **options)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A kind with the titles and the cells of its own columns, which stand between NAME and READY."""

    resource: ResourceType
    titles: tuple[str, ...]
    cells: Callable[[JsonObject], Sequence[str]]


async def _list(session: Session, listed: _Listed, *, named: str | None, everywhere: bool, output: str) -> None:
    resource = listed.resource
    if named is not None and everywhere:
        raise click.UsageError("a name is one of a namespace: leave out the name, or --all-namespaces")
    found: Sequence[JsonObject]
    if named is not None:
        found = [await read_named(session, resource, named)]
    else:
        found = await read_all(session, resource, None if everywhere else session.namespace)
    if output == "name":
        for each in found:
            say(f"{resource.kind.lower()}.{resource.group}/{each['metadata']['name']}")
    elif output not in TABLES:
        print_documents(found, output)
    else:
        wide = output == "wide"
        print_table(
            [
                *(["NAMESPACE"] if everywhere else []),
                *("NAME", *listed.titles, "READY", "REASON", "AGE"),
                *(["MESSAGE"] if wide else []),
            ],
            [_row(listed, each, everywhere=everywhere, wide=wide) for each in found],
            empty=f"No {resource.kind}s{'' if everywhere else f' in namespace {session.namespace}'}.",
            prose=("MESSAGE",),
        )


def _row(listed: _Listed, stored: JsonObject, *, everywhere: bool, wide: bool) -> list[str]:
    metadata = stored["metadata"]
    ready = find_condition(_part(stored, "status"), "Ready") or {}
    return [
        *([metadata["namespace"]] if everywhere else []),
        metadata["name"],
        *listed.cells(stored),
        state_text(str(ready.get("status", ""))),
        str(ready.get("reason", "")),
        age(datetime.fromisoformat(metadata["creationTimestamp"])),
        *([one_line(str(ready.get("message", "")))] if wide else []),
    ]


def _part(value: JsonObject, name: str) -> dict[str, Any]:
    """Return an object in an object; an empty one if it is not set."""
    return value.get(name) or {}


def _source(stored: JsonObject) -> str:
    """Return the repository of an owner, or the image that is its source or already built."""
    spec = _part(stored, "spec")
    source = _part(spec, "source")
    return str(_part(source, "git").get("url") or source.get("image") or spec.get("image") or "")


def _workload_cells(stored: JsonObject) -> Sequence[str]:
    return [_source(stored), str(_part(_part(stored, "status"), "supplyChainRef").get("name", ""))]


def _deliverable_cells(stored: JsonObject) -> Sequence[str]:
    return [_source(stored), str(_part(_part(stored, "status"), "deliveryRef").get("name", ""))]


def _runnable_cells(stored: JsonObject) -> Sequence[str]:
    return [str(_part(_part(stored, "spec"), "runTemplateRef").get("name", ""))]


_WORKLOADS: Final = _Listed(WORKLOAD, ("SOURCE", "SUPPLYCHAIN"), _workload_cells)
_DELIVERABLES: Final = _Listed(DELIVERABLE, ("SOURCE", "DELIVERY"), _deliverable_cells)
_RUNNABLES: Final = _Listed(RUNNABLE, ("TEMPLATE",), _runnable_cells)
