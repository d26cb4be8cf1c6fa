"""The group `kardinal catalog`, with the declarations of its commands."""

from __future__ import annotations

from collections.abc import Mapping

import click

from kardinal.cli.lazy import LazyCommand, LazyGroup

__all__ = ["catalog"]

_COMMANDS = {
    command.name: command
    for command in (
        LazyCommand(
            "compile",
            "kardinal.cli.catalog.compile:compile_catalogs",
            "Compile the catalog of a cluster into a directory.",
        ),
        LazyCommand(
            "show",
            "kardinal.cli.catalog.show:show",
            "Show the components, packages, classes, parameters or targets of a cluster.",
        ),
        LazyCommand(
            "import",
            "kardinal.cli.catalog.import_documents:import_documents",
            "Print the clusters and tenants of a Lieutenant as documents of kardinal.",
        ),
    )
}


class _Group(LazyGroup):
    def declared(self) -> Mapping[str, LazyCommand]:
        return _COMMANDS


@click.group(cls=_Group)
def catalog() -> None:
    """Compile catalogs: what a cluster applies, from a hierarchy of configuration in Git repositories."""
