"""`kardinal get`: lists of Pipelines, Bundles and the steps of a promotion, and those that other packages add.

pipelines   `kardinal get pipelines`
bundles     `kardinal get bundles`
steps       `kardinal get steps`

`kardinal.cli.kinds` says how a package adds one. The commands of this package are found without a look at packages.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from kardinal.cli.kinds import added_lists
from kardinal.cli.lazy import LazyCommand, LazyGroup

__all__ = ["get"]

_COMMANDS = {
    command.name: command
    for command in (
        LazyCommand(
            "bundles",
            "kardinal.cli.get.bundles:bundles",
            "List the Bundles of a Pipeline, newest first, with where they came from.",
        ),
        LazyCommand(
            "pipelines",
            "kardinal.cli.get.pipelines:pipelines",
            "List Pipelines with the Bundle that is verified in each environment.",
        ),
        LazyCommand(
            "steps",
            "kardinal.cli.get.steps:steps",
            "Show the PromotionSteps and PolicyGates of a Bundle with their states.",
        ),
    )
}


class _Group(LazyGroup):
    def declared(self) -> Mapping[str, LazyCommand]:
        return {**_COMMANDS, **dict(sorted(added_lists().items()))}

    def find(self, name: str) -> LazyCommand | None:
        return _COMMANDS.get(name) or added_lists().get(name)


@click.group(cls=_Group)
def get() -> None:
    """Show Pipelines, Bundles or the steps of a promotion."""
