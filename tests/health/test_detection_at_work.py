"""Environments whose Pipeline names no proof: what is found for them, noted, and kept to the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import JsonObject
from kardinal.runtime.dynamic import LINGER
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.detection import GIT_REPOSITORY
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, state
from tests.health.served_tools import annotate, application, git_repository, kustomization, put, serve
from tests.support.identities import RESOURCES
from tests.support.names import DEV, STAGING, TEAM, of_run
from tests.support.repository import APPLICATION as APP
from tests.support.repository import GitRepository
from tests.support.world import World

ARGOCD = of_run("argocd")
FLUX = of_run("flux-system")
BINDING = RESOURCES["ClusterRoleBinding"]


def unnamed(repository: GitRepository, environment: str = DEV) -> JsonObject:
    """Return a PromotionStep whose health names nothing."""
    step = promotion_step(repository, environment)
    step["spec"]["health"] = {"timeout": "10m"}
    return step


async def notes(world: World) -> list[str]:
    """Return what Events say of environments for which nothing was found."""
    await world.settle()
    return [event["note"] for event in await world.events("HealthNotDetected")]


async def test_an_application_of_a_namespace_that_lets_the_pipeline_in_is_found_and_kept(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    await annotate(world, ARGOCD, f"other, {TEAM[:4]}*")
    await put(world, APPLICATION, ARGOCD, **application(repository))
    agent = await start_agent(world)
    await create(world, unnamed(repository))
    status = await reached(world, "HealthChecking")
    found = {"type": "argocd", "kind": "Application", "name": APP, "namespace": ARGOCD}
    assert status["health"] == found
    # What appears later, and what a new process would find, changes nothing.
    await put(world, APPLICATION, ARGOCD, name="another", **application(repository, status["commit"]))
    await put(world, APPLICATION, TEAM, **application(repository, status["commit"]))
    await world.stop(agent)
    await start_agent(world)
    await world.settle()
    assert (await state(world))["state"] == "HealthChecking"
    await put(world, APPLICATION, ARGOCD, **application(repository, status["commit"]))
    status = await reached(world, "Verified")
    assert status["message"].startswith(f"Application {ARGOCD}/{APP} is Synced to commit {status['commit'][:7]} ")
    assert status["health"] == found
    assert await notes(world) == []


async def test_a_kustomization_is_found_by_its_source(world: World, repository: GitRepository) -> None:
    await serve(world, KUSTOMIZATION, GIT_REPOSITORY)
    await annotate(world, FLUX, TEAM)
    await put(world, GIT_REPOSITORY, FLUX, **git_repository(repository))
    await put(world, KUSTOMIZATION, FLUX, **kustomization())
    await deploy(world)
    await start_agent(world)
    await create(world, unnamed(repository))
    status = await reached(world, "HealthChecking")
    assert status["health"] == {"type": "flux", "kind": "Kustomization", "name": APP, "namespace": FLUX}
    await put(world, KUSTOMIZATION, FLUX, **kustomization(status["commit"]))
    await reached(world, "Verified")


async def test_without_a_tool_workloads_prove_it_and_an_event_says_so(world: World, repository: GitRepository) -> None:
    await deploy(world)
    await start_agent(world)
    await create(world, unnamed(repository))
    status = await reached(world, "Verified")
    assert status["health"] == {"type": "resource"}
    [note] = await notes(world)
    assert f"deploys environments/{DEV}: the workloads in namespace {DEV} prove it" in note
    assert f"kardinal.io/pipelines-from: {TEAM}" in note


async def test_tool_object_that_appears_later_changes_nothing(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await start_agent(world)
    await create(world, unnamed(repository))
    await reached(world, "HealthChecking")
    await put(world, APPLICATION, TEAM, **application(repository))
    await deploy(world)
    status = await reached(world, "Verified")
    assert status["health"] == {"type": "resource"}


async def test_several_are_refused_by_name_before_anything_is_written(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await put(world, APPLICATION, TEAM, name="all", **application(repository, path="environments"))
    await put(world, APPLICATION, TEAM, name="one", **application(repository))
    await start_agent(world)
    await create(world, unnamed(repository))
    status = await reached(world, "Failed")
    assert status["message"] == (
        f"proof: several objects deploy environments/{DEV} of branch main: "
        f"Application {TEAM}/all, Application {TEAM}/one: name the one that proves the environment in health.argocd"
    )
    assert status["conditions"][0]["reason"] == "InvalidSpec"
    assert repository.promotions(DEV) == []


async def test_a_namespace_that_is_not_looked_at_ends_it_before_anything_is_written(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world, health_namespaces=("prod-*",))
    await create(world, unnamed(repository))
    status = await reached(world, "Failed")
    assert f"health.resource.namespace: {DEV} is not among the namespaces" in status["message"]
    assert repository.promotions(DEV) == []


async def test_a_right_that_is_missing_is_said(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await world.client.delete(BINDING, "kardinal-tools")
    await deploy(world)
    await start_agent(world)
    await create(world, unnamed(repository))
    await reached(world, "Verified")
    [note] = await notes(world)
    assert f"(applications.argoproj.io of namespace {TEAM} may not be listed and watched)" in note


@pytest.mark.virtual_time("watches end half a minute after the last look")
async def test_tool_objects_are_watched_only_during_detection(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION, KUSTOMIZATION)
    await put(world, APPLICATION, TEAM, **application(repository))
    agent = await start_agent(world)
    await create(world, unnamed(repository), unnamed(repository, STAGING))
    await reached(world, "HealthChecking")
    await reached(world, "HealthChecking", STAGING)
    await world.live(timedelta(seconds=LINGER + 1))
    watched = [(each.resource.kind, each.fields) for each in agent.manager.dynamic.informers]
    assert ("Application", f"metadata.name={APP}") in watched
    assert ("Application", None) not in watched
    assert ("Kustomization", None) not in watched
    # Once for each group, for all promotions; the local plane logs no more of such a path than its beginning.
    groups = {f"/apis/{kind.api_version}" for kind in (APPLICATION, KUSTOMIZATION, HELM_RELEASE, GIT_REPOSITORY)}
    asked = [world.audit.count(resource=path, user=world.user("agent")) for path in ("/apis", *groups)]
    assert sum(asked) == len(groups)
