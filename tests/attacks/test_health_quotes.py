"""Attacks on the proof of an environment: naming workloads of others there, to read what they run and why they fail."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kardinal.api import BUNDLE, PIPELINE, PROMOTION_STEP, names
from kardinal.kube import PatchType
from kardinal.objects import DEPLOYMENT, EVENT, GRAPH, NAMESPACE, JsonObject
from tests.support.names import DEV, POLICIES, TEAM, of_run
from tests.support.objects import bundle, environment, namespace, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

FOREIGN = of_run("payroll")
SECRET = "registry.internal/project-neptune:7"
ANNOTATION = "kardinal.io/pipelines-from"
STEP = names.step_name("my-app-1", DEV)


async def promote(world: World, repository: GitRepository, target: str, **health: Any) -> None:
    """Start a promotion that is proven by the Deployment `web` of the namespace `target`."""
    proof = {"type": "resource", "resource": {"name": "web", "namespace": target}, **health}
    await world.apply(pipeline(repository, environments=[environment(DEV, health=proof)]))
    await world.apply(bundle("my-app-1"))


async def run_foreign(world: World, target: str = FOREIGN, *, replicas: int = 7) -> None:
    """Have a workload in `target` that has nothing to do with the Pipeline."""
    await world.client.apply(NAMESPACE, namespace(target), field_manager="owner")
    container = {"name": "neptune-main", "image": SECRET}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": target},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    await world.client.apply(DEPLOYMENT, deployment, field_manager="owner")


async def set_status(world: World, target: str, **status: Any) -> None:
    await world.client.patch(DEPLOYMENT, "web", target, {"status": status}, kind=PatchType.MERGE, subresource="status")


async def annotate(world: World, target: str, value: str | None) -> None:
    await world.client.patch(NAMESPACE, target, None, {"metadata": {"annotations": {ANNOTATION: value}}})


async def message_with(world: World, words: str) -> str:
    """Live until the message of the step has these words; returns it."""
    step = await world.wait_for(
        PROMOTION_STEP, STEP, lambda step: words in ((step.get("status") or {}).get("message") or "")
    )
    return str(step["status"]["message"])


async def seen_by_the_team(world: World) -> str:
    """Return everything that the team can read: its objects and their Events."""
    await world.settle()
    kinds = (PIPELINE, BUNDLE, GRAPH, PROMOTION_STEP, EVENT)
    found: list[JsonObject] = [obj for kind in kinds for obj in await world.objects(kind, TEAM)]
    return orjson.dumps(found).decode()


async def test_images_of_another_namespace_are_not_told(world: World, repository: GitRepository) -> None:
    await run_foreign(world)
    await start_controller(world)
    await promote(world, repository, FOREIGN)
    message = await message_with(world, "waits for Deployment")
    assert message == (
        f"waits for Deployment {FOREIGN}/web: it does not run the promoted image yet "
        f"(annotate namespace {FOREIGN} with {ANNOTATION}: {TEAM} to see what it runs)"
    )
    assert "neptune" not in await seen_by_the_team(world)


async def test_a_timeout_tells_no_more_than_the_wait(world: World, repository: GitRepository) -> None:
    await run_foreign(world)
    await start_controller(world)
    await promote(world, repository, FOREIGN, timeout="2s")
    await message_with(world, "not healthy within 2s")
    assert "neptune" not in await seen_by_the_team(world)


@pytest.mark.local_only("statuses of Deployments are written by hand")
async def test_numbers_and_conditions_of_another_namespace_are_not_told(
    world: World, repository: GitRepository
) -> None:
    """Neither how large a workload is nor why it fails, of one that happens to run the promoted image."""
    await run_foreign(world)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "neptune-main", "image": f"{IMAGE}:1.1.0"}]}}}}
    await world.client.patch(DEPLOYMENT, "web", FOREIGN, image, kind=PatchType.STRATEGIC)
    late = {
        "type": "Progressing",
        "status": "False",
        "reason": "ProgressDeadlineExceeded",
        "message": "neptune is late",
    }
    failing = {"type": "Available", "status": "False", "message": "neptune has no quota"}
    rollouts = (
        ({"updatedReplicas": 3, "replicas": 7}, "not all of its replicas are updated"),
        ({"updatedReplicas": 7, "replicas": 9}, "replicas of the version before still run"),
        ({"replicas": 7, "availableReplicas": 5}, "not all of its replicas are available"),
        ({"availableReplicas": 7, "conditions": [failing]}, "it is not Available"),
        ({"conditions": [failing, late]}, "its rollout exceeded its progress deadline"),
    )
    await start_controller(world)
    await promote(world, repository, FOREIGN)
    for status, words in rollouts:
        await set_status(world, FOREIGN, observedGeneration=2, **status)
        message = await message_with(world, words)
        assert f"Deployment {FOREIGN}/web: {words} (annotate" in message
    assert "neptune" not in await seen_by_the_team(world)


@pytest.mark.parametrize("where", ["kube-system", "kube-public", "kardinal-system", POLICIES])
async def test_namespaces_of_the_system_are_no_proof(world: World, repository: GitRepository, where: str) -> None:
    await run_foreign(world, where, replicas=0)
    await start_controller(world)
    await promote(world, repository, where)
    step = await world.wait_for(PROMOTION_STEP, STEP, lambda step: _state(step) == "Failed")
    message = step["status"]["message"]
    assert message.startswith(f"health.resource.namespace: {where} is not among the namespaces")
    assert "--health-namespaces" in message
    assert repository.promotions(DEV) == []
    assert "neptune" not in await seen_by_the_team(world)


async def test_an_operator_says_where_workloads_are_looked_at(world: World, repository: GitRepository) -> None:
    await run_foreign(world)
    await start_controller(world, health_namespaces=("team-*", f"{DEV}"))
    await promote(world, repository, FOREIGN)
    step = await world.wait_for(PROMOTION_STEP, STEP, lambda step: _state(step) == "Failed")
    assert "--health-namespaces" in step["status"]["message"]


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (f"other, {TEAM}", True),
        (f"{TEAM[:2]}*{TEAM[-2:]}", True),
        ("*", True),
        ("", False),
        (TEAM[:-1], False),
        (f"x{TEAM}", False),
        ("*x", False),
        ("*-x-*", False),
        (",".join([*(f"n{number}" for number in range(5_000)), "*"]), False),
    ],
    ids=["listed", "glob", "all", "none", "shorter", "longer", "end", "middle", "too many"],
)
async def test_the_owner_of_a_namespace_says_who_is_told(
    world: World, repository: GitRepository, annotation: str, told: bool
) -> None:
    await run_foreign(world)
    await annotate(world, FOREIGN, annotation)
    await start_controller(world)
    await promote(world, repository, FOREIGN)
    message = await message_with(world, "waits for Deployment")
    assert (SECRET in message) is told
    assert ("annotate" in message) is not told


async def test_the_annotation_counts_at_once_and_so_does_its_end(world: World, repository: GitRepository) -> None:
    await run_foreign(world)
    await start_controller(world)
    await promote(world, repository, FOREIGN)
    await message_with(world, "annotate")
    await annotate(world, FOREIGN, TEAM)
    assert SECRET in await message_with(world, "and has")
    await annotate(world, FOREIGN, None)
    assert SECRET not in await message_with(world, "annotate")


async def test_an_operator_may_open_all_namespaces(world: World, repository: GitRepository) -> None:
    await run_foreign(world)
    await start_controller(world, quote_namespaces=("pay*",))
    await promote(world, repository, FOREIGN)
    assert SECRET in await message_with(world, "waits for Deployment")


async def test_a_team_sees_its_own_workload(world: World, repository: GitRepository) -> None:
    await run_foreign(world, TEAM)
    await start_controller(world)
    await promote(world, repository, TEAM)
    assert SECRET in await message_with(world, "waits for Deployment")


@pytest.mark.local_only("statuses of Deployments are written by hand")
async def test_quoted_text_is_short_and_has_no_control_characters(world: World, repository: GitRepository) -> None:
    await run_foreign(world, TEAM)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "neptune-main", "image": f"{IMAGE}:1.1.0"}]}}}}
    await world.client.patch(DEPLOYMENT, "web", TEAM, image, kind=PatchType.STRATEGIC)
    text = "\x1b[2J\u202egnp\u2028.exe\r\n" + "x" * 5_000
    failing = {"type": "Available", "status": "False", "message": text}
    rollout = {"observedGeneration": 2, "updatedReplicas": 7, "replicas": 7, "availableReplicas": 7}
    await set_status(world, TEAM, **rollout, conditions=[failing])
    await start_controller(world)
    await promote(world, repository, TEAM)
    message = await message_with(world, "it is not Available")
    assert message.isprintable()
    assert "[2Jgnp.exe" in message
    assert message.count("x") < 256


def _state(step: JsonObject) -> str | None:
    state: str | None = (step.get("status") or {}).get("state")
    return state
