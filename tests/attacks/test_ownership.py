"""A tenant who may create Graphs, PromotionSteps and PolicyGates in one namespace, and tries to go further."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import GRAPH, GRAPH_REVISION, JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.steps.sequence import default_sequence
from kardinal_controller.program import ControlPlane
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import API_VERSION, bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World

VICTIM = POLICIES
"""A namespace that is not the tenant's."""
HOLD = {"finalizers": ["attacker.example/hold"]}


def handmade_step(repository: GitRepository, *, namespace: str = TEAM, name: str = "mine", **spec: Any) -> JsonObject:
    """Return a PromotionStep as translation would make it for prod, but without gates."""
    return {
        "apiVersion": API_VERSION,
        "kind": "PromotionStep",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "pipeline": APPLICATION,
            "environment": PROD,
            "bundleRef": "app-1",
            "path": f"environments/{PROD}",
            "git": {"url": repository.url, "provider": "git"},
            "steps": [
                {"uses": step.uses} for step in default_sequence(approval="auto", pr=False, strategy="kustomize")
            ],
            "health": {
                "type": "resource",
                "resource": {"name": APPLICATION, "namespace": PROD},
                "timeout": "10m",
            },
            "requiredGates": [],
            **spec,
        },
    }


def graph(*nodes: JsonObject, name: str = "mine", owner: JsonObject | None = None) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": TEAM}
    if owner is not None:
        metadata["ownerReferences"] = [reference(owner)]
    return {"apiVersion": GRAPH.api_version, "kind": "Graph", "metadata": metadata, "spec": {"nodes": list(nodes)}}


def reference(owner: JsonObject) -> JsonObject:
    kind = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    return kind | {field: owner["metadata"][field] for field in ("name", "uid")}


def template(obj: JsonObject) -> JsonObject:
    return {"id": "stolen", "template": obj}


def condition(obj: JsonObject, kind: str) -> JsonObject:
    found = [each for each in (obj.get("status") or {}).get("conditions", ()) if each["type"] == kind]
    return found[0] if found else {}


async def refused(world: World, name: str = "mine") -> str:
    """Wait until the engine refuses a Graph; returns why."""
    found = await world.wait_for(GRAPH, name, lambda obj: condition(obj, "Accepted").get("status") == "False")
    assert condition(found, "Accepted")["reason"] == "NotAdmitted"
    return str(condition(found, "Accepted")["message"])


async def held_before_prod(world: World, repository: GitRepository, *gates: JsonObject) -> None:
    """Run a Bundle until the gates before prod hold it."""
    await world.apply(pipeline(repository, provider="git", environments=[DEV, PROD]), *gates)
    await world.settle()
    await world.apply(bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj.get("status", {}).get("state") == "Verified")
    await world.settle()


@pytest.fixture
async def controller(world: World) -> ControlPlane:
    started = await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    return started


async def test_graphs_of_the_tenant_make_and_read_nothing(world: World, repository: GitRepository) -> None:
    """Try a watch of all namespaces, a step there, a step of the tenant's own, and a label for an org gate."""
    everything = {"apiVersion": BUNDLE.api_version, "kind": "Bundle", "selector": {}}
    masked = gate("org", "true", namespace=VICTIM, labels={names.LABEL_BUNDLE: "mask"}, applies_to=None)
    nodes = {
        "watch": {"id": "everything", "watch": everything},
        "elsewhere": template(handmade_step(repository, namespace=VICTIM)),
        "mine": template(handmade_step(repository)),
        "label": template(masked),
    }
    await start_controller(world)
    await world.apply(gate("org", "false", namespace=VICTIM, applies_to=None), bundle("secret", namespace=VICTIM))
    before = await world.objects(POLICY_GATE)
    await world.apply(*(graph(node, name=name) for name, node in nodes.items()))
    for name in nodes:
        assert "spec.serviceAccountName" in await refused(world, name)
    await world.settle()
    for name in nodes:
        assert (await world.get(GRAPH, name))["status"]["nodes"] == []
    assert await world.objects(PROMOTION_STEP) == []
    gates = await world.objects(POLICY_GATE)
    assert [each["metadata"].get("labels") for each in gates] == [each["metadata"].get("labels") for each in before]


async def test_a_graph_that_waits_under_the_name_of_a_bundle_is_not_taken_for_its_own(
    world: World, repository: GitRepository
) -> None:
    await world.apply(pipeline(repository, provider="git"), gate("org", "false", namespace=POLICIES))
    (owner,) = await world.apply(bundle("app-1"))
    await world.apply(graph(template(handmade_step(repository)), name="app-1", owner=owner))
    await start_controller(world)
    found = await world.wait_for(BUNDLE, "app-1", lambda obj: bool(condition(obj, "Ready")))
    assert condition(found, "Ready")["reason"] == "GraphNameTaken"
    await world.settle()
    assert await world.objects(PROMOTION_STEP) == []


