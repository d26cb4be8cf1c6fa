"""The command line options about Git that the programs share."""

from __future__ import annotations

import re

import click

__all__ = ["git_hosts_option"]

_PATTERN = re.compile(r"[\w.*\[\]-]+(:[\w.*:\[\]]+)?")


def _patterns(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    patterns = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            raise click.BadParameter(f"{pattern!r} is not host[:port]; * stands for any characters")
    return patterns


git_hosts_option = click.option(
    "--allow-git-hosts",
    multiple=True,
    metavar="HOST[:PORT],…",
    callback=_patterns,
    help="The only Git hosts to contact; * stands for any characters, no port for that of https. Default: all.",
)
"""Gives `allow_git_hosts`, a tuple of patterns."""
