"""Pipelines, Bundles and gates as values, and what to look for in a Graph."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.policy.matching import GateTemplate, collect
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import translate
from tests.support import objects
from tests.support.registry import REGISTRY

__all__ = [
    "MORNING",
    "bundle",
    "edges",
    "gates",
    "identifiers",
    "node",
    "org_gate",
    "pipeline",
    "step",
    "team_gate",
    "translated",
]

MORNING = datetime(2026, 3, 3, 10, tzinfo=UTC)
"""A Tuesday."""
ENVIRONMENTS = ("dev", "staging", "prod")
NAMESPACE = "default"
POLICIES = "platform-policies"


def pipeline(
    *environments: str | JsonObject, provider: str = "local", url: str = "file:///repo", **spec: Any
) -> Pipeline:
    return Pipeline.model_validate(
        objects.pipeline(url, environments=environments or ENVIRONMENTS, provider=provider, namespace=NAMESPACE, **spec)
    )


def bundle(name: str = "app-1", *, labels: dict[str, str] | None = None, **spec: Any) -> Bundle:
    made = objects.bundle(name, labels=labels, namespace=NAMESPACE, **spec)
    made["metadata"]["uid"] = f"uid-of-{name}"
    return Bundle.model_validate(made)


def org_gate(name: str, expression: str = "true", **fields: Any) -> PolicyGate:
    return _gate(name, expression, **{"namespace": POLICIES} | fields)


def team_gate(name: str, expression: str = "true", **fields: Any) -> PolicyGate:
    return _gate(name, expression, **{"namespace": NAMESPACE} | fields)


def _gate(name: str, expression: str, *, applies_to: str | None = "prod", **fields: Any) -> PolicyGate:
    return PolicyGate.model_validate(objects.gate(name, expression, applies_to=applies_to, **fields))


def gates(found: Sequence[PolicyGate], pipeline: str = "my-app") -> tuple[GateTemplate, ...]:
    return collect(found, pipeline=pipeline, namespace=NAMESPACE, policy_namespaces=(POLICIES,))


def translated(
    way: Pipeline | None = None, what: Bundle | None = None, found: Sequence[PolicyGate] = (), *, local: bool = True
) -> JsonObject:
    return translate(
        way or pipeline(),
        what or bundle(),
        gates(found),
        features=Features(registry=REGISTRY, allow_local_repositories=local),
        now=MORNING,
    )


def node(graph: JsonObject, identifier: str) -> JsonObject:
    return next(found for found in graph["spec"]["nodes"] if found["id"] == identifier)


def identifiers(graph: JsonObject) -> list[str]:
    return [found["id"] for found in graph["spec"]["nodes"]]


def step(graph: JsonObject, environment: str) -> JsonObject:
    """Return the PromotionStep of an environment."""
    template: JsonObject = next(
        found["template"]
        for found in graph["spec"]["nodes"]
        if found.get("template", {}).get("kind") == "PromotionStep"
        and found["template"]["spec"]["environment"] == environment
    )
    return template


def edges(graph: JsonObject) -> dict[str, str | None]:
    """Return the upstream expressions of every step, by environment."""
    return {
        found["template"]["spec"]["environment"]: found["template"]["spec"].get("upstreamVerified")
        for found in graph["spec"]["nodes"]
        if found.get("template", {}).get("kind") == "PromotionStep"
    }
