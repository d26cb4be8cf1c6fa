"""The start of a program, and its options for logging."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

import click

from kardinal.runtime.descriptors import raise_limit
from kardinal.runtime.logging import configure

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop
except ImportError:
    new_event_loop = asyncio.new_event_loop

__all__ = ["logging_options", "run"]

Result = TypeVar("Result")

LEVELS = ("debug", "info", "warning", "error")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, on uvloop if it is installed, after raising the limit on file descriptors."""
    raise_limit()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def logging_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options --log-level and --log-format; logging is configured before the command runs."""

    @click.option("--log-level", type=click.Choice(LEVELS), default="info")
    @click.option(
        "--log-format", type=click.Choice(["json", "console"]), help="Default: console on a terminal, else JSON."
    )
    @wraps(function)
    def command(*, log_level: str, log_format: str | None, **options: Any) -> None:
        configure(level=log_level, json=None if log_format is None else log_format == "json")
        function(**options)

    return command
