"""A tenant who wants another image in an environment that is written by digest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from kardinal.kube import Forbidden, PatchType
from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from tests.agent.promotion_steps import deploy
from tests.bundles.reading import condition, phase
from tests.bundles.rollbacks import rollback
from tests.registries.asking import HERE
from tests.support.endpoint import answering
from tests.support.image_registry import ImageRegistry, serving_registry
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

KUSTOMIZATION = f"environments/{DEV}/kustomization.yaml"
EVIL = f"sha256:{'e' * 64}"


@pytest.fixture
async def registry(world: World, repository: GitRepository) -> AsyncIterator[ImageRegistry]:
    """Yield a registry with the tag of an environment that is written by digest, and a controller that asks it."""
    async with serving_registry() as registry:
        overlay = repository.read(KUSTOMIZATION)
        name = f"name: {IMAGE}\n"
        repository.commit({KUSTOMIZATION: overlay.replace(name, f"{name}    newName: {image(registry)}\n")})
        registry.push("acme/my-app", "1.1.0", b"{}")
        await start_controller(world, allow_registries=(HERE,))
        await world.apply(
            pipeline(repository, environments=[environment(DEV, update={"pinDigest": True})]),
        )
        yield registry


def image(registry: ImageRegistry) -> str:
    return f"{registry.host}/acme/my-app"


def forged(registry: ImageRegistry, tag: str = "1.1.0") -> JsonObject:
    """Return the status that says that a tag is the attacker's image."""
    moment = "2026-01-01T00:00:00Z"
    known = {"reference": f"{image(registry)}:{tag}", "digest": EVIL, "resolvedAt": moment}
    return {"artifacts": [known], "environments": {DEV: {"state": "Verified", "verifiedAt": moment}}}


def written(repository: GitRepository) -> Any:
    (found,) = yaml.safe_load(repository.read(KUSTOMIZATION))["images"]
    return found.get("digest")


async def test_a_bundle_brings_no_digest_in_its_status(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    digest = registry.push("acme/my-app", "1.1.0", b"{}")
    await deploy(world, image=f"{image(registry)}:1.1.0@{digest}")
    born = bundle("app-1", image=image(registry))
    await world.client.create(BUNDLE, {**born, "status": forged(registry)})
    await world.client.patch(BUNDLE, "app-1", TEAM, {"status": forged(registry)}, kind=PatchType.MERGE)
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert [each["digest"] for each in done["status"]["artifacts"]] == [digest]
    assert written(repository) == digest


async def test_a_bundle_that_waits_for_a_digest_is_not_written_by_its_tag(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    """Have the agent say what the tag is, and change the step and then the Pipeline to write the tag."""
    registry.answer = answering(503)
    head = repository.head()
    await world.apply(bundle("app-1", image=image(registry)))
    before = await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Held") is not None)

    agent = await world.connect("agent")
    for subresource in (None, "status"):
        with pytest.raises(Forbidden):
            await agent.patch(BUNDLE, "app-1", TEAM, {"status": forged(registry)}, subresource=subresource)
    assert (await world.get(BUNDLE, "app-1"))["status"]["artifacts"] == before["status"]["artifacts"]

    for change in (None, False):
        body = {"spec": {"update": {"pinDigest": change}}}
        await world.client.patch(PROMOTION_STEP, f"app-1-{DEV}", TEAM, body, kind=PatchType.MERGE)
        # The engine puts it back, and until then it is not executed.
        await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj["spec"]["update"].get("pinDigest") is True)
    await world.settle()
    assert repository.head() == head

    # A Pipeline that is changed later lifts nothing from a Bundle under way.
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Outdated") is not None)
    await world.settle()
    assert repository.head() == head


async def test_a_rollback_is_given_digests_by_what_was_verified_alone(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    first = registry.push("acme/my-app", "1.0.0", b'{"first": true}')
    second = registry.push("acme/my-app", "2.0.0", b'{"second": true}')
    bundles = []
    for name, tag, digest in (("app-1", "1.0.0", first), ("app-2", "2.0.0", second)):
        await deploy(world, image=f"{image(registry)}:{tag}@{digest}")
        await world.apply(bundle(name, image=image(registry), tag=tag))
        bundles.append(await world.wait_for(BUNDLE, name, phase("Verified")))
    before, after = bundles
    registry.push("acme/my-app", "1.0.0", b'{"evil": true}')
    # Of another Bundle with the same tag, which names the attacker's image for it, nothing was ever Verified.
    decoy = bundle("decoy", image=image(registry), tag="1.0.0", intent={"target": "nowhere"})
    decoy["status"] = {"pipeline": "my-app", **forged(registry, "1.0.0")}
    (decoy,) = await world.apply(decoy)
    await world.apply(rollback("evil", DEV, of=after, restores=decoy))
    refused = await world.wait_for(BUNDLE, "evil", phase("Failed"))
    assert condition(refused, "InvalidSpec") is not None
    assert await world.find(GRAPH, "evil") is None
    await deploy(world, image=f"{image(registry)}:1.0.0@{first}")
    born = rollback("back", DEV, of=after, restores=before)
    await world.apply({**born, "status": forged(registry, "1.0.0")})
    await world.wait_for(BUNDLE, "back", phase("Verified"))
    assert written(repository) == first
