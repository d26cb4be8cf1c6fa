"""Attacks on a proof that no Pipeline has named: objects of others, and a status that says what was found."""

from __future__ import annotations

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_agent.health.argocd_application import APPLICATION
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, start_agent, state
from tests.health.served_tools import annotate, application, put, serve
from tests.support.names import DEV, TEAM, of_run
from tests.support.repository import APPLICATION as APP
from tests.support.repository import GitRepository
from tests.support.world import World

OTHERS = of_run("other-team")
STEP = names.step_name(BUNDLE_NAME, DEV)


def unnamed(repository: GitRepository) -> JsonObject:
    step = promotion_step(repository)
    step["spec"]["health"] = {"timeout": "10m"}
    return step


async def forge(world: World, health: JsonObject) -> None:
    """Write what was found, as everybody can who may write statuses."""
    body = {"status": {"health": health}}
    await world.client.patch(PROMOTION_STEP, STEP, TEAM, body, kind=PatchType.MERGE, subresource="status")


async def message_with(world: World, words: str) -> None:
    await world.wait_for(PROMOTION_STEP, STEP, lambda step: words in ((step.get("status") or {}).get("message") or ""))


async def test_an_object_of_others_that_names_the_repository_is_not_believed(
    world: World, repository: GitRepository
) -> None:
    """Everybody may write the URL of a repository into an Application of their own, and its status with it."""
    await serve(world, APPLICATION)
    for number, annotation in enumerate((None, "", f"{TEAM}-2", "team", f"not-{TEAM}")):
        others = f"{OTHERS}-{number}"
        await annotate(world, others, annotation)
        await put(world, APPLICATION, others, **application(repository))
    await deploy(world)
    await start_agent(world)
    await create(world, unnamed(repository))
    status = await reached(world, "Verified")
    assert status["health"] == {"type": "resource"}


async def test_a_quote_lets_nothing_be_found(world: World, repository: GitRepository) -> None:
    """The operator lets all texts be quoted; whom a namespace trusts is for its owner to say."""
    await serve(world, APPLICATION)
    await put(world, APPLICATION, OTHERS, **application(repository))
    await deploy(world)
    await start_agent(world, quote_namespaces=("*",))
    await create(world, unnamed(repository))
    assert (await reached(world, "Verified"))["health"] == {"type": "resource"}


async def test_an_object_that_others_make_cannot_end_a_promotion_as_one_of_several(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    await put(world, APPLICATION, OTHERS, **application(repository))
    await put(world, APPLICATION, TEAM, **application(repository))
    await start_agent(world)
    await create(world, unnamed(repository))
    status = await reached(world, "HealthChecking")
    assert status["health"]["namespace"] == TEAM


async def test_a_forged_status_proves_nothing_by_objects_of_namespaces_that_do_not_let_it_in(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    agent = await start_agent(world)
    await create(world, unnamed(repository))
    commit = (await reached(world, "HealthChecking"))["commit"]
    await put(world, APPLICATION, OTHERS, **application(repository, commit))
    await world.stop(agent)
    await forge(world, {"type": "argocd", "kind": "Application", "name": APP, "namespace": OTHERS})
    agent = await start_agent(world)
    await message_with(world, f"its namespace does not let Pipelines of {TEAM} in: annotate {OTHERS}")
    assert agent.manager.dynamic.informers == []
    assert (await state(world))["state"] == "HealthChecking"


async def test_a_forged_status_proves_nothing_by_an_object_of_another_environment(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    agent = await start_agent(world)
    await create(world, unnamed(repository))
    commit = (await reached(world, "HealthChecking"))["commit"]
    await put(world, APPLICATION, TEAM, **application(repository, commit, path="environments/other"))
    await world.stop(agent)
    await forge(world, {"type": "argocd", "kind": "Application", "name": APP, "namespace": TEAM})
    await start_agent(world)
    await message_with(world, f"does not read environments/{DEV} of branch main of the repository now")
    await world.settle()
    assert (await state(world))["state"] == "HealthChecking"


async def test_a_namespace_that_lets_no_pipeline_in_any_more_proves_nothing(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    await annotate(world, OTHERS, TEAM)
    await put(world, APPLICATION, OTHERS, **application(repository))
    await start_agent(world)
    await create(world, unnamed(repository))
    commit = (await reached(world, "HealthChecking"))["commit"]
    await annotate(world, OTHERS, None)
    await put(world, APPLICATION, OTHERS, **application(repository, commit))
    await message_with(world, "does not let Pipelines")
    await annotate(world, OTHERS, TEAM)
    await reached(world, "Verified")
