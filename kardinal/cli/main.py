"""The entry point. A command is imported when it is called: `kardinal version` does not pay for `kardinal demo`.

Exit codes: 0 done, 1 failed, 2 called wrongly.
"""

from __future__ import annotations

from importlib import import_module

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
    "local": "kardinal.cli.local:local",
    "demo": "kardinal.cli.demo:demo",
    "version": "kardinal.cli.version:version",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Promote versioned artifacts through environments by Git, policy and health.

    Start with `kardinal demo`, which needs no cluster. Exit codes: 0 done, 1 failed, 2 called wrongly.
    """
