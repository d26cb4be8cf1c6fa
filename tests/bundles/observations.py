"""Observations of a Bundle as the reconciler would make them, for tests of what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.objects import JsonObject
from kardinal.translation.repository import Features
from kardinal.translation.translate import translate
from kardinal_controller.bundles.contenders import Contender, Standing
from kardinal_controller.bundles.decide import WriteStatus, decide
from kardinal_controller.bundles.observation import Observation
from tests.support import objects
from tests.support.registry import REGISTRY

__all__ = [
    "MONOTONIC",
    "NOW",
    "PIPELINE",
    "SAID",
    "bundle",
    "graph",
    "next_run",
    "retargeted",
    "rival",
    "seen",
    "steps",
]

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
MONOTONIC = 100.0
SAID = "as the agent says"
"""The message of every step."""

PIPELINE = Pipeline.model_validate(objects.pipeline("file:///repo", environments=["dev", "prod"]))


def bundle(
    name: str = "app-2",
    *,
    number: int = 2,
    intent: JsonObject | None = None,
    type_: str = "image",
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Bundle:
    """Return a Bundle that was created `number` seconds after the first of its Pipeline."""
    made = objects.bundle(name, intent=intent or {}, type=type_)
    made["metadata"] |= {"uid": f"uid-{name}", "generation": 1, "creationTimestamp": _time(number)} | metadata
    made["status"] = {"sequence": number, **(status or {})}
    return Bundle.model_validate(made)


def graph(pipeline: Pipeline = PIPELINE, *, target: str | None = None, refused_because: str = "") -> JsonObject:
    """Return the Graph of the Bundle, as translation makes it, and as the engine answers where it refuses it."""
    intent = {"target": target} if target else {}
    features = Features(registry=REGISTRY, allow_local_repositories=True)
    made = translate(pipeline, bundle(intent=intent), (), features=features, now=NOW)
    made["metadata"]["uid"] = "uid-of-the-graph"
    if refused_because:
        condition = {"type": "Accepted", "status": "False", "reason": "InvalidExpression", "message": refused_because}
        made["status"] = {"conditions": [condition | {"lastTransitionTime": _time(0)}]}
    return made


def steps(**states: str | None) -> dict[str, PromotionStep]:
    """Return a step in a state for each environment; None for one that its agent has not seen yet."""
    return {environment: _step(environment, state) for environment, state in states.items()}


def seen(subject: Bundle | None = None, **fields: Any) -> Observation:
    """Return a new Bundle, alone with its Pipeline; `fields` are those of `Observation` that differ."""
    subject = subject or bundle()
    values: dict[str, Any] = {
        "bundle": subject,
        "stored": subject.status,
        "label": "my-app",
        "pipeline": PIPELINE,
        "own": rival(subject.metadata.name, number=subject.status.sequence or 0, pinned=_is_pinned(subject)),
        "siblings": [],
        "current": {},
        "peers": [],
        "graph": None,
        "steps": {},
        "now": NOW,
        "monotonic": MONOTONIC,
    }
    return Observation(**values | fields)


def rival(
    name: str = "app-3",
    *,
    number: int = 3,
    pending: bool = False,
    pinned: bool = False,
    upstreams: Mapping[str, tuple[str, ...]] | None = None,
    **standings: Standing,
) -> Contender:
    """Return another Bundle of the Pipeline, with its standings by environment."""
    order = upstreams or {"dev": (), "prod": ("dev",)}
    return Contender(
        name,
        (NOW + timedelta(seconds=number), number),
        standings=standings,
        pinned=pinned,
        pending=pending,
        read_upstreams=lambda: order,
    )


def next_run(observation: Observation, **fields: Any) -> Observation:
    """Return what the next run sees after the present one has written its status.

    `fields` are what has changed since.
    """
    decision = decide(replace(observation, write_by=observation.monotonic))
    assert isinstance(decision, WriteStatus), decision
    after = observation.bundle.model_copy(update={"status": decision.status})
    values: dict[str, Any] = {"bundle": after, "stored": decision.status, "outcome": None}
    return replace(observation, **values | fields)


def retargeted(observation: Observation, target: str | None) -> Observation:
    """Return what a run sees after the author has set another target."""
    before = observation.bundle
    metadata = before.metadata.model_copy(update={"generation": before.metadata.generation + 1})
    intent = before.spec.intent.model_copy(update={"target": target})
    spec = before.spec.model_copy(update={"intent": intent})
    return replace(observation, bundle=before.model_copy(update={"metadata": metadata, "spec": spec}))


def _step(environment: str, state: str | None) -> PromotionStep:
    spec = {
        "pipeline": "my-app",
        "environment": environment,
        "bundleRef": "app-2",
        "path": f"environments/{environment}",
        "git": {"url": "file:///repo"},
    }
    status: JsonObject = {"state": state, "message": SAID} if state else {}
    if state == "Verified":
        status["verifiedAt"] = _time(60)
    return PromotionStep.model_validate({"spec": spec, "status": status})


def _is_pinned(subject: Bundle) -> bool:
    return subject.metadata.annotations.get("kardinal.io/pin") == "true"


def _time(seconds: int) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat()
