"""Tags are looked up again when an environment is about to start: one that moved is a condition, and gates read it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api.bundle import ResolvedImage
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.registries.lookups import AGAIN, compared
from tests.bundles.reading import REPOSITORY, condition, phase
from tests.bundles.scripted_agent import ScriptedAgent, agent
from tests.registries.asking import HERE
from tests.support.endpoint import answering
from tests.support.image_registry import ImageRegistry, serving_registry
from tests.support.names import DEV, STAGING
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

__all__ = ["agent"]

BEFORE, AFTER = (f"sha256:{digit * 64}" for digit in "12")


@pytest.fixture
async def registry(world: World) -> AsyncIterator[ImageRegistry]:
    """Yield a registry with the tag of a Bundle that is on its way to dev, with a gate before staging."""
    async with serving_registry() as registry:
        registry.push("acme/my-app", "1.1.0", b"{}")
        await start_controller(world, standalone=False, allow_registries=(HERE,))
        await world.apply(
            pipeline(REPOSITORY, environments=[DEV, STAGING]),
            gate("same-image", "!bundle.tagMoved", applies_to=STAGING),
            bundle("app-1", image=f"{registry.host}/acme/my-app"),
        )
        await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
        yield registry


def _checked(obj: JsonObject) -> bool:
    return "tagsCheckedAt" in obj["status"]["environments"][STAGING]


async def test_a_tag_that_stayed_lets_the_bundle_go_on(
    world: World, registry: ImageRegistry, agent: ScriptedAgent
) -> None:
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(PROMOTION_STEP, f"app-1-{STAGING}", lambda _: True)
    found = await world.get(BUNDLE, "app-1")
    assert _checked(found)
    assert condition(found, "TagMoved") is None
    assert len(registry.heard) == 2
    await agent.verify(f"app-1-{STAGING}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.idle(timedelta(hours=1))
    # Nothing polls.
    assert len(registry.heard) == 2


async def test_a_tag_that_moved_is_said_and_closes_the_gate_that_asks(
    world: World, registry: ImageRegistry, agent: ScriptedAgent
) -> None:
    other = registry.push("acme/my-app", "1.1.0", b'{"other": true}')
    await agent.verify(f"app-1-{DEV}")
    found = await world.wait_for(BUNDLE, "app-1", _checked)
    moved = condition(found, "TagMoved")
    assert moved is not None
    assert f"and is {other}" in moved["message"]
    assert found["status"]["artifacts"][0]["movedTo"] == other
    await world.settle()
    assert await world.find(PROMOTION_STEP, f"app-1-{STAGING}") is None
    (instance,) = [each for each in await world.objects(POLICY_GATE) if each["metadata"]["name"].startswith("app-1")]
    assert not instance["status"]["ready"]
    assert await world.events("TagMoved")


@pytest.mark.virtual_time("a registry that does not answer is asked again after a minute")
async def test_without_an_answer_the_gate_stays_closed_until_there_is_one(
    world: World, registry: ImageRegistry, agent: ScriptedAgent
) -> None:
    registry.answer = answering(503)
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", lambda obj: "message" in obj["status"]["artifacts"][0])
    await world.settle()
    assert await world.find(PROMOTION_STEP, f"app-1-{STAGING}") is None
    registry.answer = None
    began = world.clock.monotonic()
    await world.wait_for(PROMOTION_STEP, f"app-1-{STAGING}", lambda _: True)
    assert world.clock.monotonic() - began <= AGAIN.total_seconds() + 1


@pytest.mark.virtual_time("a registry that does not answer is asked again after a minute")
async def test_a_first_environment_waits_for_the_first_answer(world: World, agent: ScriptedAgent) -> None:
    async with serving_registry(answer=answering(503)) as registry:
        registry.push("acme/my-app", "1.1.0", b"{}")
        await start_controller(world, standalone=False, allow_registries=(HERE,))
        await world.apply(
            pipeline(REPOSITORY, environments=[DEV]),
            gate("same-image", "!bundle.tagMoved", applies_to=DEV),
            bundle("app-1", image=f"{registry.host}/acme/my-app"),
        )
        await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
        await world.settle()
        assert await world.find(PROMOTION_STEP, f"app-1-{DEV}") is None
        registry.answer = None
        await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda _: True)


def _image(**fields: Any) -> ResolvedImage:
    return ResolvedImage.model_validate({"reference": "a:1", "resolvedAt": "2026-03-03T10:00:00Z", **fields})


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        (_image(digest=BEFORE), _image(digest=BEFORE), _image(digest=BEFORE)),
        (_image(digest=BEFORE), _image(digest=AFTER), _image(digest=BEFORE, movedTo=AFTER)),
        (_image(digest=BEFORE, movedTo=AFTER), _image(digest=BEFORE), _image(digest=BEFORE)),
        (_image(digest=BEFORE), _image(message="no"), _image(digest=BEFORE, message="no")),
        (_image(message="no"), _image(digest=AFTER), _image(digest=AFTER)),
    ],
    ids=["the same", "moved", "moved back", "no answer", "the first answer"],
)
def test_the_digest_of_the_start_is_what_later_ones_are_compared_with(
    before: ResolvedImage, now: ResolvedImage, wanted: ResolvedImage
) -> None:
    assert compared([before], [now]) == (wanted,)
