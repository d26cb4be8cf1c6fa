"""The nodes of a Graph: what the engine creates, in which order, and what lets the next node start.

Three fields do double duty: `upstreamVerified`, `upstreamEnvironment` and `requiredGates` are data for readers of the
object, and the expressions in them are the edges of the Graph. Everything else is literal: text of a user is escaped,
so that nothing of a Pipeline or a gate is ever evaluated as an expression of the Graph.

`propagateWhen` holds what comes after a node; `readyWhen` only reports its state. Freshness, and that what was Verified
is still healthy, therefore stand in `propagateWhen`: a controller that is down must open nothing. What a node stands
for is carried under the key of `kardinal.translation.topology`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from kardinal.api import BUNDLE, POLICY_GATE, PROMOTION_STEP, format_duration
from kardinal.api.base import LIST_SEPARATOR
from kardinal.api.bundle import ArtifactKind
from kardinal.api.health import Health, HealthObject, HealthResource
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
from kardinal.api.pipeline import Environment, PipelineSpec
from kardinal.api.policy_gate import GateOrigin
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.objects import JsonObject, ResourceType
from kardinal.policy.freshness import answer_conditions
from kardinal.policy.matching import GateTemplate
from kardinal.steps.health_fields import health_type, is_detected, proof_without_tool
from kardinal.steps.sequence import default_sequence
from kardinal.translation.topology import NODE_KEY, describe_gate, describe_step

__all__ = ["Promotion", "bundle_node", "freeze_node", "gate_node", "step_node", "step_spec", "with_attempt"]

HEALTH_TIMEOUT = timedelta(minutes=10)

Placed = TypeVar("Placed", HealthResource, HealthObject)


@dataclass(frozen=True, slots=True)
class Promotion:
    """One Bundle on its way through one Pipeline: what all nodes of a Graph belong to."""

    namespace: str
    pipeline: str
    bundle: str
    artifacts: tuple[ArtifactKind, ...] = ("images",)
    """The kinds of artifacts that the Bundle brings."""

    def labels(self, more: Mapping[str, str]) -> dict[str, str]:
        owner = {LABEL_PIPELINE: self.pipeline, LABEL_BUNDLE: self.bundle}
        return {key: label_value(value) for key, value in {**owner, **more}.items()}


def bundle_node(promotion: Promotion) -> JsonObject:
    """Return the node of the Bundle itself, which is read and never written."""
    return {"id": "bundle", "ref": _identity(BUNDLE, promotion.bundle, promotion.namespace)}


def freeze_node(promotion: Promotion) -> JsonObject:
    """Return the node that shows the freeze gates; the agent reads them itself before every effect."""
    selector = {LABEL_TYPE: TYPE_FREEZE, LABEL_PIPELINE: label_value(promotion.pipeline)}
    metadata = {"namespace": promotion.namespace, "selector": selector}
    return {
        "id": "freeze",
        "watch": {"apiVersion": POLICY_GATE.api_version, "kind": POLICY_GATE.kind, "metadata": metadata},
    }


def gate_node(
    promotion: Promotion,
    gate: GateTemplate,
    environment: Environment,
    *,
    identifier: str,
    name: str,
    upstreams: Mapping[str, str | None],
) -> JsonObject:
    """Return the node of one gate before one environment.

    `upstreams` maps the environments before it to their node ids, None for one that the Graph does not have.
    """
    origin = GateOrigin(
        namespace=gate.namespace,
        name=gate.name,
        scope=gate.scope,
        pipeline=promotion.pipeline,
        bundle=promotion.bundle,
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
        spec["upstreamEnvironment"] = LIST_SEPARATOR.join(
            f"${{{node}.spec.environment}}" if node else name for name, node in upstreams.items()
        )
    labels = {LABEL_ENVIRONMENT: environment.name, LABEL_GATE: gate.name, LABEL_SCOPE: gate.scope}
    ready = f"${{{identifier}.status.ready == true}}"
    return {
        "id": identifier,
        NODE_KEY: describe_gate(environment.name, namespace=gate.namespace, name=gate.name),
        "readyWhen": [ready],
        "propagateWhen": [ready, *(f"${{{each}}}" for each in answer_conditions(identifier, gate.spec))],
        "template": _identity(POLICY_GATE, name, promotion.namespace, labels=promotion.labels(labels)) | {"spec": spec},
    }


def step_node(
    promotion: Promotion,
    environment: Environment,
    pipeline: PipelineSpec,
    *,
    identifier: str,
    upstreams: Mapping[str, str | None],
    gates: Sequence[str],
    attempt: int | None = None,
) -> JsonObject:
    """Return the node of the PromotionStep of one environment.

    `upstreams` maps the environments it comes after to their node ids, None for one in which the Bundle is Verified and
    that the Graph does not have. `gates` are the node ids of its gates.
    """
    spec = _literal(step_spec(promotion, environment, pipeline, attempt=attempt).to_json())
    spec["bundleRef"] = "${bundle.metadata.name}"
    if upstreams:
        spec["upstreamVerified"] = LIST_SEPARATOR.join(
            f"${{{node}.status.state}}" if node else "Verified" for node in upstreams.values()
        )
    spec["requiredGates"] = [f"${{{gate}.metadata.name}}" for gate in gates]
    labels = {LABEL_ENVIRONMENT: environment.name}
    if environment.shard:
        labels[LABEL_SHARD] = environment.shard
    verified = f'${{{identifier}.status.state == "Verified"}}'
    healthy = f"${{!has({identifier}.status.healthy) || {identifier}.status.healthy}}"
    name = step_name(promotion.bundle, environment.name)
    identity = _identity(PROMOTION_STEP, name, promotion.namespace, labels=promotion.labels(labels))
    return {
        "id": identifier,
        NODE_KEY: describe_step(environment.name, upstreams),
        "readyWhen": [verified],
        "propagateWhen": [verified, healthy],
        "template": identity | {"spec": spec},
    }


def with_attempt(node: JsonObject, attempt: int | None) -> JsonObject:
    """Return the node of a step with the number of a later attempt."""
    spec = node["template"]["spec"]
    if (attempt or 1) <= spec.get("attempt", 1):
        return node
    return {**node, "template": {**node["template"], "spec": {**spec, "attempt": attempt}}}


def step_spec(
    promotion: Promotion, environment: Environment, pipeline: PipelineSpec, *, attempt: int | None = None
) -> PromotionStepSpec:
    """Return what an agent needs, every default resolved: it never reads the Pipeline."""
    steps = environment.steps or default_sequence(
        approval=environment.approval,
        pr=environment.pr,
        strategy=environment.update.strategy,
        artifacts=promotion.artifacts,
        layout=pipeline.git.layout,
    )
    return PromotionStepSpec(
        pipeline=promotion.pipeline,
        environment=environment.name,
        bundle_ref=promotion.bundle,
        path=environment.directory,
        branch=environment.target_branch(pipeline.git) if pipeline.git.layout == "branch" else None,
        git=pipeline.git,
        update=environment.update,
        approval=environment.approval,
        pr=environment.pr,
        steps=steps,
        health=_health(environment, pipeline=promotion.pipeline),
        delivery=environment.delivery,
        shard=environment.shard,
        attempt=attempt,
    )


def _health(environment: Environment, *, pipeline: str) -> Health:
    """Return `health` with its defaults; without a type the agent finds what deploys the environment."""
    given, own, delegate = environment.health, environment.name, environment.delivery.delegate
    kind = health_type(given, delegate=delegate)
    if kind is None and not is_detected(given, delegate=delegate):
        kind = proof_without_tool(delegate)
    update: dict[str, object] = {"type": kind, "timeout": given.timeout or HEALTH_TIMEOUT}
    if kind == "resource":
        update["resource"] = _with_condition(_placed(given.resource or HealthResource(), own))
    delegated = HealthObject(name=pipeline)
    if rollout := given.argo_rollouts or (delegated if delegate == "argoRollouts" else None):
        update["argo_rollouts"] = _placed(rollout, own)
    if canary := given.flagger or (delegated if delegate == "flagger" else None):
        update["flagger"] = _placed(canary, own)
    return given.model_copy(update=update)


def _with_condition(resource: HealthResource) -> HealthResource:
    """Return what is asked of Deployments as well; workloads of other kinds have no condition."""
    of_deployments = resource.kind in (None, "Deployment")
    return resource.model_copy(update={"condition": "Available"}) if of_deployments else resource


def _placed(named: Placed, namespace: str) -> Placed:
    return named.model_copy(update={"namespace": named.namespace or namespace})


def _identity(
    resource: ResourceType, name: str, namespace: str, *, labels: Mapping[str, str] | None = None
) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _literal(value: Any) -> Any:
    """Return the value with every `${` escaped: the engine takes one dollar away and evaluates nothing."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return value