async def test_nodes_that_are_added_to_the_graph_of_a_bundle_are_not_walked_and_not_recorded(
    world: World, repository: GitRepository, controller: ControlPlane
) -> None:
    await world.apply(pipeline(repository, provider="git"), gate("org", "false", namespace=POLICIES))
    await world.apply(bundle("app-1", intent={"target": DEV}))
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")
    nodes = (await world.get(GRAPH, "app-1"))["spec"]["nodes"]
    body = {"spec": {"nodes": [*nodes, template(handmade_step(repository))]}}
    await world.client.patch(GRAPH, "app-1", TEAM, body, kind=PatchType.MERGE)
    assert "its spec is not what Bundle app-1 was translated to" in await refused(world, "app-1")
    # A longer way must not take the foreign node into the record.
    await world.apply(bundle("app-1", intent={"target": PROD}))
    found = await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Ready").get("reason") == "GraphChanged")
    assert "delete it, and it is made again" in condition(found, "Ready")["message"]
    assert await world.find(PROMOTION_STEP, "mine") is None


async def test_a_second_graph_and_a_forged_revision_of_a_bundle_are_not_walked(
    world: World, repository: GitRepository, controller: ControlPlane
) -> None:
    """Add a second Graph of the Bundle, and a forged revision of its own, which is broken then."""
    await held_before_prod(world, repository, gate("org", "false", namespace=POLICIES))
    owner = await world.get(BUNDLE, "app-1")
    await world.apply(graph(template(handmade_step(repository)), owner=owner))
    assert "has another Graph" in await refused(world)
    owned = await world.get(GRAPH, "app-1")
    forged = {
        "apiVersion": GRAPH_REVISION.api_version,
        "kind": "GraphRevision",
        "metadata": {"name": "app-1-g99999", "namespace": TEAM, "ownerReferences": [reference(owned)]},
        "spec": {
            "nodes": [template(handmade_step(repository))],
            "generation": 99999,
            "hash": "0" * 12,
            "dialectVersion": "v1alpha1",
        },
    }
    await world.apply(forged)
    body = {"spec": {"nodes": [{"id": "broken", "template": "?"}]}}
    await world.client.patch(GRAPH, "app-1", TEAM, body, kind=PatchType.MERGE)
    await refused(world, "app-1")
    await world.settle()
    assert await world.find(PROMOTION_STEP, "mine") is None


async def test_steps_that_no_graph_made_are_not_executed(
    world: World, repository: GitRepository, controller: ControlPlane
) -> None:
    """Make a step by hand, one that names the Graph as its owner, and two in the place of the gated one."""
    await held_before_prod(world, repository, gate("org", "false", namespace=POLICIES))
    owner = await world.get(GRAPH, "app-1")
    owned = handmade_step(repository, name="owned")
    moved = handmade_step(repository, name=f"app-1-{PROD}", path=f"environments/{DEV}")
    for each in (owned, moved):
        each["metadata"]["ownerReferences"] = [reference(owner)]
    await world.apply(handmade_step(repository), owned, moved)
    messages = {
        "mine": "not executed: no Graph controls it",
        "owned": "has no node of that name",
        f"app-1-{PROD}": "its spec was changed by hand",
    }
    for name, message in messages.items():
        found = await world.wait_for(PROMOTION_STEP, name, lambda obj: bool(condition(obj, "NotOwned")))
        assert message in found["status"]["message"]
    await world.idle(timedelta(minutes=10))
    assert len(repository.promotions(DEV)) == 1
    assert repository.promotions(PROD) == []

    # With the right spec it is a step of the Graph, and waits for its gates.
    await world.delete(PROMOTION_STEP, f"app-1-{PROD}")
    node = next(
        each
        for each in owner["spec"]["nodes"]
        if each.get("template", {}).get("kind") == "PromotionStep" and each["template"]["spec"]["environment"] == PROD
    )
    spec = node["template"]["spec"] | {
        "bundleRef": "app-1",
        "upstreamVerified": "Verified",
        "requiredGates": [f"app-1-{PROD}-org"],
    }
    forged = {**node["template"], "spec": spec}
    forged["metadata"] = {**forged["metadata"], "ownerReferences": [reference(owner)]}
    await world.apply(forged)
    await world.idle(timedelta(minutes=30))
    found = await world.get(PROMOTION_STEP, f"app-1-{PROD}")
    assert "held by gate org" in found["status"]["message"]
    assert repository.promotions(PROD) == []


