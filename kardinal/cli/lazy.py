"""Declare commands without importing them: `kardinal --help` lists all commands, and imports none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

import click

__all__ = ["LazyCommand", "LazyGroup"]


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """The declaration of a command, which is imported when the command is called.

    Other packages register declarations as entry points of the group `kardinal.commands`. `target` is
    "module:attribute", for example `kardinal.cli.init:init`. `help` is the first paragraph of the command's help text;
    a test compares them.
    """

    name: str
    target: str
    help: str

    def load(self) -> click.Command:
        """Import the command. Raises `click.ClickException` if `target` is not a click command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise click.ClickException(f"{self.target}, declared as the command {self.name}, is not a click command")
        return command

    def short_help(self, limit: int) -> str:
        """Return the help text that click prints in a list of commands, of at most `limit` characters."""
        return click.Command(self.name, help=self.help).get_short_help_str(limit)


class LazyGroup(click.Group):
    """A group of declared commands: its help imports no command, and a call imports only the called command."""

    def declared(self) -> Mapping[str, LazyCommand]:
        """Return the declarations by name, in the order of the help. Subclasses override it."""
        raise TypeError(f"{type(self).__name__} declares no commands")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.declared())

    def find(self, name: str) -> LazyCommand | None:
        """Return the declaration of that name; None if there is none."""
        return self.declared().get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        # A command that is found needs no declaration of another package.
        if not ctx.resilient_parsing and self.find(name) is None:
            near = get_close_matches(name, self.declared(), n=1)
            if near:
                ctx.fail(f"No such command {name!r}. Did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.find(cmd_name)
        return found.load() if found is not None else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands as click would, from their declarations."""
        declared = self.declared()
        limit = formatter.width - 6 - max(map(len, declared))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.short_help(limit)) for name, command in declared.items()])
