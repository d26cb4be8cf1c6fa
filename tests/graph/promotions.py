"""The Graph of a promotion, node by node as the translator makes it, and what happens to its objects."""

from __future__ import annotations

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.graph.cluster import NAMESPACE, Cluster, Engine
from tests.support.names import of_run


def step(name: str, *, upstream: str | None = None, gates: tuple[str, ...] = ()) -> JsonObject:
    verified = f'${{{name}.status.state == "Verified"}}'
    spec: JsonObject = {"environment": name, "requiredGates": [f"${{{gate}.metadata.name}}" for gate in gates]}
    if upstream:
        spec["upstreamVerified"] = f"${{{upstream}.status.state}}"
    return {
        "id": name,
        "readyWhen": [verified],
        "propagateWhen": [verified],
        "template": {
            "apiVersion": PROMOTION_STEP.api_version,
            "kind": PROMOTION_STEP.kind,
            "metadata": {"name": f"b1-{name}"},
            "spec": {"bundleRef": "${bundle.metadata.name}", **spec},
        },
    }


def gate(name: str, *, upstream: str) -> JsonObject:
    ready = f"${{{name}.status.ready == true}}"
    return {
        "id": name,
        "readyWhen": [ready],
        "propagateWhen": [ready, f'${{timestamp({name}.status.lastEvaluatedAt) > now() - duration("10m")}}'],
        "template": {
            "apiVersion": POLICY_GATE.api_version,
            "kind": POLICY_GATE.kind,
            "metadata": {"name": f"b1-{name}"},
            "spec": {"expression": "$${x} == 1", "upstreamEnvironment": f"${{{upstream}.spec.environment}}"},
        },
    }


BUNDLE_NODE: JsonObject = {
    "id": "bundle",
    "ref": {"apiVersion": BUNDLE.api_version, "kind": "Bundle", "metadata": {"name": "b1", "namespace": NAMESPACE}},
}
FREEZE_NODE: JsonObject = {
    "id": "freeze",
    "watch": {
        "apiVersion": POLICY_GATE.api_version,
        "kind": POLICY_GATE.kind,
        "metadata": {"namespace": NAMESPACE, "selector": {"kardinal.io/type": "freeze"}},
    },
}


def verify(cluster: Cluster, name: str, state: str = "Verified") -> None:
    cluster.edit(PROMOTION_STEP, f"b1-{name}", status={"state": state})


def answer(cluster: Cluster, name: str, *, ready: bool = True, at: str = "2026-03-03T09:58:00Z") -> None:
    cluster.edit(POLICY_GATE, f"b1-{name}", status={"ready": ready, "lastEvaluatedAt": at})


def until_prod(cluster: Cluster, promotion: Engine) -> None:
    promotion.rest()
    for name in ("dev", "staging"):
        verify(cluster, name)
        promotion.rest()
    for name in ("soak", "hours"):
        answer(cluster, name)
    promotion.rest()


GIT = {"url": "https://example.com/repo.git", "branch": "main"}


def complete(node: JsonObject) -> JsonObject:
    """Return the node of a step with every field that its CRD asks for, and any other node as it is."""
    if node.get("template", {}).get("kind") != PROMOTION_STEP.kind:
        return node
    environment = of_run(node["id"])
    fields = {"pipeline": "demo", "git": GIT, "environment": environment, "path": f"environments/{environment}"}
    template = node["template"]
    return {**node, "template": {**template, "spec": template["spec"] | fields}}


def promotion_nodes() -> list[JsonObject]:
    """dev, then prod behind a gate, with every field the CRDs ask for."""
    nodes = [BUNDLE_NODE, step("dev"), gate("soak", upstream="dev"), step("prod", upstream="dev", gates=("soak",))]
    return [*map(complete, nodes), FREEZE_NODE]


def promotion_of(cluster: Cluster) -> Engine:
    """Return the Graph of dev, staging and, behind two gates, prod, and create its Bundle."""
    cluster.create(BUNDLE, "b1", spec={"type": "image"})
    return Engine(
        cluster,
        BUNDLE_NODE,
        step("dev"),
        step("staging", upstream="dev"),
        gate("soak", upstream="staging"),
        gate("hours", upstream="staging"),
        step("prod", upstream="staging", gates=("soak", "hours")),
        FREEZE_NODE,
    )
