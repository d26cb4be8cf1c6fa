"""Attacks on the proof of an environment: naming workloads of others there, to read what they run and why they fail."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from kardinal.kube import Client, ClusterAccess, Connection, PatchType
from kardinal.objects import DEPLOYMENT, EVENT, GRAPH, NAMESPACE, JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal.runtime.informer import Informer
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.reflector import WatchScope
from kardinal_agent.health.namespaces import HealthNamespaces
from tests.support.clock import VirtualClock
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
    """Look at the message while the environment is waited for, and once its time is over."""
    await run_foreign(world)
    await start_controller(world)
    await promote(world, repository, FOREIGN, timeout="2s")
    message = await message_with(world, "waits for Deployment")
    assert message.startswith(f"waits for Deployment {FOREIGN}/web: ")
    assert message.endswith(f"(annotate namespace {FOREIGN} with {ANNOTATION}: {TEAM} to see what it runs)")
    assert "neptune" not in await seen_by_the_team(world)
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
        ({"updatedReplicas": 3, "replicas": 7}, "are updated"),
        ({"updatedReplicas": 7, "replicas": 9}, "version before still run"),
        ({"replicas": 7, "availableReplicas": 5}, "are available"),
        ({"availableReplicas": 7, "conditions": [failing]}, "it is not Available"),
        ({"conditions": [failing, late]}, "progress deadline"),
    )
    await start_controller(world)
    await promote(world, repository, FOREIGN)
    for status, words in rollouts:
        await set_status(world, FOREIGN, observedGeneration=2, **status)
        message = await message_with(world, words)
        assert re.search(rf"Deployment {FOREIGN}/web: [A-Za-z ]*{words} \(annotate", message)  # Without a number.
    assert "neptune" not in await seen_by_the_team(world)


SYSTEM = ("kube-system", "kube-public", "kardinal-system", POLICIES)


async def test_namespaces_of_the_system_are_no_proof(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    way = []
    for number, where in enumerate(SYSTEM):
        await run_foreign(world, where, replicas=0)
        proof = {"type": "resource", "resource": {"name": "web", "namespace": where}}
        way.append(environment(f"e{number}", dependsOn=[], health=proof))
    await world.apply(pipeline(repository, environments=way), bundle("my-app-1"))
    for number, where in enumerate(SYSTEM):
        name = names.step_name("my-app-1", f"e{number}")
        step = await world.wait_for(PROMOTION_STEP, name, lambda step: _state(step) == "Failed")
        message = step["status"]["message"]
        assert message.startswith(f"health.resource.namespace: {where} is not ")
        assert "--health-namespaces" in message
        assert repository.promotions(f"e{number}") == []
    assert "neptune" not in await seen_by_the_team(world)


async def test_an_operator_says_where_workloads_are_looked_at(world: World, repository: GitRepository) -> None:
    await run_foreign(world)
    await start_controller(world, health_namespaces=("team-*", f"{DEV}"))
    await promote(world, repository, FOREIGN)
    step = await world.wait_for(PROMOTION_STEP, STEP, lambda step: _state(step) == "Failed")
    assert "--health-namespaces" in step["status"]["message"]


TOLD = {
    "alone": TEAM,
    "listed": f"other, {TEAM}",
    "glob": f"{TEAM[:2]}*{TEAM[-2:]}",
    "all": "*",
}
NOT_TOLD = {
    "none": None,
    "empty": "",
    "shorter": TEAM[:-1],
    "longer": f"x{TEAM}",
    "end": "*x",
    "middle": "*-x-*",
    "too many": ",".join([*(f"n{number}" for number in range(5_000)), "*"]),
}


def told(annotation: str | None) -> bool:
    """Return whether texts of a namespace with this annotation are quoted to the team."""
    clock = VirtualClock()
    client = Client(Connection(ClusterAccess("http://127.0.0.1:9")), user_agent="test")
    informer = Informer(client, WatchScope(NAMESPACE), clock=clock, metrics=Metrics(clock=clock).informer("Namespace"))
    owned = namespace(FOREIGN)
    owned["metadata"]["resourceVersion"] = "1"
    if annotation is not None:
        owned["metadata"]["annotations"] = {ANNOTATION: annotation}
    informer.apply("ADDED", owned)
    return HealthNamespaces(informer, allowed=(), policies=(), quoted=()).quotes(FOREIGN, reader=TEAM)


@pytest.mark.parametrize("annotation", TOLD.values(), ids=TOLD)
def test_the_owner_of_a_namespace_names_who_is_told(annotation: str) -> None:
    assert told(annotation)


@pytest.mark.parametrize("annotation", NOT_TOLD.values(), ids=NOT_TOLD)
def test_others_than_the_owner_names_are_not_told(annotation: str | None) -> None:
    assert not told(annotation)


async def test_the_word_of_an_owner_counts_at_once_and_so_does_its_end(world: World, repository: GitRepository) -> None:
    await run_foreign(world)
    await start_controller(world)
    await promote(world, repository, FOREIGN)
    assert SECRET not in await message_with(world, "annotate")
    await annotate(world, FOREIGN, TOLD["listed"])
    message = await message_with(world, "and has")
    assert SECRET in message
    assert "annotate" not in message
    await annotate(world, FOREIGN, NOT_TOLD["longer"])
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
