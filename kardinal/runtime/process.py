"""The command line options that the programs share, and how a program runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from kardinal.runtime.addresses import split_address
from kardinal.runtime.descriptors import raise_limit
from kardinal.runtime.logging import configure

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop
except ImportError:
    new_event_loop = asyncio.new_event_loop

__all__ = ["address_option", "git_cache_option", "health_options", "logging_options", "metrics_auth_option", "run"]

Result = TypeVar("Result")

_PATTERN = re.compile(r"[a-z0-9*-]{1,63}")

LEVELS = ("debug", "info", "warning", "error")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, on uvloop where it is installed, with as many descriptors as the process may have."""
    raise_limit()
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

metrics_auth_option = click.option(
    "--metrics-auth",
    type=click.Choice(["token", "none"]),
    default="token",
    help="Who may read /metrics: bearer tokens of accounts that RBAC allows it, or everyone.",
)
"""Gives `metrics_auth`."""

git_cache_option = click.option(
    "--git-cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/cache/kardinal"),
    help="Mirrors of repositories; may be emptied while nothing runs.",
)


def _patterns(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    patterns = tuple(pattern.strip() for pattern in value.split(",") if pattern.strip())
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            raise click.BadParameter(f"{pattern!r} is no name of a namespace, in which * stands for any characters")
    return patterns


def health_options(function: Callable[..., None]) -> Callable[..., None]:
    """--health-namespaces and --quote-namespaces, each as a tuple of patterns."""
    namespaces = partial(click.option, metavar="PATTERN,…", default="", show_default=False, callback=_patterns)
    quote = namespaces(
        "--quote-namespaces",
        help="Namespaces whose workloads are quoted to every Pipeline: images, messages, numbers. Default: none; "
        "others are quoted to those that their annotation kardinal.io/pipelines-from names.",
    )
    health = namespaces(
        "--health-namespaces",
        help="Namespaces whose workloads may prove an environment. "
        "Default: all but kube-*, kardinal-system and those of policies.",
    )
    return health(quote(function))


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
