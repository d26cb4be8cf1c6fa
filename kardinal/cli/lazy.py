"""Commands that are declared without being imported: `kardinal --help` lists them, and imports none."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import click

__all__ = ["LazyCommand"]


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
