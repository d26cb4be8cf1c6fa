"""Metric servers as the program asks them, and Secrets for them."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from kardinal.clock import SystemClock
from kardinal.extensions import BUILTIN_METRICS
from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_METRICS, LABEL_CREDENTIALS
from kardinal.promotion.api.metric_check import MetricServer
from kardinal.promotion.metrics.provider import MetricProvider
from kardinal_controller.metric_checks import MetricServers
from kardinal_controller.metric_checks.secrets import MetricSecrets
from kardinal_controller.metric_checks.servers import MetricHost
from kardinal_controller.program import metric_requests
from tests.support.names import TEAM
from tests.support.world import World

__all__ = ["asking", "at", "metric_secret"]


def asking(
    world: World, *hosts: MetricHost, providers: Mapping[str, MetricProvider] = BUILTIN_METRICS
) -> MetricServers:
    secrets = MetricSecrets(world.client, clock=SystemClock())
    return MetricServers(hosts, providers, secrets=secrets, requests=metric_requests)


def metric_secret(hosts: str, *, label: str = CREDENTIALS_METRICS, **data: str) -> JsonObject:
    """Return a Secret `prometheus` with `data`, that says it is for `hosts`."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "prometheus",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: label},
            "annotations": {ANNOTATION_HOSTS: hosts},
        },
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
    }


def at(address: str, *, secret: bool = False, kind: str = "prometheus") -> MetricServer:
    """Return the server of a check, with the Secret of `metric_secret` if it is asked with one."""
    reference = {"secretRef": {"name": "prometheus"}} if secret else {}
    return MetricServer.model_validate({"type": kind, "address": address, **reference})
