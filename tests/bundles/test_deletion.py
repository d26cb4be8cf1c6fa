"""Deletion in any order leaves neither proposals nor objects behind, with the programs as they run in a cluster."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from kardinal.kube import NotFound
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, GRAPH, NAMESPACE, ResourceType
from kardinal.promotion.api.names import FINALIZER, branch_name
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from tests.support.names import DEV, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, namespace, pipeline
from tests.support.programs import start_agent, start_controller
from tests.support.repository import GitRepository
from tests.support.reviewer import merge_pull_request, open_pull_requests
from tests.support.world import World

NAME = "app-1"
STEP = f"{NAME}-{DEV}"
SOON = timedelta(minutes=2)

REVIEWED = environment(DEV, approval="pr-review")


async def proposed(world: World, step: str = STEP, *, namespace: str = TEAM) -> None:
    await world.wait_for(
        PROMOTION_STEP,
        step,
        lambda found: found.get("status", {}).get("state") == "WaitingForMerge",
        namespace=namespace,
        within=SOON,
    )


async def count(world: World, resource: ResourceType) -> int:
    try:
        return len(await world.objects(resource, TEAM))
    except NotFound:
        return 0


async def nothing_is_left(world: World) -> bool:
    return not any([await count(world, resource) for resource in (BUNDLE, GRAPH, PROMOTION_STEP)])


DELETIONS: list[list[tuple[ResourceType, str]]] = [
    [(BUNDLE, NAME)],
    [(GRAPH, NAME), (BUNDLE, NAME)],
    [(PIPELINE, "my-app"), (BUNDLE, NAME)],
    [(BUNDLE, NAME), (PIPELINE, "my-app")],
    [(POLICY_GATE, "always"), (BUNDLE, NAME)],
    [(PROMOTION_STEP, STEP), (BUNDLE, NAME)],
    [(NAMESPACE, TEAM)],
]


async def test_objects_go_in_any_order_and_take_the_proposal_with_them(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    gates = gate("always", "true", namespace=TEAM)
    for objects in DELETIONS:
        await world.apply(gates, pipeline(repository, environments=[REVIEWED, STAGING]), bundle(NAME))
        await proposed(world)
        for resource, name in objects:
            await world.delete(resource, name)
        await world.until(lambda: nothing_is_left(world), within=SOON)
        assert await open_pull_requests(world, repository) == [], objects
        assert repository.branches() == ["main"], objects


@pytest.mark.parametrize(
    "kinds",
    [[PROMOTION_STEP], [GRAPH], [BUNDLE, GRAPH, PROMOTION_STEP, PIPELINE, POLICY_GATE]],
    ids=["steps", "graphs", "all"],
)
@pytest.mark.local_only("takes kinds away that other tests of the server need")
async def test_the_definition_of_a_kind_may_go_before_its_objects(
    world: World, repository: GitRepository, kinds: list[ResourceType]
) -> None:
    await start_controller(world)
    await world.apply(pipeline(repository, environments=[REVIEWED]), bundle(NAME))
    await proposed(world)
    for kind in kinds:
        await world.delete(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}")
    await world.until(lambda: no_proposal_is_open(world, repository), within=SOON)
    for kind in kinds:
        await world.until(partial(is_undefined, world, kind), within=SOON)


async def no_proposal_is_open(world: World, repository: GitRepository) -> bool:
    return repository.branches() == ["main"] and await open_pull_requests(world, repository) == []


async def is_undefined(world: World, kind: ResourceType) -> bool:
    return await world.find(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}") is None


async def test_a_step_that_is_deleted_proposes_anew_and_a_pipeline_that_goes_stops_nothing(
    world: World, repository: GitRepository
) -> None:
    await start_controller(world)
    await world.apply(pipeline(repository, environments=[REVIEWED]), bundle(NAME))
    await proposed(world)
    before = await world.get(PROMOTION_STEP, STEP)
    await world.delete(PROMOTION_STEP, STEP)
    await world.wait_for(
        PROMOTION_STEP, STEP, lambda step: step["metadata"]["uid"] != before["metadata"]["uid"], within=SOON
    )
    await proposed(world)
    (found,) = await open_pull_requests(world, repository)
    assert found.number == 2

    await world.delete(PIPELINE, "my-app")
    await world.settle()
    assert await open_pull_requests(world, repository) == [found]
    await merge_pull_request(world, repository, found.number)
    await world.wait_for(
        PROMOTION_STEP, STEP, lambda step: step["status"].get("state") == "HealthChecking", within=SOON
    )


async def test_bundles_of_one_name_in_two_namespaces_do_not_meet(world: World, repository: GitRepository) -> None:
    other = f"{TEAM}-2"
    await start_controller(world)
    await world.apply(namespace(other))
    for where in (TEAM, other):
        await world.apply(pipeline(repository, environments=[REVIEWED], namespace=where))
        await world.apply(bundle(NAME, namespace=where))
        await proposed(world, namespace=where)
    found = await open_pull_requests(world, repository)
    assert [one.head for one in found] == [branch_name(where, NAME, DEV) for where in (TEAM, other)]
    await world.client.delete(BUNDLE, NAME, TEAM)
    await world.until(lambda: nothing_is_left(world), within=SOON)
    (left,) = await open_pull_requests(world, repository)
    assert left.head == branch_name(other, NAME, DEV)


@pytest.mark.local_only("a real server notes the time of a deletion by its own clock")
async def test_the_control_plane_lets_go_what_an_agent_that_is_gone_does_not(
    world: World, repository: GitRepository
) -> None:
    controller = await start_controller(world)
    agent = await start_agent(world, shard="eu")
    sharded = environment(DEV, approval="pr-review", shard="eu")
    await world.apply(pipeline(repository, environments=[sharded]), bundle(NAME))
    await proposed(world)
    await world.stop(agent)
    await world.delete(BUNDLE, NAME)
    await world.live(timedelta(minutes=10, seconds=50))
    assert (await world.get(PROMOTION_STEP, STEP))["metadata"]["finalizers"] == [FINALIZER]
    await world.until(lambda: nothing_is_left(world), within=timedelta(minutes=1))
    assert controller.manager.metrics.get_sample_value("kardinal_steps_released_total", {"shard": "eu"}) == 1


async def test_nothing_is_kept_for_a_push_without_a_review(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    await world.apply(pipeline(repository, environments=[DEV]), bundle(NAME))
    step = await world.wait_for(
        PROMOTION_STEP, STEP, lambda step: step.get("status", {}).get("state") == "HealthChecking", within=SOON
    )
    assert "finalizers" not in step["metadata"]
    assert "proposal" not in step["status"]
