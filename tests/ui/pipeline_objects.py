"""The objects of one Pipeline as views read them, made from the Graph that translation makes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate, PromotionStep
from kardinal.promotion.api.names import LABEL_TYPE, TYPE_FREEZE, freeze_name
from kardinal.promotion.policy.hold_gate import hold_gate
from kardinal.promotion.views.bundles import newest_first
from kardinal.promotion.views.reading import PipelineObjects
from tests.translation import values

__all__ = ["NAMESPACE", "NOON", "at", "bundle", "shown"]

NAMESPACE = values.NAMESPACE
NOON = values.MORNING.replace(hour=12)


def at(hour: int, minute: int = 0) -> str:
    """Return a time of the day as the API server stores it."""
    return values.MORNING.replace(hour=hour, minute=minute).isoformat().replace("+00:00", "Z")


def bundle(name: str = "app-1", status: JsonObject | None = None, *, created: str | None = None, **spec: Any) -> Bundle:
    """Return a Bundle with a status."""
    made = values.bundle(name, **spec)
    found = {**made.to_json(), "status": status or {"phase": "Promoting", "observedGeneration": 1}}
    found["metadata"]["creationTimestamp"] = created or at(8)
    return Bundle.model_validate(found)


def shown(
    which: Bundle | None = None,
    *,
    pipeline: Pipeline | None = None,
    others: Sequence[Bundle] = (),
    steps: Mapping[str, JsonObject] | None = None,
    templates: Sequence[PolicyGate] = (),
    answers: Mapping[str, JsonObject] | None = None,
    frozen: str | None = None,
    held: Sequence[str] = (),
    graph: bool = True,
) -> PipelineObjects:
    """Return the objects of `my-app`. `steps` are statuses by environment, `answers` are those of gates by name."""
    found = pipeline or values.pipeline(provider="gitea", url="https://git.example.com/acme/gitops")
    made = values.translated(found, which, templates) if which is not None and graph else None
    nodes = _children(made, which.metadata.name) if made is not None and which is not None else []
    hold = dict.fromkeys(held, "version 2 is bad")
    return PipelineObjects(
        pipeline=found,
        bundles=newest_first([*([which] if which is not None else []), *others]),
        bundle=which,
        steps=[
            PromotionStep.model_validate({**node, "status": steps[node["spec"]["environment"]]})
            for node in nodes
            if node["kind"] == "PromotionStep" and node["spec"]["environment"] in (steps or {}) and steps is not None
        ],
        gates=[
            PolicyGate.model_validate({**node, "status": (answers or {})[node["spec"]["origin"]["name"]]})
            for node in nodes
            if node["kind"] == "PolicyGate" and node["spec"]["origin"]["name"] in (answers or {})
        ],
        graph=made,
        freeze=_freeze(frozen) if frozen is not None else None,
        held=[
            (name, hold_gate("my-app", name, namespace=NAMESPACE, bundle="app-0", message=message))
            for name, message in hold.items()
        ],
    )


def _children(graph: JsonObject, bundle: str) -> list[JsonObject]:
    """Return the templates of the nodes; of the expressions in them only the name of the Bundle has its value."""
    templates = [node["template"] for node in graph["spec"]["nodes"] if "template" in node]
    text = json.dumps(templates).replace("${bundle.metadata.name}", bundle)
    found: list[JsonObject] = json.loads(re.sub(r"\$\{[^}]*}", "", text))
    return found


def _freeze(message: str) -> PolicyGate:
    metadata = {
        "name": freeze_name("my-app"),
        "namespace": NAMESPACE,
        "labels": {LABEL_TYPE: TYPE_FREEZE},
        "creationTimestamp": at(9),
    }
    return PolicyGate.model_validate({"metadata": metadata, "spec": {"expression": "false", "message": message}})
