"""The proof of a promotion at work: what is watched for how long, when a failure counts, and several services."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import DEPLOYMENT, NAMESPACE, POD, STATEFUL_SET, JsonObject, Key
from kardinal.runtime import Channel, Manager
from kardinal.runtime.dynamic import LINGER
from kardinal_agent.health import Watched
from kardinal_agent.health.watching import HealthWatches
from kardinal_agent.program import Agent
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, state, supersede
from tests.support.names import DEV, TEAM
from tests.support.objects import namespace
from tests.support.repository import APPLICATION, IMAGE, GitRepository
from tests.support.world import World

AFTER = timedelta(seconds=LINGER + 1)
FAILED = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"}


def opened(agent: Agent) -> list[tuple[str, str | None]]:
    """Return the kind and the name of every watch that was opened at work."""
    return [(each.resource.kind, each.fields) for each in agent.manager.dynamic.informers]


async def set_status(world: World, **status: Any) -> None:
    body = {"status": status}
    await world.client.patch(DEPLOYMENT, APPLICATION, DEV, body, kind=PatchType.MERGE, subresource="status")
    await world.settle()


async def fail_rollout(world: World) -> None:
    made = await deploy(world, available=False)
    await set_status(world, observedGeneration=made["metadata"]["generation"], conditions=[FAILED])


@pytest.mark.virtual_time("watches end half a minute after the last look")
async def test_only_the_named_workload_is_in_memory_and_only_while_it_is_proved(
    world: World, repository: GitRepository
) -> None:
    await deploy(world, "other")
    agent = await start_agent(world)
    assert opened(agent) == []
    await deploy(world, available=False)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await world.settle()
    assert opened(agent) == [("Deployment", f"metadata.name={APPLICATION}"), ("Pod", None)]
    held = [len(informer.list()) for informer in agent.manager.dynamic.informers]
    assert held[0] == 1
    await deploy(world)
    await reached(world, "Verified")
    await world.live(AFTER)
    assert opened(agent) == []


@pytest.mark.virtual_time("watches end half a minute after the last look")
async def test_watches_follow_the_proofs_and_end_with_them(
    world: World,
) -> None:
    manager = Manager(world.client, clock=world.clock, name="watches")
    tasks = len(asyncio.all_tasks())
    watches = HealthWatches(manager.dynamic, Channel())
    promotions = [Key(TEAM, f"promotion-{number}") for number in range(100)]
    for number, key in enumerate(promotions):
        await watches.read(key, [Watched(kind=DEPLOYMENT, namespace=DEV, name=f"web-{number % 5}")])
    assert len(manager.dynamic.informers) == 5
    assert set(watches.watchers_in(DEV)) == set(promotions)
    for key in promotions:
        watches.release(key)
    assert watches.watchers_in(DEV) == []
    await world.live(AFTER)
    assert manager.dynamic.informers == []
    await world.until(lambda: len(asyncio.all_tasks()) <= tasks)


@pytest.mark.virtual_time("watches end half a minute after the last look")
async def test_a_promotion_that_ends_otherwise_leaves_no_watch(world: World, repository: GitRepository) -> None:
    agent = await start_agent(world)
    await create(world, promotion_step(repository, health={"timeout": "4s"}))
    await reached(world, "Failed")
    await world.live(AFTER)
    assert opened(agent) == []


@pytest.mark.virtual_time("watches end half a minute after the last look")
async def test_a_superseded_promotion_that_is_proved_keeps_its_watch_until_it_ends(
    world: World, repository: GitRepository
) -> None:
    agent = await start_agent(world)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await supersede(world)
    await deploy(world)
    await reached(world, "Verified")
    await world.live(AFTER)
    assert opened(agent) == []


@pytest.mark.local_only("statuses of Deployments are written by hand")
async def test_a_failure_that_lasts_ends_the_promotion_long_before_its_timeout(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world, quote_namespaces=("*",))
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    began = world.clock.now()
    await fail_rollout(world)
    status = await state(world)
    assert status["state"] == "HealthChecking"
    assert status["health"]["reason"] == "ProgressDeadlineExceeded"
    status = await reached(world, "Failed", within=timedelta(minutes=1))
    assert world.clock.now() - began >= timedelta(seconds=30)
    assert status["conditions"][0]["reason"] == "HealthFailed"
    assert status["message"].startswith(f"health-check: ProgressDeadlineExceeded: Deployment {DEV}/my-app: ")
    assert status["message"].endswith(": too slow")


@pytest.mark.local_only("statuses of Deployments are written by hand")
async def test_a_failure_that_passes_is_none(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    for _ in range(2):
        await fail_rollout(world)
        await world.live(timedelta(seconds=20))
        await set_status(world, conditions=[])
        assert "health" not in await state(world)
    await deploy(world)
    await reached(world, "Verified")


@pytest.mark.local_only("statuses of Deployments are written by hand")
async def test_the_fix_of_a_broken_environment_is_not_killed_by_what_it_repairs(
    world: World, repository: GitRepository
) -> None:
    """Until the fix is applied and observed, the failure is that of the version before."""
    await start_agent(world)
    broken = await deploy(world, image=f"{IMAGE}:1.0.0", available=False)
    await set_status(world, observedGeneration=broken["metadata"]["generation"], conditions=[FAILED])
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await world.live(timedelta(minutes=2))
    assert (await state(world))["state"] == "HealthChecking"
    image = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": f"{IMAGE}:1.1.0"}]}}}}
    await world.client.patch(DEPLOYMENT, APPLICATION, DEV, image, kind=PatchType.STRATEGIC)
    await world.live(timedelta(minutes=2))
    assert (await state(world))["state"] == "HealthChecking"
    await deploy(world)
    await reached(world, "Verified")


@pytest.mark.local_only("statuses of Deployments are written by hand")
async def test_a_restart_does_not_renew_the_time_that_a_failure_has(world: World, repository: GitRepository) -> None:
    agent = await start_agent(world)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await fail_rollout(world)
    since = datetime.fromisoformat((await state(world))["health"]["failingSince"])
    await world.live(timedelta(seconds=20))
    await world.stop(agent)
    await start_agent(world)
    status = await reached(world, "Failed", within=timedelta(seconds=12))
    assert datetime.fromisoformat(status["health"]["failingSince"]) == since


@pytest.mark.local_only("statuses of pods are written by hand")
async def test_an_image_that_cannot_be_pulled_ends_the_promotion(world: World, repository: GitRepository) -> None:
    await start_agent(world, quote_namespaces=("*",))
    await deploy(world, available=False)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    container = {"name": "app", "image": f"{IMAGE}:1.1.0"}
    metadata = {"name": "app-1", "namespace": DEV, "labels": {"app": "x"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    await world.client.apply(POD, pod, field_manager="kubelet")
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}
    stuck = {**container, "imageID": "", "ready": False, "restartCount": 0, "state": waiting}
    status = {"status": {"containerStatuses": [stuck]}}
    await world.client.patch(POD, "app-1", DEV, status, kind=PatchType.MERGE, subresource="status")
    found = await reached(world, "Failed", within=timedelta(minutes=1))
    assert "pod app-1 cannot pull" in found["message"]
    assert "ImagePullBackOff: no such tag" in found["message"]


def stateful_set(name: str, image: str) -> JsonObject:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": DEV},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "serviceName": name, "template": template},
    }


@pytest.mark.local_only("statuses of workloads are written by hand")
async def test_workloads_that_are_not_named_are_found_by_the_promoted_image(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await world.client.apply(NAMESPACE, namespace(DEV), field_manager="test")
    everything = {"resource": {"namespace": DEV}}
    await create(world, promotion_step(repository, health=everything))
    status = await reached(world, "HealthChecking")
    assert status["message"].startswith(f"waits: no workload of namespace {DEV} runs a version of {IMAGE}")
    await deploy(world)
    await world.client.apply(STATEFUL_SET, stateful_set("store", f"{IMAGE}:1.0.0"), field_manager="test")
    await world.settle()
    assert (await state(world))["state"] == "HealthChecking"
    made = await world.client.apply(STATEFUL_SET, stateful_set("store", f"{IMAGE}:1.1.0"), field_manager="test")
    observed = {"status": {"observedGeneration": made["metadata"]["generation"], "replicas": 0}}
    await world.client.patch(STATEFUL_SET, "store", DEV, observed, kind=PatchType.MERGE, subresource="status")
    status = await reached(world, "Verified")
    assert f"a StatefulSet of namespace {DEV} runs {IMAGE}:1.1.0" in status["message"]
