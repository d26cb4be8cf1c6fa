"""The objects of the control plane (PromotionSteps, gate instances, freezes), and the Deployments they change."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from kardinal.kube import Client, PatchType
from kardinal.objects import DEPLOYMENT, GRAPH, NAMESPACE, JsonObject
from kardinal.objects.conditions import format_time
from kardinal.objects.naming import short_hash
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.steps.sequence import default_sequence
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.topology import NODE_KEY, describe_gate, describe_step
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent
from tests.support.names import DEV, POLICIES, TEAM
from tests.support.objects import API_VERSION, bundle, namespace
from tests.support.registry import EXTENSIONS
from tests.support.repository import APPLICATION, IMAGE, GitRepository
from tests.support.world import World

__all__ = [
    "BUNDLE_NAME",
    "admit",
    "close_gate",
    "create",
    "deploy",
    "displace",
    "freeze",
    "freeze_gate",
    "gate_instance",
    "open_gate",
    "promotion_step",
    "put",
    "put_gate",
    "reached",
    "start_agent",
    "state",
    "stop",
    "supersede",
    "wake",
    "withhold",
]

BUNDLE_NAME = "my-app-1"
_HOUR = timedelta(hours=1)
_ADMITTED = {"state": "Pending", "admittedAt": "2026-03-03T09:00:00Z"}


async def start_agent(world: World, **options: Any) -> Agent:
    settings: dict[str, Any] = {"allow_local_repositories": True, "git_cache_dir": world.new_directory("agent-git")}
    chosen = AgentOptions(**settings | options)
    return await world.run(
        lambda client: Agent(chosen, client, clock=world.clock, extensions=EXTENSIONS), identity="agent"
    )


def promotion_step(
    repository: GitRepository | str,
    environment: str = DEV,
    *,
    bundle: str = BUNDLE_NAME,
    name: str | None = None,
    provider: str = "local",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    """Return a PromotionStep as translation makes it, every default resolved; `health` is completed as well."""
    url = repository if isinstance(repository, str) else repository.url
    sequence = default_sequence(approval=spec.get("approval", "auto"), pr=spec.get("pr", False), strategy="kustomize")
    resource = {"name": APPLICATION, "namespace": environment}
    given = spec.pop("health", {})
    proof = {"type": "resource", "resource": resource} if given.get("type", "resource") == "resource" else {}
    health = {**proof, "timeout": "10m", **given}
    return {
        "apiVersion": API_VERSION,
        "kind": "PromotionStep",
        "metadata": {
            "name": name or names.step_name(bundle, environment),
            "namespace": TEAM,
            "labels": labels or {},
        },
        "spec": {
            "pipeline": APPLICATION,
            "environment": environment,
            "bundleRef": bundle,
            "path": f"environments/{environment}",
            "git": {"url": url, "provider": provider},
            "steps": [{"uses": step.uses} for step in sequence],
            "health": health,
            **spec,
        },
    }


async def create(
    world: World, *steps: JsonObject, tag: str = "1.1.0", name: str = BUNDLE_NAME, image: str = IMAGE
) -> JsonObject:
    """Create a Bundle and its PromotionSteps, with a Graph that makes them its own; returns the Bundle."""
    (made,) = await world.apply(bundle(name, tag=tag, image=image))
    await put(world, *steps)
    return made


async def put(world: World, *steps: JsonObject) -> None:
    """Apply PromotionSteps of one Bundle as the engine does for its Graph; gates in `requiredGates` get nodes."""
    gates = [gate_instance(name) for step in steps for name in step["spec"].get("requiredGates", ())]
    await _put(world, steps[0]["spec"]["bundleRef"], [*gates, *steps], made=steps)


async def put_gate(world: World, name: str) -> None:
    """Apply the instance of a gate of the default Bundle as the engine does, and its template."""
    instance = gate_instance(name)
    template = {**instance, "metadata": {"name": instance["spec"]["origin"]["name"], "namespace": POLICIES}}
    spec = {field: value for field, value in instance["spec"].items() if field != "origin"}
    await world.apply({**template, "spec": spec})
    await _put(world, BUNDLE_NAME, [instance], made=[instance])


async def _put(world: World, name: str, objects: Sequence[JsonObject], *, made: Sequence[JsonObject]) -> None:
    parent = await world.find(BUNDLE, name)
    if parent is None:
        (parent,) = await world.apply(bundle(name))
    graph = await world.find(GRAPH, name)
    known = {node["id"]: node for node in (graph["spec"]["nodes"] if graph else ())}
    known |= {node["id"]: node for node in map(_node, objects)}
    owner = {"apiVersion": API_VERSION, "kind": "Bundle", "name": name, "uid": parent["metadata"]["uid"]}
    (graph,) = await world.apply(
        {
            "apiVersion": GRAPH.api_version,
            "kind": "Graph",
            "metadata": {"name": name, "namespace": TEAM, "ownerReferences": [{**owner, "controller": True}]},
            "spec": {"nodes": list(known.values())},
        }
    )
    admitted = {step["spec"]["environment"]: _ADMITTED for step in made if step["kind"] == "PromotionStep"}
    graph_record = {"uid": graph["metadata"]["uid"], "hash": spec_hash(graph)}
    record = {"status": {"graph": graph_record, "environments": admitted}}
    await world.client.patch(BUNDLE, name, TEAM, record, kind=PatchType.MERGE, subresource="status")
    await world.apply(*(_owned(obj, graph) for obj in made))


def _node(obj: JsonObject) -> JsonObject:
    spec = obj["spec"]
    identifier = f"n{short_hash(obj['metadata']['name'])}"
    if obj["kind"] == "PromotionStep":
        described = describe_step(spec["environment"], [])
    else:
        origin = spec["origin"]
        described = describe_gate(origin["environment"], namespace=origin["namespace"], name=origin["name"])
    return {"id": identifier, NODE_KEY: described, "template": obj}


def _owned(obj: JsonObject, graph: JsonObject) -> JsonObject:
    owner = {"apiVersion": GRAPH.api_version, "kind": "Graph", "controller": True}
    owner |= {field: graph["metadata"][field] for field in ("name", "uid")}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


def gate_instance(name: str, *, gate: str = "soak", environment: str = DEV, scope: str = "org") -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyGate",
        "metadata": {"name": name, "namespace": TEAM, "labels": {names.LABEL_BUNDLE: BUNDLE_NAME}},
        "spec": {
            "expression": "true",
            "message": "soak first",
            "origin": {
                "namespace": POLICIES,
                "name": gate,
                "scope": scope,
                "pipeline": APPLICATION,
                "bundle": BUNDLE_NAME,
                "environment": environment,
            },
        },
    }


def freeze_gate(message: str = "release freeze") -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyGate",
        "metadata": {
            "name": names.freeze_name(APPLICATION),
            "namespace": TEAM,
            "labels": {names.LABEL_TYPE: names.TYPE_FREEZE, names.LABEL_PIPELINE: APPLICATION},
        },
        "spec": {"expression": "false", "message": message},
    }


async def freeze(world: World) -> None:
    await world.apply(freeze_gate())


async def _set_gate(world: World, name: str, *, ready: bool, reason: str, until: datetime | None = None) -> None:
    """Answer for a gate, of the template as it is now."""
    instance = await world.get(POLICY_GATE, name)
    origin = instance["spec"]["origin"]
    template = (await world.client.get(POLICY_GATE, origin["name"], origin["namespace"]))["metadata"]
    status = {
        "ready": ready,
        "reason": reason,
        "observedGeneration": instance["metadata"]["generation"],
        "templateUID": template["uid"],
        "templateGeneration": template["generation"],
        "nextTransitionAt": format_time(until) if until is not None else None,
    }
    await world.client.patch(POLICY_GATE, name, TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")


async def open_gate(
    world: World, name: str, reason: str = "soaked 45m of 30m", *, until: datetime | None = None
) -> None:
    """Open a gate; `until` is the moment from which the answer does not count."""
    await _set_gate(world, name, ready=True, reason=reason, until=until)


async def close_gate(world: World, name: str, reason: str = "soaked 5m of 30m") -> None:
    await _set_gate(world, name, ready=False, reason=reason)


async def supersede(world: World, name: str = BUNDLE_NAME) -> None:
    body = {"status": {"phase": "Superseded"}}
    await world.client.patch(BUNDLE, name, TEAM, body, kind=PatchType.MERGE, subresource="status")


async def displace(world: World, by: str, environment: str = DEV, *, name: str = BUNDLE_NAME) -> None:
    """Say that another Bundle has taken an environment over."""
    await _set_entry(world, name, environment, {"displacedBy": by})


async def stop(world: World, why: str, environment: str = DEV, *, name: str = BUNDLE_NAME) -> None:
    """Say that the Bundle goes no further in an environment."""
    await _set_entry(world, name, environment, {"stopped": why})


async def withhold(world: World, message: str, environment: str = DEV, *, name: str = BUNDLE_NAME) -> None:
    """Say that the Bundle may not write to an environment yet."""
    await _set_entry(world, name, environment, {"admittedAt": None, "message": message})


async def admit(world: World, environment: str = DEV, *, name: str = BUNDLE_NAME) -> None:
    """Say that the Bundle may write to an environment."""
    await _set_entry(world, name, environment, {**_ADMITTED, "message": None})


async def _set_entry(world: World, name: str, environment: str, entry: JsonObject) -> None:
    body = {"status": {"environments": {environment: entry}}}
    await world.client.patch(BUNDLE, name, TEAM, body, kind=PatchType.MERGE, subresource="status")


async def deploy(
    world: World,
    environment: str = DEV,
    *,
    image: str = f"{IMAGE}:1.1.0",
    available: bool = True,
    client: Client | None = None,
) -> JsonObject:
    """Make the environment's Deployment run an image, all of it or none; `client` is of another cluster."""
    by_itself = client is None and world.server.runs_workloads
    client = client or world.client
    await client.apply(NAMESPACE, namespace(environment), field_manager="test")
    made = await client.apply(
        DEPLOYMENT,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": APPLICATION, "namespace": environment},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "x"}},
                "strategy": {"type": "Recreate"},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {
                        "containers": [{"name": "app", "image": image}],
                        "nodeSelector": {} if available else {"there-is": "no-such-node"},
                    },
                },
            },
        },
        field_manager="test",
        force=True,
    )
    if by_itself:
        await world.settle()
        return made
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "replicas": 2,
        "updatedReplicas": 2,
        "availableReplicas": 2 if available else 0,
        "conditions": [{"type": "Available", "status": str(available), "message": "minimum availability"}],
    }
    return await client.patch(
        DEPLOYMENT, APPLICATION, environment, {"status": status}, kind=PatchType.MERGE, subresource="status"
    )


