"""The options of the controller: its own, and those of the agent that it runs in standalone mode."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import click

from kardinal.promotion.api.names import SYSTEM_NAMESPACE
from kardinal.runtime.options import address, address_setting, metrics_auth_setting, patterns, setting, settings_of
from kardinal_agent.options import AgentOptions
from kardinal_controller.metric_checks.servers import MetricHost
from kardinal_controller.ui.options import UiOptions

__all__ = ["ControllerOptions", "metric_hosts"]

_NAMESPACE = re.compile(r"\*|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def _names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def metric_hosts(values: tuple[str, ...]) -> tuple[MetricHost, ...]:
    """Parse servers with the namespaces that may ask them, such as `prometheus.monitoring:9090=platform-policies`."""
    return tuple(_metric_host(part.strip()) for value in values for part in value.split(",") if part.strip())


def _metric_host(text: str) -> MetricHost:
    host, equals, named = text.partition("=")
    namespaces = tuple(name.strip() for name in named.split("+") if name.strip())
    if not equals or not namespaces or not all(map(_NAMESPACE.fullmatch, namespaces)):
        raise click.BadParameter(
            f"{text!r} is not HOST[:PORT]=NAMESPACE+NAMESPACE; * is every namespace, and no part of a name"
        )
    return MetricHost(patterns((host,))[0], namespaces)


def _graph_engine(value: str) -> str:
    if value == "external":
        raise click.BadParameter(
            "no external controller can be run: this version has the engine of Graphs built in, and needs no other"
        )
    if value != "builtin":
        raise click.BadParameter(f"{value!r} is not builtin")
    return value


def _any_port() -> str:
    return "127.0.0.1:0"


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """The settings of the program, as its command line gives them."""

    policy_namespaces: tuple[str, ...] = setting(
        "--policy-namespaces",
        default="platform-policies",
        metavar="NAME,…",
        read=_names,
        help="Namespaces whose gates hold for every Pipeline.",
    )
    agent: AgentOptions = settings_of(AgentOptions)
    """The options of the agent. The control plane refuses the repositories that the agent would refuse."""
    graph_engine: str = setting(
        "--graph-engine",
        default="builtin",
        metavar="builtin",
        read=_graph_engine,
        help="What walks Graphs; external is refused: no other controller can be run.",
    )
    allow_registries: tuple[str, ...] = setting(
        "--allow-registries",
        multiple=True,
        metavar="HOST[:PORT],…",
        read=patterns,
        help="Registries, with their token services, that are asked which digests the tags of Bundles have. "
        "Default: none.",
    )
    approvals_by_admission: bool = setting(
        "--approvals-by-admission",
        is_flag=True,
        help="Count Approvals that people create themselves, while deploy/admission/ is proven to refuse forged ones.",
    )
    allow_metric_hosts: tuple[MetricHost, ...] = setting(
        "--allow-metric-hosts",
        multiple=True,
        metavar="HOST[:PORT]=NS+NS,…",
        read=metric_hosts,
        help="Servers that MetricChecks ask, and the namespaces of these checks; * for all. Default: none.",
    )
    standalone: bool = setting(
        "--standalone/--no-standalone",
        default=True,
        help="Also execute the promotions that no shard claims.",
    )
    api_address: str = setting(
        "--api-bind-address",
        default=":8083",
        metavar="HOST:PORT",
        read=address,
        unset=_any_port,
        help="Where Bundles are posted to.",
    )
    api_connections_per_address: int = setting(
        "--api-connections-per-address",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Connections of one client address; 0 for any number, as behind an ingress, whose address all have.",
    )
    metrics_address: str | None = address_setting("--metrics-bind-address", default=":8080", help="/metrics")
    metrics_auth: Literal["token", "none"] = metrics_auth_setting()
    probe_address: str | None = address_setting(
        "--health-probe-bind-address", default=":8081", help="/healthz and /readyz"
    )
    ui: UiOptions = settings_of(UiOptions)
    """The options of the web page."""
    system_namespace: str = SYSTEM_NAMESPACE
    """The namespace of the controller itself."""
