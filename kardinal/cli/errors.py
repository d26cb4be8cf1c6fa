"""How a command fails: 1 when it could not do its work, 2 when it was called wrongly (click's own code for usage)."""

from __future__ import annotations

import click

from kardinal.cli.styles import visible

__all__ = ["CommandError"]


class CommandError(click.ClickException):
    """A failure a person can do something about: what happened, and what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        # Messages quote servers, hosts and the names of files.
        super().__init__(visible(f"{message}\n  {remedy}" if remedy else message))
