"""Commands that are declared without being imported: `kardinal --help` lists them, and imports none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module

import click

__all__ = ["IMPORTING", "LazyCommand", "LazyGroup"]

IMPORTING = "kardinal.importing"
"""Key of the context's `meta`: a context manager of the entry point, inside which commands are imported."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command of `kardinal`, which other packages register as an entry point of the group `kardinal.commands`.

    `help` is the first paragraph of the command's own help text; a test compares them. `target` is "module:attribute".
    """

    name: str
    target: str
    help: str

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise click.ClickException(f"{self.target}, declared as the command {self.name}, is not a click command")
        return command

    def short_help(self, limit: int) -> str:
        """Return what click would print of the command in a list, in at most `limit` characters."""
        return click.Command(self.name, help=self.help).get_short_help_str(limit)


class LazyGroup(click.Group):
    """A group of declared commands: its help imports none, and a call imports one."""

    def declared(self) -> Mapping[str, LazyCommand]:
        """Return the commands by name, in the order of the help."""
        raise TypeError(f"{type(self).__name__} declares no commands")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.declared())

    def find(self, name: str) -> LazyCommand | None:
        """Return the command of that name."""
        return self.declared().get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        near = get_close_matches(name, self.declared(), n=1)
        if near and not ctx.resilient_parsing and self.find(name) is None:
            ctx.fail(f"No such command {name!r}. Did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self.find(cmd_name)
        if found is None:
            return None
        with ctx.meta.get(IMPORTING, nullcontext)():
            return found.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands as click would, from their declarations."""
        declared = self.declared()
        limit = formatter.width - 6 - max(map(len, declared))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.short_help(limit)) for name, command in declared.items()])
