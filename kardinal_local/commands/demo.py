"""`kardinal demo`. The demo itself is `kardinal_local.walkthrough`, which is imported when the command is called."""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from kardinal.runtime.logging import configure
from kardinal.runtime.process import run

__all__ = ["demo"]


@click.command()
@click.option("--yes", is_flag=True, help="Merge the pull request without asking.")
@click.option("--keep", is_flag=True, help="Leave everything running at the end, until Ctrl-C.")
def demo(*, yes: bool, keep: bool) -> None:
    """Watch a Bundle go dev, staging, prod: commits, a gate, a pull request and health, in under a minute."""
    from kardinal_local.walkthrough import walk_through  # noqa: PLC0415 - a second, which `kardinal --help` does not pay

    configure(level="error")
    try:
        run(walk_through(ask=not yes and sys.stdin.isatty() and sys.stdout.isatty(), keep=keep))
    except asyncio.CancelledError:
        raise click.exceptions.Exit(128 + signal.SIGTERM) from None
