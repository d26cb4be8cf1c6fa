"""The entry point. A command is imported when it is called: `kardinal version` does not pay for `kardinal demo`.

Other packages add commands by entry points of the group `kardinal.commands`. An entry point whose package is not
installed is passed over: the images of the programs hold the metadata of the whole project and not all of its packages.

Exit codes: 0 done, 1 failed, 2 called wrongly.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

import click

__all__ = ["main"]

_COMMANDS = {
    "init": "kardinal.cli.init:init",
    "get": "kardinal.cli.get:get",
    "create": "kardinal.cli.create:create",
    "promote": "kardinal.cli.promote:promote",
    "explain": "kardinal.cli.explain:explain",
    "pause": "kardinal.cli.pause:pause",
    "resume": "kardinal.cli.pause:resume",
    "pr": "kardinal.cli.pr:pr",
    "version": "kardinal.cli.version:version",
}

_GROUP = "kardinal.commands"


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *sorted(_added())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            module, _, name = _COMMANDS[cmd_name].partition(":")
            return _checked(getattr(import_module(module), name), cmd_name)
        found = _added().get(cmd_name)
        return _checked(found.load(), cmd_name) if found is not None else None


def _added() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name."""
    found = entry_points(group=_GROUP)
    return {entry.name: entry for entry in found if find_spec(entry.module.partition(".")[0]) is not None}


def _checked(command: object, name: str) -> click.Command:
    if not isinstance(command, click.Command):
        raise click.ClickException(f"the entry point {name} of {_GROUP} is not a click command")
    return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Promote versioned artifacts through environments by Git, policy and health.

    Start with `kardinal demo`, which needs no cluster. Exit codes: 0 done, 1 failed, 2 called wrongly.
    """
