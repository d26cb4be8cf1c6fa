"""The digests of tags: looked up when a Bundle starts, if the operator lists the registry, and kept in its status."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from aiohttp import web

from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE
from kardinal_controller.bundles.decisions import Create, LookUp
from tests.bundles.facts import carried_out, seen
from tests.bundles.reading import REPOSITORY, phase
from tests.registries.asking import HERE, pull_secret
from tests.support.distribution import LOGIN, ServedRegistry, Serving
from tests.support.image_registry import serving_registry
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.world import World


def _image(registry: ServedRegistry) -> str:
    return f"{registry.host}/acme/my-app"


async def test_the_digest_that_the_tag_had_is_in_the_status_before_there_is_a_graph(
    world: World, serving: Serving
) -> None:
    async with serving() as registry:
        digest = registry.push("acme/my-app", "1.1.0", b"{}")
        await start_controller(world, standalone=False, allow_registries=(HERE,))
        await world.apply(pipeline(REPOSITORY), bundle("app-1", image=_image(registry)))
        started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
        registry.push("acme/my-app", "1.1.0", b'{"other": true}')
        await world.idle(timedelta(hours=1))
        # Nothing polls.
        assert len(registry.heard) == 1
    (found,) = started["status"]["artifacts"]
    assert (found["reference"], found["digest"]) == (f"{_image(registry)}:1.1.0", digest)
    assert found["resolvedAt"]
    assert (await world.get(BUNDLE, "app-1"))["status"]["artifacts"] == started["status"]["artifacts"]


async def test_without_the_flag_no_registry_is_asked_and_nothing_is_noted(world: World) -> None:
    async with serving_registry() as registry:
        registry.push("acme/my-app", "1.1.0", b"{}")
        await start_controller(world, standalone=False)
        await world.apply(pipeline(REPOSITORY), bundle("app-1", image=_image(registry)))
        started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert "artifacts" not in started["status"]
    assert registry.heard == []


async def test_the_answer_costs_no_write_of_its_own(world: World) -> None:
    async with serving_registry() as registry:
        registry.push("acme/my-app", "1.1.0", b"{}")
        pinned = {"name": "app", "reference": f"{_image(registry)}:1.0.0", "digest": f"sha256:{'1' * 64}"}
        await start_controller(world, standalone=False, allow_registries=(HERE,))
        await world.apply(pipeline(REPOSITORY), pipeline(REPOSITORY, name="other"))
        await world.apply(bundle("app-1", artifacts={"images": [pinned]}))
        await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
        await world.settle()
        without = _writes(world)
        assert registry.heard == []
        await world.apply(bundle("app-2", image=_image(registry), pipeline="other"))
        await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
        await world.settle()
    assert len(registry.heard) == 1
    assert _writes(world) == 2 * without


async def test_a_login_comes_from_the_secret_that_the_pipeline_names(world: World, serving: Serving) -> None:
    async with serving(login=LOGIN) as registry:
        digest = registry.push("acme/my-app", "1.1.0", b"{}")
        await start_controller(world, standalone=False, allow_registries=(HERE,))
        await world.apply(
            pull_secret({registry.host: LOGIN}, hosts=registry.host),
            pipeline(REPOSITORY, pullSecretRef={"name": "pull"}),
            bundle("app-1", image=_image(registry)),
        )
        started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert started["status"]["artifacts"][0]["digest"] == digest


@pytest.mark.parametrize(
    ("allowed", "message"),
    [(HERE, "has no "), ("ghcr.io", "ask the operator for --allow-registries 127.0.0.1:")],
    ids=["an unknown tag", "a registry that is not listed"],
)
async def test_a_bundle_starts_without_an_answer_and_says_why(
    world: World, serving: Serving, allowed: str, message: str
) -> None:
    async with serving() as registry:
        await start_controller(world, standalone=False, allow_registries=(allowed,))
        await world.apply(pipeline(REPOSITORY), bundle("app-1", image=_image(registry)))
        started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    (found,) = started["status"]["artifacts"]
    assert "digest" not in found
    assert message in found["message"]


async def test_a_registry_that_is_silent_holds_no_other_bundle(world: World) -> None:
    asked = asyncio.Event()
    release = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        asked.set()
        await release.wait()
        return web.Response(status=404)

    async with serving_registry(answer=silent) as quiet, serving_registry() as registry:
        registry.push("acme/my-app", "1.1.0", b"{}")
        await start_controller(world, standalone=False, allow_registries=(HERE,))
        await world.apply(pipeline(REPOSITORY), pipeline(REPOSITORY, name="other"))
        await world.apply(bundle("slow", image=_image(quiet)))
        await asyncio.wait_for(asked.wait(), 30)
        await world.apply(bundle("quick", image=_image(registry), pipeline="other"))
        async with asyncio.timeout(30):
            while await world.find(GRAPH, "quick") is None:
                await asyncio.sleep(0.01)
        assert await world.find(GRAPH, "slow") is None
        release.set()
        await world.wait_for(BUNDLE, "slow", phase("Promoting"))


def _writes(world: World) -> int:
    """Return how often the controller has written to Bundles."""
    return world.audit.count(verbs=["patch"], resource="bundles.kardinal.io", user=world.user("controller"))


def test_unresolved_tag_is_looked_up_before_the_graph_is_made() -> None:
    assert isinstance(carried_out(seen(unresolved=True)), LookUp)
    assert isinstance(carried_out(seen()), Create)
