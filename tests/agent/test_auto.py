"""A promotion without a review: one commit on the target branch, a proof, and no more writes than needed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from kardinal.objects import DEPLOYMENT
from kardinal.promotion.api import names
from kardinal_agent.health.workloads import missing_workload
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, put, reached, start_agent, state
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

WRITES = ("create", "update", "patch", "delete")


async def test_the_change_lands_once_and_is_verified_by_what_runs(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    before = repository.read(f"environments/{DEV}/kustomization.yaml")

    await create(world, promotion_step(repository))
    status = await reached(world, "HealthChecking")
    assert status["message"] == missing_workload(DEPLOYMENT, DEV, "my-app").message
    await deploy(world)
    status = await reached(world, "Verified")

    (commit,) = repository.promotions(DEV)
    assert commit.subject == f"Promote my-app 1.1.0 to {DEV}"
    assert commit.trailers["Kardinal-Bundle"] == BUNDLE_NAME
    assert commit.trailers["Kardinal-Environment"] == DEV
    assert commit.trailers["Kardinal-Step"] == f"{TEAM}/{BUNDLE_NAME}-{DEV}"
    assert commit.sha == repository.head() == status["commit"]
    after = repository.read(f"environments/{DEV}/kustomization.yaml")
    assert after == before.replace('newTag: "1.0.0"', 'newTag: "1.1.0"')
    assert status["message"] == f"Deployment {DEV}/my-app runs {IMAGE}:1.1.0"
    diff = status["diff"].splitlines()
    assert [line for line in diff if line[:2] in ("- ", "+ ")] == ['-    newTag: "1.0.0"', '+    newTag: "1.1.0"']
    assert [(entry["uses"], entry["state"]) for entry in status["steps"]] == [
        ("git-clone", "Succeeded"),
        ("kustomize-set-image", "Succeeded"),
        ("git-commit", "Succeeded"),
        ("git-push", "Succeeded"),
        ("health-check", "Succeeded"),
    ]
    times = [(entry["startedAt"], entry["finishedAt"]) for entry in status["steps"]]
    assert all(began <= ended for began, ended in times)
    assert times[0][0] == status["startedAt"]
    assert all(ended <= began for (_, ended), (began, _) in pairwise(times))


async def test_kubectl_can_wait_for_the_condition_ready(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository))
    status = await reached(world, "HealthChecking")
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "False", "HealthChecking")
    await deploy(world)
    status = await reached(world, "Verified")
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "True", "Verified")


def writes_of_promotions(world: World) -> int:
    return world.audit.count(verbs=WRITES, resource="promotionsteps.kardinal.io", user=world.user("agent"))


async def test_a_promotion_costs_three_status_writes(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository))
    await reached(world, "Verified")
    await world.settle()
    assert world.audit.count(verbs=WRITES, resource="promotionsteps.kardinal.io", user=world.user("agent")) == 3
    assert writes_of_promotions(world) == 3


async def test_a_verified_promotion_is_left_alone(world: World, repository: GitRepository) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository))
    await reached(world, "Verified")
    await world.settle()
    requests = world.audit.count(user=world.user("agent"))
    fetches = agent.repositories.fetches
    await deploy(world, available=False)
    await world.idle(timedelta(hours=1))
    assert (await state(world))["state"] == "Verified"
    assert agent.repositories.fetches == fetches
    assert writes_of_promotions(world) == 3
    # The watches are begun again every few minutes; nothing else is asked.
    began = world.audit.count(verbs=("list", "watch"), user=world.user("agent"))
    assert world.audit.count(user=world.user("agent")) - requests <= began


async def test_nothing_to_change_is_success_without_a_commit(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    head = repository.head()
    await deploy(world, image=f"{IMAGE}:1.0.0")
    await create(world, promotion_step(repository), tag="1.0.0")
    status = await reached(world, "Verified")
    assert repository.head() == head == status["commit"]
    assert status["steps"][3]["message"] == "nothing to change on main"


async def test_healthy_on_the_old_version_does_not_verify(world: World, repository: GitRepository) -> None:
    await start_agent(world, quote_namespaces=("*",))
    await deploy(world, image=f"{IMAGE}:1.0.0")
    await create(world, promotion_step(repository))
    status = await reached(world, "HealthChecking")
    await world.settle()
    assert (await state(world))["state"] == "HealthChecking"
    assert re.search(rf"{IMAGE}:1\.1\.0 .*{IMAGE}:1\.0\.0", status["message"])


async def test_unhealthy_environment_fails_at_its_deadline_despite_a_restart(
    world: World, repository: GitRepository
) -> None:
    agent = await start_agent(world, quote_namespaces=("*",))
    await deploy(world, available=False)
    await create(world, promotion_step(repository, health={"timeout": "4s"}))
    deadline = (await reached(world, "HealthChecking"))["healthDeadline"]
    await world.live(timedelta(seconds=2))
    await world.stop(agent)
    await start_agent(world, quote_namespaces=("*",))
    status = await reached(world, "Failed", within=timedelta(seconds=2))
    assert status["healthDeadline"] == deadline
    assert world.clock.now() >= datetime.fromisoformat(deadline)
    # A real cluster tells since when nothing has moved.
    assert status["message"].partition(";")[0] == (
        f"health-check: not healthy within 4s: waits for Deployment {DEV}/my-app: 0 of 2 replicas are available"
    )
    assert status["conditions"][0]["reason"] == "HealthTimeout"
    (event,) = await world.events("HealthTimeout")
    assert event["type"] == "Warning"


@pytest.mark.virtual_time("nothing is written before, and something then")
async def test_the_progress_of_a_rollout_is_written_at_most_every_ten_seconds(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world, quote_namespaces=("*",))
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    before = writes_of_promotions(world)
    for tag in ("a", "b", "c"):
        await deploy(world, image=f"{IMAGE}:{tag}")
        await world.settle()
    assert writes_of_promotions(world) == before
    await world.live(timedelta(seconds=10))
    assert writes_of_promotions(world) == before + 1
    assert f"has {IMAGE}:c" in (await state(world))["message"]


async def test_a_promotion_waits_for_every_upstream_environment(world: World, repository: GitRepository) -> None:
    await deploy(world)
    await world.apply(bundle(BUNDLE_NAME))
    await put(world, promotion_step(repository, upstreamVerified="Verified,HealthChecking"))
    await start_agent(world)
    await world.idle(timedelta(seconds=5))
    status = await state(world)
    assert status["state"] == "Pending"
    assert "upstream" in status["message"]
    assert repository.promotions(DEV) == []
    await put(world, promotion_step(repository, upstreamVerified="Verified,Verified"))
    await reached(world, "Verified")


async def test_an_explicit_sequence_edits_every_overlay_it_names(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    repository.commit({f"environments/{DEV}/eu/kustomization.yaml": "resources: [../../../base]\n"})
    await deploy(world)
    steps = [
        {"uses": "git-clone"},
        {"uses": "kustomize-set-image"},
        {"uses": "kustomize-set-image", "config": {"path": "eu"}},
        {"uses": "git-commit"},
        {"uses": "git-push"},
        {"uses": "health-check"},
    ]
    await create(world, promotion_step(repository, steps=steps))
    await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1
    assert "1.1.0" in repository.read(f"environments/{DEV}/eu/kustomization.yaml")
    assert "1.1.0" in repository.read(f"environments/{DEV}/kustomization.yaml")


async def test_a_sharded_promotion_step_is_executed_by_its_shard_alone(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await start_agent(world, shard="west")
    await deploy(world)
    label = {names.LABEL_SHARD: "east"}
    await create(world, promotion_step(repository, shard="east", labels=label))
    await world.idle(timedelta(minutes=1))
    assert await state(world) == {}
    assert repository.promotions(DEV) == []
    await start_agent(world, shard="east")
    await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1
