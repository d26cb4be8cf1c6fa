"""Pipelines of one namespace that write to one path are told of each other."""

from __future__ import annotations

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PIPELINE
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import condition
from tests.support.objects import environment, pipeline
from tests.support.world import World

REPOSITORY = "file:///srv/git/gitops.git"


def writing(name: str, path: str) -> JsonObject:
    return environment(name) | {"path": path}


async def test_two_pipelines_of_a_namespace_on_one_path_are_both_told(world: World, controller: ControlPlane) -> None:
    first = pipeline(REPOSITORY, environments=[writing("prod", "environments/prod")])
    second = pipeline("/srv/git/GitOps.git/", name="other", environments=[writing("prd", "./environments/prod")])
    third = pipeline(REPOSITORY, name="apart", environments=[writing("prd", "environments/qa")])
    await world.apply(first, second, third)
    for name, other in (("my-app", "other"), ("other", "my-app")):
        found = await world.wait_for(PIPELINE, name, lambda obj: condition(obj, "SharedPath") is not None)
        shared = condition(found, "SharedPath")
        assert shared is not None
        assert shared["status"] == "True"
        assert f"Pipeline {other}" in shared["message"]
        assert "environments/prod" in shared["message"]
    await world.settle()
    told = {event["regarding"]["name"] for event in await world.events("SharedPath")}
    assert told == {"my-app", "other"}
    assert condition(await world.get(PIPELINE, "apart"), "SharedPath") is None
    await world.delete(PIPELINE, "other")
    await world.wait_for(PIPELINE, "my-app", lambda obj: condition(obj, "SharedPath") is None)


async def test_many_pipelines_on_one_path_write_their_condition_once_each(
    world: World, controller: ControlPlane
) -> None:
    way = [writing("prd", "environments/prod")]
    names = [f"app-{number:02}" for number in range(40)]
    for name in names:
        await world.apply(pipeline(REPOSITORY, name=name, environments=way))
    for name in names:
        found = await world.wait_for(PIPELINE, name, lambda obj: condition(obj, "SharedPath") is not None)
        assert len(str(condition(found, "SharedPath"))) < 2000
    await world.settle()
    written = world.audit.count(verbs=["patch"], resource="pipelines.kardinal.io", user=world.user("controller"))
    assert written <= 6 * len(names)


async def test_a_branch_that_is_replaced_is_shared_with_all_who_write_there(
    world: World, controller: ControlPlane
) -> None:
    git = {"url": REPOSITORY, "provider": "local", "layout": "branch"}
    steps = [{"uses": name} for name in ("git-clone", "kustomize-set-image", "git-commit", "git-push", "health-check")]
    whole = pipeline(REPOSITORY, git=git, environments=[environment("prod", branch="deployed", steps=steps)])
    below = {"url": REPOSITORY, "provider": "local", "branch": "deployed"}
    other = pipeline(REPOSITORY, name="other", git=below, environments=[writing("prd", "apps/other")])
    apart = pipeline(REPOSITORY, name="apart", git=below | {"branch": "main"}, environments=[writing("p", "apps/a")])
    await world.apply(whole, other, apart)
    for name in ("my-app", "other"):
        await world.wait_for(PIPELINE, name, lambda obj: condition(obj, "SharedPath") is not None)
    await world.settle()
    assert condition(await world.get(PIPELINE, "apart"), "SharedPath") is None
