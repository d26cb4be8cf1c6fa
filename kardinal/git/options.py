"""The command line options about hosts, of Git, of custom steps and of images, of the programs."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from kardinal.api.duration import DurationError, parse_duration

__all__ = [
    "git_bypassing_hooks_option",
    "git_cache_size_option",
    "git_hosts_option",
    "git_insecure_option",
    "git_transfer_option",
    "registries_option",
    "rendering_options",
    "scm_poll_option",
    "step_hosts_option",
]

_SIZE = re.compile(r"([0-9]{1,15})(Ki|Mi|Gi|Ti)?")
_UNITS = {None: 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}
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


git_bypassing_hooks_option = click.option(
    "--allow-bypassing-hooks",
    is_flag=True,
    help="Change repositories on this machine that have hooks, which do not run then.",
)
"""Gives `allow_bypassing_hooks`."""

git_hosts_option = click.option(
    "--allow-git-hosts",
    multiple=True,
    metavar="HOST[:PORT],…",
    callback=_patterns,
    help="The only Git hosts to contact; * stands for any characters, no port for that of https. Default: all.",
)
"""Gives `allow_git_hosts`, a tuple of patterns."""


def _hosts(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    hosts = tuple(part.strip().lower() for value in values for part in value.split(",") if part.strip())
    for host in hosts:
        if "*" in host or not _PATTERN.fullmatch(host):
            raise click.BadParameter(f"{host!r} is not host[:port]")
    return hosts


git_insecure_option = click.option(
    "--allow-insecure-git",
    multiple=True,
    metavar="HOST[:PORT],…",
    callback=_hosts,
    help="Git hosts to speak http:// to, which sends credentials in the clear; no port for 80. Default: this machine.",
)
"""Gives `allow_insecure_git`, a tuple of hosts."""

git_transfer_option = click.option(
    "--git-transfer-max",
    default="1h",
    metavar="DURATION",
    callback=_seconds,
    help="How long one fetch from or push to a Git host may take, however much it moves.",
)
"""Gives `git_transfer_max` in seconds."""


def _size(_: click.Context, __: click.Parameter, value: str) -> int:
    found = _SIZE.fullmatch(value)
    if found is None or not int(found[1]):
        raise click.BadParameter("must be a number of bytes, or of Ki, Mi, Gi or Ti")
    return int(found[1]) << _UNITS[found[2]]


git_cache_size_option = click.option(
    "--git-cache-max-bytes",
    default="3Gi",
    metavar="SIZE",
    callback=_size,
    help="How much the mirrors of repositories may take; those least recently used are deleted, none in use.",
)
"""Gives `git_cache_max_bytes`."""

_remote_bases_option = click.option(
    "--allow-remote-bases",
    is_flag=True,
    help="Let kustomizations that are rendered fetch from any host that this program reaches.",
)
_helm_inflation_option = click.option(
    "--allow-helm-inflation", is_flag=True, help="Let kustomizations that are rendered run helm on charts."
)


_isolation_option = click.option(
    "--require-renderer-isolation",
    is_flag=True,
    help="Render nothing on a machine without Landlock or seccomp. Default: render, and tell of what is missing.",
)


def rendering_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give `allow_remote_bases`, `allow_helm_inflation` and `require_renderer_isolation`, all off.

    The repository decides what the first two would run.
    """
    return _remote_bases_option(_helm_inflation_option(_isolation_option(function)))


def _interval(_: click.Context, __: click.Parameter, value: str) -> float:
    try:
        return 0.0 if value == "0" else parse_duration(value).total_seconds()
    except DurationError as error:
        raise click.BadParameter(str(error)) from None


scm_poll_option = click.option(
    "--scm-poll-interval",
    default="5m",
    metavar="DURATION",
    callback=_interval,
    help="How often the open pull requests of a repository are listed while a promotion waits for one; 0 for never.",
)
"""Gives `scm_poll_interval` in seconds."""
step_hosts_option = click.option(
    "--allow-step-hosts",
    multiple=True,
    metavar="HOST[:PORT],…",
    callback=_patterns,
    help="Hosts of custom steps that may have private addresses or no TLS. Default: public hosts by https alone.",
)
"""Gives `allow_step_hosts`, a tuple of patterns."""

registries_option = click.option(
    "--allow-registries",
    multiple=True,
    metavar="HOST[:PORT],…",
    callback=_patterns,
    help="Registries, with their token services, that are asked which digests the tags of Bundles have. Default: none.",
)
"""Gives `allow_registries`, a tuple of patterns."""
