"""The nodes of a Graph: the objects that the engine creates, their order, and the conditions for the next node.

The fields `upstreamVerified`, `upstreamEnvironment` and `requiredGates` have two purposes: they are data for readers of
the object, and the expressions in them are the edges of the Graph. All other fields are literal: text of a user is
escaped, so that no text of a Pipeline or a gate is ever evaluated as an expression of the Graph.

`propagateWhen` holds the nodes that come after a node; `readyWhen` only reports its state. The conditions that a gate's
answer is fresh and that a Verified environment is still healthy are therefore in `propagateWhen`: a controller that is
down must open no gate. Under the key `x-kardinal` (`topology.NODE_KEY`) each node carries its environment and, for a
gate, the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.duration import format_duration
from kardinal.promotion.api.bundle import ArtifactKind
from kardinal.promotion.api.health import Health
from kardinal.promotion.api.health_fields import health_type, is_detected, proof_without_tool, resolved_objects
from kardinal.promotion.api.lists import LIST_SEPARATOR
from kardinal.promotion.api.names import (
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
from kardinal.promotion.api.pipeline import Environment, PipelineSpec
from kardinal.promotion.api.policy_gate import GateOrigin
from kardinal.promotion.api.promotion_step import PromotionStepSpec
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.policy.freshness import answer_conditions
from kardinal.promotion.policy.matching import GateTemplate
from kardinal.promotion.steps.sequence import default_sequence
from kardinal.promotion.translation.topology import NODE_KEY, describe_gate, describe_step

__all__ = ["PromotedBundle", "bundle_node", "freeze_node", "gate_node", "step_node", "step_spec", "with_attempt"]

HEALTH_TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class PromotedBundle:
    """One Bundle on its way through one Pipeline; all nodes of a Graph belong to it."""

    namespace: str
    pipeline: str
    bundle: str
    artifacts: tuple[ArtifactKind, ...] = ("images",)
    """The kinds of artifacts in the Bundle, for example `("images", "charts")`."""

    def labels(self, more: Mapping[str, str]) -> dict[str, str]:
        owner = {LABEL_PIPELINE: self.pipeline, LABEL_BUNDLE: self.bundle}
        return {key: label_value(value) for key, value in {**owner, **more}.items()}


def bundle_node(promotion: PromotedBundle) -> JsonObject:
    """Return the node of the Bundle itself, which the engine reads and never writes."""
    return {"id": "bundle", "ref": _identity(BUNDLE, promotion.bundle, promotion.namespace)}


def freeze_node(promotion: PromotedBundle) -> JsonObject:
    """Return the node that watches the freeze gates.

    It is there to be seen; before every effect the agent reads the freeze gates itself.
    """
    selector = {LABEL_TYPE: TYPE_FREEZE, LABEL_PIPELINE: label_value(promotion.pipeline)}
    metadata = {"namespace": promotion.namespace, "selector": selector}
    return {
        "id": "freeze",
        "watch": {"apiVersion": POLICY_GATE.api_version, "kind": POLICY_GATE.kind, "metadata": metadata},
    }


def gate_node(
    promotion: PromotedBundle,
    gate: GateTemplate,
    environment: Environment,
    *,
    identifier: str,
    name: str,
    upstreams: Mapping[str, str | None],
) -> JsonObject:
    """Return the node of one gate before one environment.

    `upstreams` maps the upstream environments to their node ids; None for an environment without a node in this Graph.
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
    promotion: PromotedBundle,
    environment: Environment,
    pipeline: PipelineSpec,
    *,
    identifier: str,
    upstreams: Mapping[str, str | None],
    gates: Sequence[str],
    attempt: int | None = None,
) -> JsonObject:
    """Return the node of the PromotionStep of one environment.

    `upstreams` maps the upstream environments to their node ids; None for an environment in which the Bundle is
    Verified already and which has no node in this Graph. `gates` are the node ids of its gates.
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
    """Return the node of a step with the number of its attempt, if that is higher than the current number."""
    spec = node["template"]["spec"]
    if (attempt or 1) <= spec.get("attempt", 1):
        return node
    return {**node, "template": {**node["template"], "spec": {**spec, "attempt": attempt}}}


def step_spec(
    promotion: PromotedBundle, environment: Environment, pipeline: PipelineSpec, *, attempt: int | None = None
) -> PromotionStepSpec:
    """Return the spec of a PromotionStep with every default resolved, because the agent never reads the Pipeline."""
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
        verify=environment.verify,
        shard=environment.shard,
        attempt=attempt,
    )


def _health(environment: Environment, *, pipeline: str) -> Health:
    """Return `health` with its defaults. Without a type, the agent detects the tool that deploys the environment."""
    given = environment.health
    delegate = environment.delivery.delegate
    kind = health_type(given, delegate=delegate)
    if kind is None and not is_detected(given, delegate=delegate):
        kind = proof_without_tool(delegate)
    objects = resolved_objects(given, kind=kind, delegate=delegate, environment=environment.name, pipeline=pipeline)
    return given.model_copy(update={"type": kind, "timeout": given.timeout or HEALTH_TIMEOUT, **objects})


def _identity(
    resource: ResourceType, name: str, namespace: str, *, labels: Mapping[str, str] | None = None
) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _literal(value: Any) -> Any:
    """Return the value with every `${` written as `$${`, so that no text of a user is evaluated.

    The engine turns `$${` back into `${`.
    """
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return value