async def state(world: World, environment: str = DEV, *, bundle: str = BUNDLE_NAME) -> JsonObject:
    """Return the status of a PromotionStep."""
    step = await world.get(PROMOTION_STEP, names.step_name(bundle, environment))
    found: JsonObject = step.get("status") or {}
    return found


async def reached(
    world: World, wanted: str, environment: str = DEV, *, bundle: str = BUNDLE_NAME, within: timedelta = _HOUR
) -> JsonObject:
    """Live until the PromotionStep is in a state; returns its status."""
    step = await world.wait_for(
        PROMOTION_STEP,
        names.step_name(bundle, environment),
        lambda step: bool((step.get("status") or {}).get("state") == wanted),
        within=within,
    )
    status: JsonObject = step["status"]
    return status


async def is_held(world: World, *, reason: str = "Blocked") -> bool:
    """Return whether the default promotion has the condition Held for a reason."""
    conditions = (await state(world)).get("conditions", ())
    return any((one["type"], one["status"], one["reason"]) == ("Held", "True", reason) for one in conditions)


async def wake(world: World, environment: str = DEV, *, bundle: str = BUNDLE_NAME) -> None:
    """Say what a webhook says: the pull request of a PromotionStep is worth another look."""
    body = {"metadata": {"annotations": {names.ANNOTATION_WOKEN: uuid.uuid4().hex}}}
    await world.client.patch(PROMOTION_STEP, names.step_name(bundle, environment), TEAM, body, kind=PatchType.MERGE)
    await world.settle()
