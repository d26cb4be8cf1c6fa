"""The nodes of a Graph: what the engine shall create, in which order, and what opens the way (DD 3.5, 3.6, 5.3; pure).

Two of DD's fields do double duty: `upstreamVerified`, `upstreamEnvironment` and `requiredGates` are data for whoever
reads the object, and the expressions in them are the edges of the Graph. Everything else is literal: whatever a user
wrote is escaped, so that no text of a Pipeline or a gate is ever evaluated as an expression of the Graph.

`propagateWhen` holds what comes after a node; `readyWhen` only says how it is (graph.md 2.6). Freshness therefore
stands in `propagateWhen`: a controller that is down must open nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kardinal.api import BUNDLE, POLICY_GATE, PROMOTION_STEP, format_duration
from kardinal.api.names import (
    LABEL_BUNDLE,
    LABEL_ENVIRONMENT,
    LABEL_GATE,
    LABEL_PIPELINE,
    LABEL_SCOPE,
    LABEL_SHARD,
    LABEL_TYPE,
    TYPE_FREEZE,
    label_value,
    step_name,
)
from kardinal.api.pipeline import Environment, Health, HealthResource, PipelineSpec
from kardinal.api.policy_gate import GateOrigin
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.objects import JsonObject, ResourceType
from kardinal.policy.freshness import freshness_window
from kardinal.policy.matching import GateTemplate
from kardinal.steps.sequence import default_sequence

__all__ = ["Place", "bundle_node", "freeze_node", "gate_node", "step_node"]

HEALTH_TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Place:
    """The promotion that the nodes belong to."""

    namespace: str
    pipeline: str
    bundle: str

    def labels(self, more: Mapping[str, str]) -> dict[str, str]:
        owner = {LABEL_PIPELINE: self.pipeline, LABEL_BUNDLE: self.bundle}
        return {key: label_value(value) for key, value in {**owner, **more}.items()}


def bundle_node(place: Place) -> JsonObject:
    """The Bundle itself, read and never written."""
    return {"id": "bundle", "ref": _identity(BUNDLE, place.bundle, place.namespace)}


def freeze_node(place: Place) -> JsonObject:
    """The freeze gates of the Pipeline, for whoever looks; the agent asks them itself before every effect."""
    selector = {LABEL_TYPE: TYPE_FREEZE, LABEL_PIPELINE: label_value(place.pipeline)}
    metadata = {"namespace": place.namespace, "selector": selector}
    return {
        "id": "freeze",
        "watch": {"apiVersion": POLICY_GATE.api_version, "kind": POLICY_GATE.kind, "metadata": metadata},
    }


def gate_node(
    place: Place,
    gate: GateTemplate,
    environment: Environment,
    *,
    identifier: str,
    name: str,
    upstreams: Sequence[str],
) -> JsonObject:
    """One gate before one environment; `upstreams` are the node ids of the steps it comes after."""
    origin = GateOrigin(
        namespace=gate.namespace,
        name=gate.name,
        scope=gate.scope,
        pipeline=place.pipeline,
        bundle=place.bundle,
        environment=environment.name,
        approval=environment.approval,
    )
    spec = _literal(
        {
            "expression": gate.spec.expression,
            "message": gate.spec.message,
            "recheckInterval": format_duration(gate.spec.recheck_interval),
            "origin": origin.to_json(),
        }
    )
    if upstreams:
        spec["upstreamEnvironment"] = _joined(upstreams, "spec.environment")
    labels = {LABEL_ENVIRONMENT: environment.name, LABEL_GATE: gate.name, LABEL_SCOPE: gate.scope}
    window = format_duration(freshness_window(gate.spec))
    ready = f"${{{identifier}.status.ready == true}}"
    return {
        "id": identifier,
        "readyWhen": [ready],
        "propagateWhen": [
            ready,
            f'${{timestamp({identifier}.status.lastEvaluatedAt) > now() - duration("{window}")}}',
        ],
        "template": _identity(POLICY_GATE, name, place.namespace, labels=place.labels(labels)) | {"spec": spec},
    }


def step_node(
    place: Place,
    environment: Environment,
    pipeline: PipelineSpec,
    *,
    identifier: str,
    upstreams: Sequence[str],
    gates: Sequence[str],
) -> JsonObject:
    """The promotion into one environment; `upstreams` and `gates` are the node ids it comes after."""
    spec = _literal(_order(place, environment, pipeline).to_json())
    spec["bundleRef"] = "${bundle.metadata.name}"
    if upstreams:
        spec["upstreamVerified"] = _joined(upstreams, "status.state")
    spec["requiredGates"] = [f"${{{gate}.metadata.name}}" for gate in gates]
    labels = {LABEL_ENVIRONMENT: environment.name}
    if environment.shard:
        labels[LABEL_SHARD] = environment.shard
    verified = f'${{{identifier}.status.state == "Verified"}}'
    name = step_name(place.bundle, environment.name)
    return {
        "id": identifier,
        "readyWhen": [verified],
        "propagateWhen": [verified],
        "template": _identity(PROMOTION_STEP, name, place.namespace, labels=place.labels(labels)) | {"spec": spec},
    }


def _order(place: Place, environment: Environment, pipeline: PipelineSpec) -> PromotionStepSpec:
    """What an agent needs, every default resolved: it never reads the Pipeline."""
    steps = environment.steps or default_sequence(
        approval=environment.approval, pr=environment.pr, strategy=environment.update.strategy
    )
    return PromotionStepSpec(
        pipeline=place.pipeline,
        environment=environment.name,
        bundle_ref=place.bundle,
        path=environment.path or f"environments/{environment.name}",
        git=pipeline.git,
        update=environment.update,
        approval=environment.approval,
        pr=environment.pr,
        steps=steps,
        health=_health(place, environment),
        delivery=environment.delivery,
        shard=environment.shard,
    )


def _health(place: Place, environment: Environment) -> Health:
    given = environment.health.resource or HealthResource()
    return Health(
        type=environment.health.type or "resource",
        resource=HealthResource(
            kind=given.kind,
            name=given.name or place.pipeline,
            namespace=given.namespace or environment.name,
            condition=given.condition,
        ),
        timeout=environment.health.timeout or HEALTH_TIMEOUT,
    )


def _identity(
    resource: ResourceType, name: str, namespace: str, *, labels: Mapping[str, str] | None = None
) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _joined(identifiers: Sequence[str], path: str) -> str:
    return ",".join(f"${{{identifier}.{path}}}" for identifier in identifiers)


def _literal(value: Any) -> Any:
    """The value with every `${` of it escaped: the engine takes one dollar away and evaluates nothing."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return value
