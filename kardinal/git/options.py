"""The command line options about Git that the programs share."""

from __future__ import annotations

import re

import click

from kardinal.api.duration import DurationError, parse_duration

__all__ = ["git_hosts_option", "git_transfer_option"]

_PATTERN = re.compile(r"[\w.*\[\]-]+(:[\w.*:\[\]]+)?")


def _patterns(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    patterns = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            raise click.BadParameter(f"{pattern!r} is not host[:port]; * stands for any characters")
    return patterns


def _seconds(_: click.Context, __: click.Parameter, value: str) -> float:
    try:
        seconds = parse_duration(value).total_seconds()
    except DurationError as error:
        raise click.BadParameter(str(error)) from None
    if seconds <= 0:
        raise click.BadParameter("must be longer than nothing")
    return seconds


git_hosts_option = click.option(
    "--allow-git-hosts",
    multiple=True,
    metavar="HOST[:PORT],…",
    callback=_patterns,
    help="The only Git hosts to contact; * stands for any characters, no port for that of https. Default: all.",
)
"""Gives `allow_git_hosts`, a tuple of patterns."""

git_transfer_option = click.option(
    "--git-transfer-max",
    default="1h",
    metavar="DURATION",
    callback=_seconds,
    help="How long one fetch from or push to a Git host may take, however much it moves.",
)
"""Gives `git_transfer_max` in seconds."""