async def test_an_instance_of_an_org_gate_stays_closed_until_its_template_opens_it(
    world: World, repository: GitRepository, controller: ControlPlane
) -> None:
    """Write to the instance, point it at a template of the tenant, and delete, break and mend its own template."""
    await held_before_prod(world, repository, gate("org", "false", namespace=POLICIES), gate("mine", "true"))
    instance = f"app-1-{PROD}-org"
    for spec in ({"expression": "true"}, {"origin": {"namespace": TEAM, "name": "mine"}}):
        for _ in range(2):
            await world.client.patch(POLICY_GATE, instance, TEAM, {"spec": spec}, kind=PatchType.MERGE)
            await world.settle()
            assert (await world.get(POLICY_GATE, instance))["status"]["ready"] is False
        await world.wait_for(
            POLICY_GATE,
            instance,
            lambda obj: (obj["spec"]["expression"], obj["spec"]["origin"]["name"]) == ("false", "org"),
        )
        await world.settle()
        assert (await world.get(POLICY_GATE, instance))["status"]["ready"] is False

    await world.delete(POLICY_GATE, "org", POLICIES)
    found = await world.wait_for(
        POLICY_GATE, instance, lambda obj: "does not exist" in (obj["status"].get("reason") or "")
    )
    assert found["status"]["ready"] is False
    await world.idle(timedelta(minutes=10))
    await world.apply(gate("org", "bundle.nothing", namespace=POLICIES))
    found = await world.wait_for(POLICY_GATE, instance, lambda obj: "nothing" in (obj["status"].get("reason") or ""))
    assert found["status"]["ready"] is False
    assert repository.promotions(PROD) == []
    await world.apply(gate("org", "true", namespace=POLICIES))
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")


async def test_an_instance_made_in_advance_does_not_become_the_gate(
    world: World, repository: GitRepository, controller: ControlPlane
) -> None:
    """The Graph has not reached prod when an open instance of the gate is already there."""
    await world.apply(pipeline(repository, provider="git", environments=[DEV, environment(PROD)]))
    await world.apply(gate("org", "false", namespace=POLICIES), gate("wait", "false", applies_to=DEV))
    await world.settle()
    await world.apply(bundle("app-1"))
    await world.settle()
    forged = gate("x", "true", labels={names.LABEL_BUNDLE: "app-1"}, applies_to=None)
    forged["metadata"]["name"] = f"app-1-{PROD}-org"
    await world.apply(forged)
    await world.client.patch(
        POLICY_GATE, f"app-1-{PROD}-org", TEAM, {"status": {"ready": True}}, kind=PatchType.MERGE, subresource="status"
    )
    await world.apply(gate("wait", "true", applies_to=DEV))
    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj.get("status", {}).get("state") == "Verified")
    found = await world.wait_for(GRAPH, "app-1", lambda obj: condition(obj, "Ready").get("reason") == "Conflict")
    assert "was made by someone else" in condition(found, "Ready")["message"]
    await world.idle(timedelta(minutes=10))
    assert repository.promotions(PROD) == []


@pytest.mark.local_only("the garbage collector of a cluster does not rest while a finalizer keeps an object")
async def test_forged_marks_do_not_keep_a_graph_from_going(
    world: World, repository: GitRepository, controller: ControlPlane
) -> None:
    await held_before_prod(world, repository, gate("org", "false", namespace=POLICIES))
    owner = await world.get(GRAPH, "app-1")
    marked = (await world.get(PROMOTION_STEP, f"app-1-{DEV}"))["metadata"]
    for name, layer in {"high": "999999", "endless": "9" * 5000}.items():
        forged = handmade_step(repository, name=name)
        annotations = {**marked["annotations"], "internal.kro.run/apply-order": layer}
        forged["metadata"] |= HOLD | {"labels": marked["labels"], "annotations": annotations}
        forged["metadata"]["ownerReferences"] = [reference(owner)]
        await world.apply(forged)
    await world.settle()
    await world.delete(BUNDLE, "app-1")

    async def gone() -> bool:
        return await world.find(GRAPH, "app-1") is None

    await world.until(gone)
    assert await world.find(PROMOTION_STEP, f"app-1-{DEV}") is None


@pytest.mark.local_only("the time of a deletion is the server's, and ten minutes of it are long")
async def test_a_finalizer_on_a_step_keeps_a_graph_for_minutes_and_not_for_ever(
    world: World, repository: GitRepository, controller: ControlPlane
) -> None:
    await held_before_prod(world, repository, gate("org", "false", namespace=POLICIES))
    held = {"metadata": HOLD}
    await world.client.patch(POLICY_GATE, f"app-1-{PROD}-org", TEAM, held, kind=PatchType.MERGE)
    await world.delete(BUNDLE, "app-1")
    await world.live(timedelta(minutes=9))
    assert await world.find(PROMOTION_STEP, f"app-1-{DEV}") is not None
    await world.live(timedelta(minutes=2))
    assert await world.find(PROMOTION_STEP, f"app-1-{DEV}") is None
    assert await world.find(GRAPH, "app-1") is None
