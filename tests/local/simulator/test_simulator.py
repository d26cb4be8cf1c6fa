"""The simulator beside an API server: what it applies, what it says, and that it is somebody of its own."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

from kardinal.objects import DEPLOYMENT, NAMESPACE, JsonObject
from kardinal_local.simulator import find_renderer
from tests.support.names import DEV, PROD, STAGING
from tests.support.objects import pipeline
from tests.support.programs import start_simulator
from tests.support.repository import GitRepository, create_repository, sample_files
from tests.support.world import World

ENVIRONMENTS = [DEV, STAGING, PROD]


def _is_available(deployment: JsonObject) -> bool:
    conditions = deployment.get("status", {}).get("conditions", [])
    return any(entry["type"] == "Available" and entry["status"] == "True" for entry in conditions)


async def test_every_environment_is_applied_to_the_namespace_of_its_name(
    world: World, repository: GitRepository
) -> None:
    await start_simulator(world)
    await world.apply(pipeline(repository))
    for name in ENVIRONMENTS:
        deployment = await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=name)
        assert deployment["metadata"]["annotations"]["simulator.kardinal.io/commit"] == repository.head()
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "ghcr.io/acme/my-app:1.0.0"
        assert await world.find(NAMESPACE, name) is not None
    each = 1 if world.server.runs_workloads else 2
    patches = world.audit.count(verbs={"patch"}, resource="deployments.apps", user=world.user("simulator"))
    assert patches >= each * len(ENVIRONMENTS)


CONFLICT = 23
"""The seed of a weather in which the second version of the Deployment in dev meets a conflict."""


@pytest.mark.local_only("only the local plane has weather on demand")
@pytest.mark.usefixtures("weather")
@pytest.mark.parametrize("weather", [CONFLICT])
async def test_what_could_not_be_applied_for_a_moment_is_applied_then(world: World, repository: GitRepository) -> None:
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=DEV)
    path = f"environments/{DEV}/kustomization.yaml"
    changed = repository.commit({path: repository.read(path).replace("1.0.0", "1.1.0")})
    await world.wait_for(
        DEPLOYMENT,
        "my-app",
        lambda obj: bool(obj["metadata"]["annotations"]["simulator.kardinal.io/commit"] == changed),
        namespace=DEV,
        within=timedelta(minutes=1),
    )
    assert world.audit.counts[world.user("simulator"), "patch", "deployments.apps", "", 409] == 1


async def test_a_commit_to_one_environment_touches_no_other(world: World, repository: GitRepository) -> None:
    await start_simulator(world)
    await world.apply(pipeline(repository))
    for name in ENVIRONMENTS:
        await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=name)
    before = {name: await world.get(DEPLOYMENT, "my-app", name) for name in ENVIRONMENTS}
    path = f"environments/{DEV}/kustomization.yaml"
    changed = repository.commit({path: repository.read(path).replace("1.0.0", "1.1.0")})
    await world.wait_for(
        DEPLOYMENT,
        "my-app",
        lambda obj: obj["metadata"]["annotations"]["simulator.kardinal.io/commit"] == changed and _is_available(obj),
        namespace=DEV,
    )
    await world.settle()
    for name in (STAGING, PROD):
        assert await world.get(DEPLOYMENT, "my-app", name) == before[name]


async def test_a_rollout_costs_two_writes_of_status_and_then_there_are_no_more(
    world: World, repository: GitRepository
) -> None:
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=DEV)
    await world.idle(timedelta(minutes=1))
    mine = {"resource": "deployments.apps", "user": world.user("simulator")}
    deployed = 1
    assert world.audit.count(verbs={"patch"}, **mine) == deployed + (0 if world.server.runs_workloads else 2)


async def test_a_namespace_of_its_own_in_a_kustomization_is_an_event_on_the_pipeline(
    world: World, repository: GitRepository
) -> None:
    path = f"environments/{DEV}/kustomization.yaml"
    repository.commit({path: f"namespace: elsewhere\n{repository.read(path)}"})
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=DEV)
    await world.settle()
    (event,) = await world.events("NamespaceDiffers")
    assert event["regarding"]["name"] == "my-app"
    assert "elsewhere" in event["note"]
    assert await world.find(NAMESPACE, "elsewhere") is None


async def test_what_the_small_reader_does_not_know_is_an_event(world: World, repository: GitRepository) -> None:
    path = f"environments/{DEV}/kustomization.yaml"
    repository.commit({path: f"{repository.read(path)}commonLabels: {{team: shop}}\n"})
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=DEV)
    await world.settle()
    (event,) = await world.events("FieldNotRendered")
    assert "commonLabels" in event["note"]


async def test_an_environment_that_cannot_be_rendered_does_not_hold_up_the_others(
    world: World, repository: GitRepository
) -> None:
    repository.commit({f"environments/{DEV}/kustomization.yaml": "resources: [missing.yaml]\n"})
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV, STAGING]))
    await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=STAGING)
    await world.settle()
    (event,) = await world.events("RenderFailed")
    assert "missing.yaml" in event["note"]


async def test_a_repository_that_is_not_there_is_an_event_and_tried_again(world: World) -> None:
    path = world.directory / "late.git"
    await start_simulator(world)
    await world.apply(pipeline(path.as_uri(), environments=[DEV]))
    await world.until(lambda: world.events("BranchNotFollowed"))
    create_repository(path, sample_files([DEV]))
    await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=DEV)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
async def test_kubectl_renders_where_it_is_installed(world: World, repository: GitRepository) -> None:
    path = f"environments/{DEV}/kustomization.yaml"
    repository.commit({path: f"{repository.read(path)}namePrefix: x-\n"})
    await start_simulator(world, delay=timedelta(0), find=find_renderer)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.wait_for(DEPLOYMENT, "x-my-app", _is_available, namespace=DEV)
