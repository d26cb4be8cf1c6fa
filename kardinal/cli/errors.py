"""The error of a command that fails with exit code 1. Usage errors have exit code 2, which click sets."""

from __future__ import annotations

import click

from kardinal.cli.styles import visible

__all__ = ["CommandError"]


class CommandError(click.ClickException):
    """A failure that the user can fix: a message about the failure, and a remedy on the next line."""

    exit_code = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        # Messages quote text of API servers, hosts and file names, which may hold control characters.
        super().__init__(visible(f"{message}\n  {remedy}" if remedy else message))
