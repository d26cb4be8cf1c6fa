"""The command line options that the programs share, and how a program runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from kardinal.runtime.addresses import split_address
from kardinal.runtime.logging import configure

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop
except ImportError:
    new_event_loop = asyncio.new_event_loop

__all__ = ["address_option", "git_cache_option", "logging_options", "run"]

Result = TypeVar("Result")

LEVELS = ("debug", "info", "warning", "error")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, on uvloop where it is installed."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def _checked(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        split_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


address_option = partial(click.option, metavar="HOST:PORT", callback=_checked)
"""An option for an address to listen on; what is no address is a usage error."""

git_cache_option = click.option(
    "--git-cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/cache/kardinal"),
    help="Mirrors of repositories; may be emptied while nothing runs.",
)


def logging_options(function: Callable[..., None]) -> Callable[..., None]:
    """--log-level and --log-format; logging is set up before the command begins."""

    @click.option("--log-level", type=click.Choice(LEVELS), default="info")
    @click.option(
        "--log-format", type=click.Choice(["json", "console"]), help="Default: console on a terminal, else JSON."
    )
    @wraps(function)
    def command(*, log_level: str, log_format: str | None, **options: Any) -> None:
        configure(level=log_level, json=None if log_format is None else log_format == "json")
        function(**options)

    return command
