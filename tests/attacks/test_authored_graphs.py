"""A tenant who may write Graphs, and offers one to a Bundle to go past a gate or to another place.

What a Graph may say is in tests/translation/test_authored.py; here is what the programs do with one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from kardinal.kube import Invalid, PatchType
from kardinal.objects import GRAPH, SECRET, JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.support.accounts import allow, lend, make_account, rule
from tests.support.authored import PROMOTER, authored_graph, make_promoter, manual_bundle
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.webhook import Ci, body_of, webhook_secret
from tests.support.world import World

PROMOTE = rule("promote", on="bundles", group="kardinal.io")


def condition(obj: JsonObject, kind: str) -> JsonObject:
    found = [each for each in (obj.get("status") or {}).get("conditions", ()) if each["type"] == kind]
    return found[0] if found else {}


async def refused(world: World, why: str, name: str = "app-1") -> None:
    """Wait until Graph and Bundle say why the Graph is refused; nothing was made of it."""
    bundle_says = await world.wait_for(BUNDLE, name, lambda obj: why in condition(obj, "Ready").get("message", ""))
    assert condition(bundle_says, "Ready")["reason"] == "WaitingForGraph"
    assert condition(bundle_says, "GraphRefused")["status"] == "True"
    assert bundle_says["status"]["phase"] == "Available"
    found = await world.wait_for(GRAPH, name, lambda obj: why in condition(obj, "Accepted").get("message", ""))
    assert condition(found, "Accepted")["reason"] == "NotAdmitted"
    await world.settle()
    assert await world.objects(PROMOTION_STEP) == []
    assert await world.objects(POLICY_GATE, labels="kardinal.io/bundle") == []


async def stopped(world: World, why: str, name: str = "app-1") -> None:
    """Wait until the engine says that it no longer walks a Graph."""
    found = await world.wait_for(GRAPH, name, lambda obj: condition(obj, "Accepted").get("status") == "False")
    assert why in condition(found, "Accepted")["message"]


async def change(world: World, name: str, spec: JsonObject) -> None:
    await world.client.patch(GRAPH, name, TEAM, {"spec": spec}, kind=PatchType.MERGE)


def spec_of(graph: JsonObject, environment: str) -> Any:
    """Return the spec of the step of an environment."""
    [node] = [
        node
        for node in graph["spec"]["nodes"]
        if node.get("x-kardinal")
        and node["x-kardinal"]["kind"] == "step"
        and node["x-kardinal"]["environment"] == environment
    ]
    return node["template"]["spec"]


@pytest.fixture
async def waiting(world: World, repository: GitRepository) -> None:
    """Have a Bundle wait for its Graph, behind an org gate before prod that is closed."""
    await make_promoter(world)
    await world.apply(
        pipeline(repository, provider="git", environments=[DEV, PROD]),
        gate("org", "false", namespace=POLICIES),
    )
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    await world.apply(manual_bundle())


@pytest.fixture
async def held(world: World, waiting: None) -> JsonObject:
    """Have the Graph admitted, and held before prod."""
    [graph] = await world.apply(await authored_graph(world))
    await world.wait_for(POLICY_GATE, f"app-1-{PROD}-org", lambda obj: obj.get("status", {}).get("ready") is False)
    await world.settle()
    return graph


@pytest.mark.usefixtures("waiting")
async def test_graph_without_the_org_gate_is_refused(world: World) -> None:
    graph = await authored_graph(world)
    nodes = graph["spec"]["nodes"]
    graph["spec"]["nodes"] = [each for each in nodes if each.get("x-kardinal", {}).get("kind") != "gate"]
    spec_of(graph, PROD)["requiredGates"] = []
    await world.apply(graph)
    await refused(world, f"org gate {POLICIES}/org holds {PROD}")


@pytest.mark.usefixtures("waiting")
async def test_graph_that_writes_elsewhere_is_refused(world: World, repository: GitRepository) -> None:
    graph = await authored_graph(world)
    spec_of(graph, DEV)["path"] = f"environments/{PROD}"
    await world.apply(graph)
    await refused(world, f'template.spec.path: write "environments/{DEV}"')
    spec_of(graph, DEV)["path"] = f"environments/${{bundle.spec.type == 'image' ? '{DEV}' : '{PROD}'}}"
    await world.apply(graph)
    await refused(world, f'template.spec.path: write "environments/{DEV}"')
    spec_of(graph, DEV)["path"] = f"environments/{DEV}"
    spec_of(graph, DEV)["git"]["branch"] = "other"
    await world.apply(graph)
    await refused(world, 'template.spec.git.branch: write "main"')
    assert len(repository.commits()) == 1


@pytest.mark.usefixtures("waiting")
async def test_refused_graph_is_walked_once_it_is_put_right(world: World) -> None:
    graph = await authored_graph(world)
    graph["spec"]["nodes"].append({"id": "extra", "def": 1})
    await world.apply(graph)
    await refused(world, "node extra: def")
    await world.apply(await authored_graph(world))
    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj["status"].get("state") == "Verified")


async def test_step_that_changes_while_a_gate_waits_is_not_walked(
    world: World, repository: GitRepository, held: JsonObject
) -> None:
    before = repository.commits()
    spec_of(held, PROD)["path"] = f"environments/{DEV}"
    await change(world, "app-1", held["spec"])
    await stopped(world, "its spec has changed since Bundle app-1 was given to it")
    await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Ready").get("reason") == "GraphTrouble")
    # The gate opens too late.
    await world.apply(gate("org", "true", namespace=POLICIES))
    await world.settle()
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None
    assert repository.commits() == before


async def test_gate_that_is_taken_out_while_it_holds_stays_closed(world: World, held: JsonObject) -> None:
    nodes = [each for each in held["spec"]["nodes"] if each.get("x-kardinal", {}).get("kind") != "gate"]
    spec_of(held, PROD)["requiredGates"] = []
    await change(world, "app-1", {**held["spec"], "nodes": nodes})
    await stopped(world, "its spec has changed")
    await world.settle()
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None


async def test_spec_that_is_put_back_is_walked_again(world: World, held: JsonObject) -> None:
    await change(world, "app-1", {**held["spec"], "serviceAccountName": "other"})
    await stopped(world, "its spec has changed")
    await change(world, "app-1", held["spec"])
    await world.wait_for(GRAPH, "app-1", lambda obj: condition(obj, "Accepted").get("status") == "True")
    await world.apply(gate("org", "true", namespace=POLICIES))
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")


@pytest.mark.usefixtures("held")
async def test_graph_that_loses_its_owner_is_taken_back(world: World) -> None:
    before = (await world.get(GRAPH, "app-1"))["metadata"]["ownerReferences"]
    await world.client.patch(GRAPH, "app-1", TEAM, {"metadata": {"ownerReferences": None}}, kind=PatchType.MERGE)
    await world.wait_for(GRAPH, "app-1", lambda obj: obj["metadata"].get("ownerReferences") == before)
    await world.apply(gate("org", "true", namespace=POLICIES))
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")


async def test_graph_without_its_owner_is_taken_back_only_as_it_was(world: World, held: JsonObject) -> None:
    """Take the owner reference off, which the policies of deploy/admission allow, to change the spec afterwards."""
    body: JsonObject = {"metadata": {"ownerReferences": None}}
    await world.client.patch(GRAPH, "app-1", TEAM, body, kind=PatchType.MERGE)
    await change(world, "app-1", {"nodes": held["spec"]["nodes"][:2]})
    found = await world.wait_for(
        BUNDLE, "app-1", lambda obj: condition(obj, "Ready").get("reason") in ("GraphChanged", "GraphTrouble")
    )
    assert found["status"]["phase"] == "Promoting"
    await stopped(world, "does not go by it: GraphChanged" if "GraphChanged" in str(found["status"]) else "changed")
    await world.apply(gate("org", "true", namespace=POLICIES))
    await world.settle()
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None


async def test_graph_of_the_same_name_does_not_take_the_place_of_one_that_was_deleted(
    world: World, held: JsonObject
) -> None:
    await world.delete(GRAPH, "app-1")

    async def gone() -> bool:
        return await world.find(GRAPH, "app-1") is None

    await world.until(gone)
    await world.apply(await authored_graph(world))
    await stopped(world, "Bundle app-1 has started with another Graph: create another Bundle")
    found = await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Failed")
    assert condition(found, "Ready")["reason"] == "GraphDeleted"
    assert await world.objects(PROMOTION_STEP) == []


@pytest.mark.usefixtures("held")
async def test_second_graph_of_a_bundle_is_refused(world: World) -> None:
    second = await authored_graph(world)
    second["metadata"]["name"] = "app-1-too"
    await world.apply(second)
    await stopped(world, "have one name", "app-1-too")


@pytest.mark.usefixtures("waiting")
async def test_bundle_of_the_pipeline_takes_no_graph(world: World) -> None:
    await world.apply(bundle("app-2", intent={"target": DEV}))
    await world.wait_for(BUNDLE, "app-2", lambda obj: obj["status"].get("phase") == "Verified")
    await world.apply(bundle("app-3", pipeline="none"))
    graph = await authored_graph(world, "app-1")
    graph["metadata"]["name"] = graph["spec"]["bundleRef"] = "app-3"
    del graph["metadata"]["labels"]
    await world.apply(graph)
    await stopped(world, "Bundle app-3 gets", "app-3")
    graph["metadata"]["name"] = graph["spec"]["bundleRef"] = "app-4"
    await world.apply(graph)
    await stopped(world, "there is no Bundle app-4 here", "app-4")


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("waiting")
async def test_account_needs_the_verb_promote_and_is_asked_again(world: World) -> None:
    await make_account(world, "deployer", rule("*", on="promotionsteps", group="kardinal.io"))
    graph = await authored_graph(world)
    graph["spec"]["serviceAccountName"] = "deployer"
    await world.apply(graph)
    await refused(world, "deployer may not promote")
    await allow(world, "deployer", rule("promote", on="bundles", group="kardinal.io", names=("app-1",)))
    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj["status"].get("state") == "Verified")


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("waiting")
async def test_account_that_is_not_lent_to_the_controller_promotes_nothing(world: World) -> None:
    """Name the account of a colleague, which may promote."""
    await allow(world, "powerful", PROMOTE)
    graph = await authored_graph(world)
    graph["spec"]["serviceAccountName"] = "powerful"
    await world.apply(graph)
    await refused(world, "act as ServiceAccount powerful")
    await lend(world, "powerful")
    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj["status"].get("state") == "Verified")


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("name", [f"{POLICIES}:{PROMOTER}", f"system:serviceaccount:{POLICIES}:{PROMOTER}", ""])
async def test_account_of_another_namespace_cannot_be_named(world: World, name: str) -> None:
    await make_account(world, PROMOTER, PROMOTE, namespace=POLICIES)
    graph = await authored_graph(world)
    graph["spec"]["serviceAccountName"] = name
    await world.apply(graph)
    await refused(world, "spec.serviceAccountName")


CHANGES: dict[str, JsonObject] = {
    "a target": {"graph": "manual", "target": DEV},
    "a skip": {"graph": "manual", "skip": [DEV]},
    "the Graph of the Pipeline": {"graph": None},
}


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("intent", CHANGES.values(), ids=CHANGES)
async def test_intent_beside_a_graph_by_hand_does_not_change(world: World, intent: JsonObject) -> None:
    with pytest.raises(Invalid):
        await world.client.patch(BUNDLE, "app-1", TEAM, {"spec": {"intent": intent}}, kind=PatchType.MERGE)


async def test_ci_posts_no_bundle_that_waits_for_a_graph(world: World, repository: GitRepository) -> None:
    await world.client.create(SECRET, webhook_secret())
    await world.apply(pipeline(repository, provider="git"))
    controller = await start_controller(world)
    await world.settle()
    async with aiohttp.ClientSession() as session:
        answer = await Ci(controller.api_url, session, world.clock).post(body_of(intent={"graph": "manual"}))
    assert answer.status == 422
    [error] = answer.body["errors"]
    assert error["field"] == "intent.graph"
    assert await world.objects(BUNDLE) == []


@pytest.mark.usefixtures("waiting")
async def test_graph_of_another_namespace_promotes_nothing_here(world: World) -> None:
    graph = await authored_graph(world)
    graph["metadata"]["namespace"] = POLICIES
    await world.apply(graph)
    found = await world.wait_for(
        GRAPH, "app-1", lambda obj: condition(obj, "Accepted").get("status") == "False", namespace=POLICIES
    )
    assert "no Bundle app-1" in condition(found, "Accepted")["message"]


async def test_environment_with_an_org_gate_is_not_left_out_without_permission(
    world: World, repository: GitRepository
) -> None:
    await make_promoter(world)
    await world.apply(
        pipeline(repository, provider="git", environments=[DEV, STAGING, PROD]),
        gate("guard", "true", applies_to=STAGING, namespace=POLICIES),
    )
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    await world.apply(manual_bundle())
    graph = await authored_graph(world)
    kept = [
        each for each in graph["spec"]["nodes"] if each.get("x-kardinal", {}).get("environment") not in (STAGING, PROD)
    ]
    [prod] = [each for each in graph["spec"]["nodes"] if each.get("x-kardinal", {}).get("environment") == PROD]
    [dev] = [each for each in kept if "x-kardinal" in each]
    prod["x-kardinal"]["upstreams"] = [DEV]
    prod["template"]["spec"]["upstreamVerified"] = f"${{{dev['id']}.status.state}}"
    graph["spec"]["nodes"] = [*kept, prod]
    await world.apply(graph)
    await refused(world, "denied by gate guard")
    permission = {"kardinal.io/type": "skip-permission"}
    await world.apply(gate("allowed", "true", applies_to=STAGING, namespace=POLICIES, labels=permission))
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")
    assert list((await world.get(BUNDLE, "app-1"))["status"]["environments"]) == sorted([DEV, PROD])


@pytest.mark.usefixtures("held")
async def test_pipeline_that_changes_makes_no_bundle_by_hand_outdated(world: World, repository: GitRepository) -> None:
    await world.apply(pipeline(repository, provider="git", environments=[DEV, STAGING, PROD]))
    await world.settle()
    found = await world.get(BUNDLE, "app-1")
    assert found["status"]["phase"] == "Promoting"
    assert condition(found, "Outdated") == {}


async def test_deleted_bundle_takes_its_graph_along(world: World, held: JsonObject) -> None:
    await world.delete(BUNDLE, "app-1")

    async def gone() -> bool:
        return await world.find(GRAPH, "app-1") is None and not await world.objects(PROMOTION_STEP)

    await world.until(gone)
