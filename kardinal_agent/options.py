"""The options of an agent: as a program of its own, and as a part of the controller in standalone mode."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from kardinal.runtime.options import (
    address_setting,
    hosts,
    interval,
    metrics_auth_setting,
    namespace_patterns,
    patterns,
    seconds,
    setting,
    size,
)

__all__ = ["AgentOptions"]

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PAIR = re.compile(rf"({_NAME.pattern})=({_NAME.pattern})")


def _shard(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a shard: use up to 63 lower-case letters, digits and '-'")
    return value


def _namespaces(values: tuple[str, ...]) -> dict[str, str]:
    mapped: dict[str, str] = {}
    for value in values:
        pair = _PAIR.fullmatch(value)
        if pair is None or pair[1] in mapped:
            raise click.BadParameter(f"{value!r} is not HUB=LOCAL, two namespaces, each HUB once")
        mapped[pair[1]] = pair[2]
    return mapped


def _no_shard() -> None:
    return None


def _temporary_directory() -> Path:
    return Path(tempfile.gettempdir()) / "kardinal"


@dataclass(frozen=True)
class AgentOptions:
    """The settings of an agent. An option that says `alone` is not one of the controller.

    Without `shard` an agent serves the PromotionSteps that name none, and without `namespace` those of all namespaces.
    """

    shard: str | None = setting(
        "--shard",
        required=True,
        read=_shard,
        unset=_no_shard,
        alone=True,
        help="The environments' shard to serve.",
    )
    namespace: str | None = setting(
        "--namespace", "-n", alone=True, help="Serve the PromotionSteps of one namespace only."
    )
    allow_local_repositories: bool = setting(
        "--allow-local-repositories", is_flag=True, help="Accept file:// URLs and paths as repositories."
    )
    allow_bypassing_hooks: bool = setting(
        "--allow-bypassing-hooks",
        is_flag=True,
        help="Change repositories on this machine that have hooks, which do not run then.",
    )
    health_namespaces: tuple[str, ...] = setting(
        "--health-namespaces",
        metavar="PATTERN,…",
        default="",
        show_default=False,
        read=namespace_patterns,
        help="Namespaces whose workloads may prove an environment. "
        "Default: all but kube-*, kardinal-system and those of policies.",
    )
    quote_namespaces: tuple[str, ...] = setting(
        "--quote-namespaces",
        metavar="PATTERN,…",
        default="",
        show_default=False,
        read=namespace_patterns,
        help="Namespaces whose workloads are quoted to every Pipeline: images, messages, numbers. Default: none; "
        "others are quoted to those that their annotation kardinal.io/pipelines-from names.",
    )
    policy_namespaces: tuple[str, ...] = ()
    """Namespaces of gates for every Pipeline, which the controller knows. Their workloads prove no environment."""
    allow_git_hosts: tuple[str, ...] = setting(
        "--allow-git-hosts",
        multiple=True,
        metavar="HOST[:PORT],…",
        read=patterns,
        help="The only Git hosts to contact; * stands for any characters, no port for that of https. Default: all.",
    )
    allow_insecure_git: tuple[str, ...] = setting(
        "--allow-insecure-git",
        multiple=True,
        metavar="HOST[:PORT],…",
        read=hosts,
        help="Git hosts to speak http:// to, which sends credentials in the clear; no port for 80. "
        "Default: this machine.",
    )
    git_transfer_max: float = setting(
        "--git-transfer-max",
        default="1h",
        metavar="DURATION",
        read=seconds,
        help="How long one fetch from or push to a Git host may take, however much it moves.",
    )
    allow_remote_bases: bool = setting(
        "--allow-remote-bases",
        is_flag=True,
        help="Let kustomizations that are rendered fetch from any host that this program reaches.",
    )
    allow_helm_inflation: bool = setting(
        "--allow-helm-inflation", is_flag=True, help="Let kustomizations that are rendered run helm on charts."
    )
    require_renderer_isolation: bool = setting(
        "--require-renderer-isolation",
        is_flag=True,
        help="Render nothing on a machine without Landlock or seccomp. Default: render, and tell of what is missing.",
    )
    scm_poll_interval: float = setting(
        "--scm-poll-interval",
        default="5m",
        metavar="DURATION",
        read=interval,
        help="How often the open pull requests of a repository are listed while a promotion waits for one; "
        "0 for never.",
    )
    allow_step_hosts: tuple[str, ...] = setting(
        "--allow-step-hosts",
        multiple=True,
        metavar="HOST[:PORT],…",
        read=patterns,
        help="Hosts of custom steps that may have private addresses or no TLS. Default: public hosts by https alone.",
    )
    namespace_map: Mapping[str, str] = setting(
        "--namespace-map",
        multiple=True,
        metavar="HUB=LOCAL",
        read=_namespaces,
        alone=True,
        help="Read the Secrets of the control plane's namespace HUB from LOCAL here. "
        "Default: from the one of its name.",
    )
    metrics_address: str | None = address_setting(
        "--metrics-bind-address", default=":8085", alone=True, help="/metrics"
    )
    metrics_auth: Literal["token", "none"] = metrics_auth_setting(alone=True)
    probe_address: str | None = address_setting(
        "--health-probe-bind-address", default=":8086", alone=True, help="/healthz and /readyz"
    )
    git_cache_dir: Path = setting(
        "--git-cache-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("/var/cache/kardinal"),
        unset=_temporary_directory,
        help="Mirrors of repositories; may be emptied while nothing runs.",
    )
    git_cache_max_bytes: int = setting(
        "--git-cache-max-bytes",
        default="3Gi",
        metavar="SIZE",
        read=size,
        help="How much the mirrors of repositories may take; those least recently used are deleted, none in use.",
    )
