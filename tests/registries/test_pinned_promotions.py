"""Promotions that write the digest of a tag: from the registry to the manifests, the proof, and a rollback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import yaml

from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal.scm import PullRequests
from kardinal_controller.registries.lookups import AGAIN
from tests.agent.conftest import reviewer
from tests.agent.promotion_steps import deploy
from tests.bundles.reading import condition, phase
from tests.bundles.rollbacks import rollback
from tests.registries.asking import HERE
from tests.support.distribution import ServedRegistry, Serving
from tests.support.endpoint import answering
from tests.support.image_registry import ImageRegistry, digest_of, serving_registry
from tests.support.names import DEV, STAGING
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

__all__ = ["reviewer"]


@pytest.fixture
async def registry(repository: GitRepository) -> AsyncIterator[ImageRegistry]:
    """Yield a registry whose image the repository deploys in dev."""
    async with serving_registry() as registry:
        deploy_from(registry, repository)
        yield registry


def kustomization(environment: str) -> str:
    return f"environments/{environment}/kustomization.yaml"


def deploy_from(registry: ServedRegistry, repository: GitRepository, environment: str = DEV) -> None:
    """Let the repository deploy the image of a registry in an environment."""
    name = f"name: {IMAGE}\n"
    path = kustomization(environment)
    overlay = repository.read(path).replace(name, f"{name}    newName: {image(registry)}\n")
    repository.commit({path: overlay})


def image(registry: ServedRegistry) -> str:
    return f"{registry.host}/acme/my-app"


def pinned(repository: GitRepository, **fields: Any) -> JsonObject:
    """Return a Pipeline whose first environment is written by digest."""
    return pipeline(repository, environments=[environment(DEV, update={"pinDigest": True}, **fields)])


def entry(repository: GitRepository, environment: str = DEV) -> JsonObject:
    """Return the entry of the image in the kustomization of an environment."""
    (found,) = yaml.safe_load(repository.read(kustomization(environment)))["images"]
    return {key: found.get(key) for key in ("newTag", "digest")}


async def promoted(world: World, registry: ServedRegistry, name: str, tag: str, digest: str) -> JsonObject:
    """Promote a tag to dev, where its digest is deployed, and return the Bundle, Verified."""
    await deploy(world, image=f"{image(registry)}:{tag}@{digest}")
    await world.apply(bundle(name, image=image(registry), tag=tag))
    return await world.wait_for(BUNDLE, name, phase("Verified"))


async def test_the_digest_of_the_start_is_written_proven_and_told(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    digest = registry.push("acme/my-app", "1.1.0", b"{}")
    await start_controller(world, allow_registries=(HERE,))
    # The tag alone is what runs, which proves nothing.
    await deploy(world, image=f"{image(registry)}:1.1.0")
    await world.apply(pinned(repository), bundle("app-1", image=image(registry)))
    step = await world.wait_for(
        PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj.get("status", {}).get("state") == "HealthChecking"
    )
    assert entry(repository) == {"newTag": "1.1.0", "digest": digest}
    await world.settle()
    step = await world.get(PROMOTION_STEP, f"app-1-{DEV}")
    assert step["status"]["state"] == "HealthChecking", step["status"]["message"]
    reference = f"{image(registry)}:1.1.0@{digest}"
    await deploy(world, image=reference)
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert done["status"]["environments"][DEV]["evidence"]["images"] == [reference]
    (commit,) = repository.promotions(DEV)
    assert reference in repository.git("log", "-1", "--format=%b", commit.sha)
    assert done["spec"]["artifacts"]["images"][0] == {"name": "app", "reference": f"{image(registry)}:1.1.0"}


async def test_every_environment_gets_the_image_of_the_start_whether_the_tag_has_moved_or_not(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    deploy_from(registry, repository, STAGING)
    digest = registry.push("acme/my-app", "1.1.0", b"{}")
    await start_controller(world, allow_registries=(HERE,))
    environments = [environment(name, update={"pinDigest": True}) for name in (DEV, STAGING)]
    await world.apply(pipeline(repository, environments=environments), bundle("app-1", image=image(registry)))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    registry.push("acme/my-app", "1.1.0", b'{"moved": true}')
    for name in (DEV, STAGING):
        await deploy(world, name, image=f"{image(registry)}:1.1.0@{digest}")
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert condition(done, "TagMoved") is not None
    assert [entry(repository, name)["digest"] for name in (DEV, STAGING)] == [digest, digest]


async def test_a_pull_request_names_the_digest_that_it_writes(
    world: World, repository: GitRepository, registry: ImageRegistry, reviewer: PullRequests
) -> None:
    digest = registry.push("acme/my-app", "1.1.0", b"{}")
    await start_controller(world, allow_registries=(HERE,))
    await world.apply(pinned(repository, approval="pr-review"), bundle("app-1", image=image(registry)))
    await world.wait_for(
        PROMOTION_STEP, f"app-1-{DEV}", lambda obj: obj.get("status", {}).get("state") == "WaitingForMerge"
    )
    (found,) = await reviewer.list()
    assert f"| Digest | {digest} when the Bundle started; pinned |" in found.body


@pytest.mark.virtual_time("a registry that does not answer is asked again after a minute")
async def test_an_environment_waits_for_a_digest_and_says_why(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    digest = registry.push("acme/my-app", "1.1.0", b"{}")
    registry.answer = answering(503)
    await start_controller(world, allow_registries=(HERE,))
    before = repository.head()
    await world.apply(pinned(repository), bundle("app-1", image=image(registry)))
    waiting = await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Held") is not None)
    held = condition(waiting, "Held")
    assert held is not None
    assert f"digest of {image(registry)}:1.1.0" in held["message"]
    assert f"registry {registry.host} answers 503" in held["message"]
    writes = world.audit.count(verbs=["patch"], resource="promotionsteps.kardinal.io")
    await world.live(AGAIN)
    assert repository.head() == before
    assert world.audit.count(verbs=["patch"], resource="promotionsteps.kardinal.io") == writes
    registry.answer = None
    await deploy(world, image=f"{image(registry)}:1.1.0@{digest}")
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"), within=AGAIN + timedelta(minutes=1))
    assert entry(repository) == {"newTag": "1.1.0", "digest": digest}
    assert condition(done, "Held") is None


async def test_a_registry_that_is_not_listed_is_said_and_nothing_is_written(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    before = repository.head()
    await start_controller(world, allow_registries=("ghcr.io",))
    await world.apply(pinned(repository), bundle("app-1", image=image(registry)))
    waiting = await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Held") is not None)
    assert f"ask the operator for --allow-registries {registry.host}" in str(condition(waiting, "Held"))
    await world.settle()
    assert repository.head() == before
    assert registry.heard == []


async def test_without_registries_a_bundle_that_brings_no_digest_is_refused(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    await start_controller(world)
    await world.apply(pinned(repository), bundle("app-1", image=image(registry)))
    refused = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    invalid = condition(refused, "InvalidSpec")
    assert invalid is not None
    assert invalid["reason"] == "NoDigest"
    assert "--allow-registries" in invalid["message"]
    assert await world.find(GRAPH, "app-1") is None
    own = f"sha256:{'1' * 64}"
    await deploy(world, image=f"{image(registry)}:1.2.0@{own}")
    brought = {"images": [{"name": "app", "reference": f"{image(registry)}:1.2.0", "digest": own}]}
    await world.apply(bundle("app-2", artifacts=brought))
    await world.wait_for(BUNDLE, "app-2", phase("Verified"))
    assert entry(repository) == {"newTag": "1.2.0", "digest": own}
    assert registry.heard == []


async def rolled_back(world: World, registry: ServedRegistry, *, asks: bool) -> JsonObject:
    """Promote two versions, move the tag of the first one, and roll back to it; return the rollback, Verified."""
    first = registry.push("acme/my-app", "1.0.0", b"{}")
    second = registry.push("acme/my-app", "2.0.0", b'{"second": true}')
    controller = await start_controller(world, allow_registries=(HERE,))
    before = await promoted(world, registry, "app-1", "1.0.0", first)
    after = await promoted(world, registry, "app-2", "2.0.0", second)
    registry.push("acme/my-app", "1.0.0", b'{"moved": true}')
    if not asks:
        await world.stop(controller)
        await start_controller(world)
    await deploy(world, image=f"{image(registry)}:1.0.0@{first}")
    await world.apply(rollback("back", DEV, of=after, restores=before))
    return await world.wait_for(BUNDLE, "back", phase("Verified"))


async def test_a_rollback_writes_what_was_verified_and_not_what_the_tag_is_today(
    world: World, repository: GitRepository, serving: Serving
) -> None:
    async with serving() as registry:
        deploy_from(registry, repository)
        await world.apply(pinned(repository))
        done = await rolled_back(world, registry, asks=True)
        first, today = (registry.push("acme/x", "1", text) for text in (b"{}", b'{"moved": true}'))
    assert entry(repository) == {"newTag": "1.0.0", "digest": first}
    (noted,) = done["status"]["artifacts"]
    assert (noted["digest"], noted["movedTo"]) == (first, today)
    assert condition(done, "TagMoved") is not None
    assert done["status"]["environments"][DEV]["evidence"]["images"] == [f"{image(registry)}:1.0.0@{first}"]


async def test_a_rollback_needs_no_registry_for_what_is_recorded(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    await world.apply(pinned(repository))
    done = await rolled_back(world, registry, asks=False)
    assert entry(repository) == {"newTag": "1.0.0", "digest": digest_of(b"{}")}
    (noted,) = done["status"]["artifacts"]
    assert (noted["digest"], "movedTo" in noted) == (digest_of(b"{}"), False)
    assert condition(done, "TagMoved") is None
    # Whether the tag has moved is not known, and a gate that asks must not be told that it has not.
    assert "needs --allow-registries" in noted["message"]


async def test_a_rollback_to_what_has_no_recorded_digest_is_refused(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    second = registry.push("acme/my-app", "2.0.0", b'{"second": true}')
    await start_controller(world, allow_registries=(HERE,))
    await deploy(world, image=f"{image(registry)}:1.0.0")
    # The registry does not have this tag yet.
    await world.apply(pipeline(repository, environments=[DEV]), bundle("app-1", image=image(registry), tag="1.0.0"))
    before = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    registry.push("acme/my-app", "1.0.0", b"{}")
    await world.apply(pinned(repository))
    after = await promoted(world, registry, "app-2", "2.0.0", second)
    await world.apply(rollback("back", DEV, of=after, restores=before))
    refused = await world.wait_for(BUNDLE, "back", phase("Failed"))
    assert "none is recorded from before Bundle app-1 was Verified there" in str(condition(refused, "InvalidSpec"))
    assert await world.find(GRAPH, "back") is None


async def test_a_digest_that_the_bundle_names_itself_wins(
    world: World, repository: GitRepository, registry: ImageRegistry
) -> None:
    registry.push("acme/my-app", "1.1.0", b"{}")
    own = f"sha256:{'1' * 64}"
    await start_controller(world, allow_registries=(HERE,))
    await deploy(world, image=f"{image(registry)}:1.1.0@{own}")
    brought = {"images": [{"name": "app", "reference": f"{image(registry)}:1.1.0@{own}"}]}
    await world.apply(pinned(repository), bundle("app-1", artifacts=brought))
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert entry(repository) == {"newTag": "1.1.0", "digest": own}
    assert registry.heard == []
