"""Facts about a Bundle as the reconciler would observe them, for tests of what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PromotionStep
from kardinal.promotion.api.bundle import BundleStatus
from kardinal.promotion.translation.errors import PromotionError
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import translate
from kardinal_controller.bundles.contenders import Contender, Standing
from kardinal_controller.bundles.decide import decide
from kardinal_controller.bundles.decisions import Action, Delete, Report
from kardinal_controller.bundles.observe import Facts, RunEffects
from kardinal_controller.bundles.rules import project
from kardinal_controller.bundles.status import status_of, write_at
from tests.support import objects
from tests.support.registry import REGISTRY

__all__ = [
    "MONOTONIC",
    "NOW",
    "PIPELINE",
    "SAID",
    "Wait",
    "Write",
    "bundle",
    "carried_out",
    "graph",
    "made",
    "next_run",
    "refused",
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


def seen(subject: Bundle | None = None, **fields: Any) -> Facts:
    """Return a new Bundle, alone with its Pipeline; `fields` are those of `Facts` that differ."""
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
    return Facts(**values | fields)


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


@dataclass(frozen=True)
class Write:
    """The status is written now, and the run ends."""

    status: BundleStatus


@dataclass(frozen=True)
class Wait:
    """The run ends without a write; the next comes with a change, or at `until`."""

    until: float | None = None


def carried_out(facts: Facts) -> Action | Write | Wait:
    """Return what the reconciler does next: an effect, a write, or nothing more."""
    projection = project(facts)
    decision = decide(facts, projection)
    if not isinstance(decision.action, Report | Delete):
        return decision.action
    status = status_of(projection, decision)
    moment = write_at(projection, decision, status)
    if moment is not None:
        return Write(status) if moment <= facts.monotonic else Wait(moment)
    return decision.action if isinstance(decision.action, Delete) else Wait()


def made(facts: Facts, graph: JsonObject) -> Facts:
    """Return what is observed once the Graph was created, or extended."""
    return replace(facts, graph=graph, done=RunEffects(graph=graph, created=facts.graph is None))


def refused(facts: Facts, error: PromotionError) -> Facts:
    """Return what is observed once translation was refused."""
    return replace(facts, done=RunEffects(refusal=error))


def next_run(facts: Facts, **fields: Any) -> Facts:
    """Return what the next run sees after the present one has written its status.

    `fields` are what has changed since.
    """
    found = carried_out(replace(facts, write_by=facts.monotonic))
    assert isinstance(found, Write), found
    after = facts.bundle.model_copy(update={"status": found.status})
    values: dict[str, Any] = {"bundle": after, "stored": found.status, "done": RunEffects()}
    return replace(facts, **values | fields)


def retargeted(facts: Facts, target: str | None) -> Facts:
    """Return what a run sees after the author has set another target."""
    before = facts.bundle
    metadata = before.metadata.model_copy(update={"generation": before.metadata.generation + 1})
    intent = before.spec.intent.model_copy(update={"target": target})
    spec = before.spec.model_copy(update={"intent": intent})
    return replace(facts, bundle=before.model_copy(update={"metadata": metadata, "spec": spec}))


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
