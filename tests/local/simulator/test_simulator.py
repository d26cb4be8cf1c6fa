"""The simulator beside an API server: what it renders and applies, where to, and what it says."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from kardinal.git import GitRunner, Repository
from kardinal.objects import DEPLOYMENT, NAMESPACE, JsonObject
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_local.simulator import BuiltInRenderer, DirectoryRenderer, find_renderer
from kardinal_local.simulator.inputs import Inputs
from kardinal_local.simulator.kustomization import Rendered
from kardinal_local.simulator.renderer import Rendering
from tests.support.names import DEV, PROD, STAGING
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller, start_simulator
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
"""The seed of faults with which the second version of the Deployment in dev meets a conflict."""


@pytest.mark.local_only("only the local plane injects faults")
@pytest.mark.usefixtures("fault_seed")
@pytest.mark.parametrize("fault_seed", [CONFLICT])
async def test_object_with_a_conflict_is_applied_again(world: World, repository: GitRepository) -> None:
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


class Noting:
    """The built-in renderer, with the directories it was asked for."""

    def __init__(self) -> None:
        self.rendered: list[str] = []

    async def found(self, runner: GitRunner, directory: Path) -> DirectoryRenderer:
        return self

    @asynccontextmanager
    async def at(self, repository: Repository, commit: str) -> AsyncIterator[Rendering]:
        async with BuiltInRenderer().at(repository, commit) as rendering:
            yield _Noted(self, rendering)

    def taken(self) -> set[str]:
        """Return what was rendered since the last time, none of it twice."""
        taken = self.rendered
        self.rendered = []
        assert len(set(taken)) == len(taken)
        return set(taken)


class _Noted:
    def __init__(self, noting: Noting, rendering: Rendering) -> None:
        self._noting = noting
        self._rendering = rendering

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        self._noting.rendered.append(path)
        return await self._rendering.render(path, inputs)


async def test_a_commit_renders_what_it_changes_and_no_more(world: World, repository: GitRepository) -> None:
    noting = Noting()
    await start_simulator(world, find=noting.found)
    await world.apply(
        pipeline(repository, environments=[DEV, STAGING]), pipeline(repository, name="other", environments=[PROD])
    )
    await world.settle()
    paths = {name: f"environments/{name}" for name in ENVIRONMENTS}
    assert noting.taken() == set(paths.values())
    for changed, expected in (
        ("README.md", set()),
        (f"{paths[DEV]}/kustomization.yaml", {paths[DEV]}),
        (f"{paths[PROD]}/kustomization.yaml", {paths[PROD]}),
        ("base/deployment.yaml", set(paths.values())),
    ):
        before = repository.read(changed) if changed != "README.md" else ""
        repository.commit({changed: f"{before}# changed\n"})
        await world.settle()
        assert noting.taken() == expected, changed


async def test_an_environment_whose_path_changes_is_rendered_from_there(
    world: World, repository: GitRepository
) -> None:
    noting = Noting()
    await start_simulator(world, find=noting.found)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.settle()
    assert noting.taken() == {f"environments/{DEV}"}
    await world.apply(pipeline(repository, environments=[environment(DEV) | {"path": f"environments/{STAGING}"}]))
    await world.settle()
    assert noting.taken() == {f"environments/{STAGING}"}


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


def _namespaced(repository: GitRepository, name: str, namespace: str) -> None:
    path = f"environments/{name}/kustomization.yaml"
    repository.commit({path: f"namespace: {namespace}\n{repository.read(path)}"})


async def test_a_namespace_that_the_health_of_the_environment_names_is_kept(
    world: World, repository: GitRepository
) -> None:
    _namespaced(repository, DEV, STAGING)
    await start_simulator(world)
    await world.apply(
        pipeline(repository, environments=[environment(DEV, health={"resource": {"namespace": STAGING}})])
    )
    await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=STAGING)
    await world.settle()
    assert await world.events("NamespaceDiffers") == []
    assert await world.find(DEPLOYMENT, "my-app", DEV) is None


async def test_environments_that_would_overwrite_each_other_keep_to_their_own_namespaces(
    world: World, repository: GitRepository
) -> None:
    for name in (DEV, STAGING):
        _namespaced(repository, name, PROD)
    await start_simulator(world)
    health = {"resource": {"namespace": PROD}}
    await world.apply(pipeline(repository, environments=[environment(name, health=health) for name in (DEV, STAGING)]))
    for name in (DEV, STAGING):
        await world.wait_for(DEPLOYMENT, "my-app", _is_available, namespace=name)
    repository.commit({"base/deployment.yaml": repository.read("base/deployment.yaml") + "# changed\n"})
    await world.settle()
    assert await world.find(DEPLOYMENT, "my-app", PROD) is None
    events = await world.events("NamespaceDiffers")
    assert sorted(event["note"].partition(":")[0] for event in events) == sorted([DEV, STAGING])
    assert all("as well" in event["note"] and "series" not in event for event in events)


async def test_field_that_the_small_reader_does_not_know_is_an_event(world: World, repository: GitRepository) -> None:
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


async def test_a_failure_to_render_is_told_where_the_promotion_is_looked_at(
    world: World, repository: GitRepository
) -> None:
    path = f"environments/{DEV}/kustomization.yaml"
    whole = repository.read(path)
    repository.commit({path: whole.replace("  - ../../base\n", "  - ../../base\n  - missing.yaml\n")})
    await start_controller(world)
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.settle()
    (event,) = await world.events("RenderFailed")
    assert event["regarding"]["kind"] == "Pipeline"
    await world.apply(bundle("my-app-1"))
    await world.wait_for(
        PROMOTION_STEP, f"my-app-1-{DEV}", lambda step: step.get("status", {}).get("state") == "HealthChecking"
    )
    await world.settle()
    repository.commit({path: f"{repository.read(path)}# as broken as before\n"})
    await world.settle()
    (told,) = [each for each in await world.events("RenderFailed") if each["regarding"]["kind"] == "PromotionStep"]
    assert told["regarding"]["name"] == f"my-app-1-{DEV}"
    assert told["type"] == "Warning"
    assert told["note"] == f"{DEV}: {path}: resource missing.yaml does not exist"
    assert told["series"]["count"] > 1
    assert await world.events("Rendered") == []
    repository.commit({path: repository.read(path).replace("  - missing.yaml\n", "")})
    await world.wait_for(
        PROMOTION_STEP, f"my-app-1-{DEV}", lambda step: step.get("status", {}).get("state") == "Verified"
    )
    await world.settle()
    (over,) = await world.events("Rendered")
    assert over["regarding"] == told["regarding"]


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
