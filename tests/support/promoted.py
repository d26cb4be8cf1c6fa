"""Objects as the controller makes them for a Bundle, without a controller that would correct them, and a tenant.

The tenant has every verb on every kind of kardinal in its namespace, which is more than any shipped role gives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from kardinal.graph.identity import APPLY_ORDER, GRAPH_LABEL
from kardinal.objects import GRAPH, GRAPH_REVISION, ResourceType
from kardinal.promotion.api import names
from kardinal.promotion.kinds import APPROVAL, BUNDLE, METRIC_CHECK, PIPELINE, POLICY_GATE, PROMOTION_STEP, SUBSCRIPTION
from tests.support.names import TEAM
from tests.support.objects import API_VERSION, bundle, gate, pipeline
from tests.support.people import People, Person, people_of
from tests.support.real import RealServer
from tests.support.world import World

__all__ = ["KINDS", "REVISION", "Installation", "graph", "instance", "of_kind", "owned_by", "step", "step_of"]

JsonObject = dict[str, Any]

KINDS = {
    resource.kind: resource
    for resource in (
        PIPELINE,
        BUNDLE,
        PROMOTION_STEP,
        POLICY_GATE,
        APPROVAL,
        METRIC_CHECK,
        SUBSCRIPTION,
        GRAPH,
        GRAPH_REVISION,
    )
}
REVISION = {"generation": 1, "hash": "0123456789ab", "dialectVersion": "1"}

_CHECK = {"provider": {"address": "https://prometheus.example.com"}, "query": "up", "successCondition": "> 0"}
_APPROVAL = {
    "bundle": "release",
    "uid": "0",
    "environment": "prod",
    "gate": f"{TEAM}/template",
    "approver": "dana",
    "via": "controller",
}
_SOURCE = {"type": "image", "image": {"repository": "ghcr.io/acme/my-app"}}


def step(name: str, *, shard: str | None = None, label: str | None = None) -> JsonObject:
    labels = {names.LABEL_BUNDLE: "release", GRAPH_LABEL: "0123456789ab"}
    found = label or shard
    spec = {
        "pipeline": "my-app",
        "environment": "prod",
        "bundleRef": "release",
        "path": "environments/prod",
        "git": {"url": "https://git.example.com/acme/gitops.git", "provider": "git"},
        "steps": [{"uses": "git-clone"}],
        "health": {"type": "resource", "resource": {"name": "my-app", "namespace": "prod"}, "timeout": "10m"},
        "requiredGates": ["release-prod-soak"],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "PromotionStep",
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "labels": labels | ({names.LABEL_SHARD: found} if found else {}),
        },
        "spec": spec | ({"shard": shard} if shard else {}),
    }


def step_of(bundle_name: str, environment: str, *, shard: str | None = None) -> JsonObject:
    """Return the PromotionStep of a Bundle in one environment, with the labels by which commands find it."""
    made = step(f"{bundle_name}-{environment}", shard=shard)
    made["spec"] |= {"bundleRef": bundle_name, "environment": environment, "requiredGates": []}
    made["metadata"]["labels"] |= {names.LABEL_BUNDLE: bundle_name, names.LABEL_ENVIRONMENT: environment}
    return made


def graph(name: str, *owners: JsonObject) -> JsonObject:
    metadata = {"name": name, "namespace": TEAM, **({"ownerReferences": list(owners)} if owners else {})}
    return {"apiVersion": GRAPH.api_version, "kind": "Graph", "metadata": metadata, "spec": {"nodes": []}}


def owned_by(owner: JsonObject) -> JsonObject:
    """Return the owner reference that makes `owner` the controller of an object."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    reference |= {"name": metadata["name"], "uid": metadata["uid"]}
    return reference | {"controller": True, "blockOwnerDeletion": True}


def of_kind(resource: ResourceType, name: str, spec: JsonObject) -> JsonObject:
    metadata = {"name": name, "namespace": TEAM}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def instance(name: str) -> JsonObject:
    labels = {names.LABEL_BUNDLE: "release", names.LABEL_GATE: "soak", names.LABEL_ENVIRONMENT: "prod"}
    return gate(name, "bundle.upstreamSoakMinutes >= 30", labels=labels)


@dataclass
class Installation:
    """The objects in the team's namespace, and the users there."""

    world: World
    people: People
    tenant: Person
    release: JsonObject

    async def stored(self, resource: ResourceType, name: str) -> JsonObject:
        return await self.world.get(resource, name)


@pytest.fixture
def enforced(real_server: RealServer | None) -> None:
    """Skip where nothing asks the admission policies."""
    if real_server is None:
        pytest.skip("a local plane keeps admission policies and does not ask them")


@pytest.fixture
async def installed(enforced: None, world: World) -> AsyncIterator[Installation]:
    (release, *_) = await world.apply(
        bundle("release"),
        pipeline("https://git.example.com/acme/gitops.git", provider="git"),
        step("release-prod"),
        step("release-a", shard="a"),
        step("release-b", shard="b"),
        step("release-mixed", shard="a", label="b"),
        gate("template", "false"),
        instance("release-prod-soak"),
        graph("by-hand"),
        of_kind(APPROVAL, "approval", _APPROVAL),
        of_kind(METRIC_CHECK, "check", _CHECK),
        of_kind(SUBSCRIPTION, "subscription", {"pipeline": "my-app", "source": _SOURCE}),
        of_kind(GRAPH_REVISION, "revision", REVISION),
    )
    owned = graph("release", owned_by(release))
    owned["metadata"]["annotations"] = {APPLY_ORDER: "1"}
    await world.apply(owned)
    async with people_of(world) as people:
        every = {"apiGroups": ["kardinal.io", "experimental.kro.run"], "resources": ["*"], "verbs": ["*"]}
        await people.role("test-tenant", every)
        tenant = await people.bind("tenant", "test-tenant")
        await people.until_allowed("tenant", ("execute", "promotionsteps.kardinal.io"))
        yield Installation(world, people, tenant, release)
