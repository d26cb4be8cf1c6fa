"""A promotion that would change nothing of what runs ends before anything is pushed, and says what is nearest."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api import names
from kardinal.promotion.kinds import POLICY_GATE
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    create,
    deploy,
    freeze,
    promotion_step,
    put,
    reached,
    start_agent,
    state,
)
from tests.support.names import DEV
from tests.support.objects import bundle
from tests.support.repository import APPLICATION, IMAGE, GitRepository
from tests.support.world import World

OVERLAY = f"environments/{DEV}/kustomization.yaml"
PLAIN = "resources: [../../base]\n"
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: apps}
spec: {values: {image: {repository: ghcr.io/stefanprodan/podinfo, tag: 6.0.0}}}
"""


async def ended(world: World, made: dict[str, Any], *, image: str = IMAGE) -> tuple[str, str]:
    """Return reason and message of a promotion that must fail."""
    await start_agent(world)
    await create(world, made, image=image)
    status = await reached(world, "Failed")
    return reason_of(status), status["message"]


def reason_of(status: dict[str, Any]) -> str:
    return next(str(one["reason"]) for one in status["conditions"] if one["type"] == "Ready")


def unchanged(repository: GitRepository, before: str) -> bool:
    return repository.branches() == ["main"] and repository.head() == before


@pytest.mark.parametrize("approval", ["auto", "pr-review"])
async def test_a_misspelt_image_is_refused_and_nothing_is_pushed(
    world: World, repository: GitRepository, approval: str
) -> None:
    before = repository.head()
    reason, message = await ended(world, promotion_step(repository, approval=approval), image="ghcr.io/acme/my-ap")
    assert reason == "NoEffect"
    assert message == (
        f"kustomize-set-image: environments/{DEV}: setting ghcr.io/acme/my-ap has no effect: it is not "
        f"the image that comes from environments/{DEV}, base; nearest: {IMAGE}:1.0.0 in Deployment my-app, container "
        "app (base/deployment.yaml). Correct the name of the image in the Bundle, or select images with update.images"
    )
    assert unchanged(repository, before)


async def test_an_image_that_lives_in_values_of_a_chart_is_refused_and_the_place_is_named(
    world: World, repository: GitRepository
) -> None:
    before = repository.commit({OVERLAY: "resources: [release.yaml]\n", f"environments/{DEV}/release.yaml": RELEASE})
    reason, message = await ended(world, promotion_step(repository), image="ghcr.io/stefanprodan/podinfo")
    assert reason == "NoEffect"
    assert (
        f"ghcr.io/stefanprodan/podinfo:6.0.0 stands in values.image of HelmRelease podinfo "
        f"(environments/{DEV}/release.yaml), which kustomize does not change"
    ) in message
    assert "helm-set-image or yaml-update" in message
    assert unchanged(repository, before)


async def test_an_image_that_manifests_spell_otherwise_is_set_as_they_spell_it(
    world: World, repository: GitRepository
) -> None:
    manifest = repository.read("base/deployment.yaml").replace(IMAGE, "acme/my-app:1.0.0")
    repository.commit({OVERLAY: PLAIN, "base/deployment.yaml": manifest})
    await start_agent(world)
    await deploy(world, image="acme/my-app:1.1.0")
    await create(world, promotion_step(repository), image="docker.io/acme/my-app")
    await reached(world, "Verified")
    assert repository.read(OVERLAY) == PLAIN + "images:\n- name: acme/my-app\n  newTag: 1.1.0\n"


async def test_a_mirror_is_kept_and_proves_the_image_that_it_mirrors(world: World, repository: GitRepository) -> None:
    entry = f"images:\n- name: {IMAGE}\n  newName: mirror.local/my-app\n  newTag: "
    repository.commit({OVERLAY: f"{PLAIN}{entry}1.0.0\n"})
    await start_agent(world)
    await deploy(world, image="mirror.local/my-app:1.1.0")
    await create(world, promotion_step(repository))
    await reached(world, "Verified")
    assert repository.read(OVERLAY) == f"{PLAIN}{entry}1.1.0\n"


async def test_an_image_that_is_there_already_is_a_success(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await deploy(world, image=f"{IMAGE}:1.0.0")
    before = repository.head()
    await create(world, promotion_step(repository), tag="1.0.0")
    await reached(world, "Verified")
    assert unchanged(repository, before)


@pytest.mark.parametrize("mode", ["warn", "off"])
async def test_the_environment_may_ask_for_a_warning_or_nothing(
    world: World, repository: GitRepository, mode: str
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, update={"verifyEffect": mode}), image="ghcr.io/acme/my-ap")
    status = await reached(world, "HealthChecking")
    said = "setting ghcr.io/acme/my-ap has no effect" in status["steps"][1]["message"]
    events = await world.events("EffectUnknown")
    assert (said, [event["type"] for event in events]) == (mode == "warn", ["Warning"] * (mode == "warn"))
    assert len(repository.promotions(DEV)) == 1


async def test_unreadable_manifest_is_reported_once_and_not_refused(world: World, repository: GitRepository) -> None:
    remote = "https://example.invalid/org/base?ref=v1"
    repository.commit({OVERLAY: f"resources: ['{remote}']\n"})
    await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository))
    status = await reached(world, "Verified")
    (event,) = await world.events("EffectUnknown")
    words = f"whether setting {IMAGE}:1.1.0 has an effect is not known: {remote} "
    assert event["type"] == "Warning"
    assert words in event["note"]
    assert words in status["steps"][1]["message"]


async def test_a_branch_that_loses_the_image_before_the_push_is_not_pushed_to(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await freeze(world)
    await create(world, promotion_step(repository))
    await world.until(lambda: _held(world))
    manifest = repository.read("base/deployment.yaml").replace(IMAGE, "ghcr.io/acme/successor:1")
    before = repository.commit({"base/deployment.yaml": manifest})
    await world.delete(POLICY_GATE, names.freeze_name(APPLICATION))
    status = await reached(world, "Failed")
    assert reason_of(status) == "NoEffect"
    assert "git-push: " in status["message"]
    assert unchanged(repository, before)


async def _held(world: World) -> bool:
    conditions = (await state(world)).get("conditions", [])
    return any(one["type"] == "Held" and one["status"] == "True" for one in conditions)


async def test_an_environment_selects_images_of_the_bundle(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await deploy(world)
    images = [{"name": "app", "reference": f"{IMAGE}:1.1.0"}, {"name": "other", "reference": "ghcr.io/acme/other:3"}]
    await world.apply(bundle(BUNDLE_NAME) | {"spec": {"type": "image", "artifacts": {"images": images}}})
    await put(world, promotion_step(repository, update={"images": ["app"]}))
    await reached(world, "Verified")
    assert "other" not in repository.read(OVERLAY)


async def test_the_selection_holds_for_values_files_and_literals(world: World, repository: GitRepository) -> None:
    repository.commit(
        {f"environments/{DEV}/values.yaml": "image: {tag: '1'}\n", f"environments/{DEV}/app.env": f"I={IMAGE}:1\n"}
    )
    await start_agent(world)
    await deploy(world)
    images = [{"name": "app", "reference": f"{IMAGE}:1.1.0"}, {"name": "other", "reference": "ghcr.io/acme/other:3"}]
    await world.apply(bundle(BUNDLE_NAME) | {"spec": {"type": "image", "artifacts": {"images": images}}})
    edits = [{"uses": "helm-set-image"}, {"uses": "replace", "config": {"files": ["app.env"]}}]
    ends = [{"uses": "git-commit"}, {"uses": "git-push"}, {"uses": "health-check"}]
    steps = [{"uses": "git-clone"}, *edits, *ends]
    await put(world, promotion_step(repository, steps=steps, update={"images": ["app"]}))
    await reached(world, "Verified")
    assert repository.read(f"environments/{DEV}/values.yaml") == "image: {tag: '1.1.0'}\n"
    assert repository.read(f"environments/{DEV}/app.env") == f"I={IMAGE}:1.1.0\n"


async def test_an_image_that_no_file_of_a_replacement_holds_is_refused(world: World, repository: GitRepository) -> None:
    repository.commit({f"environments/{DEV}/app.env": f"I={IMAGE}:1\n"})
    await start_agent(world)
    images = [{"name": "app", "reference": f"{IMAGE}:1.1.0"}, {"name": "other", "reference": "ghcr.io/acme/other:3"}]
    await world.apply(bundle(BUNDLE_NAME) | {"spec": {"type": "image", "artifacts": {"images": images}}})
    ends = [{"uses": "git-commit"}, {"uses": "git-push"}, {"uses": "health-check"}]
    replace = {"uses": "replace", "config": {"files": ["app.env"]}}
    await put(world, promotion_step(repository, steps=[{"uses": "git-clone"}, replace, *ends]))
    status = await reached(world, "Failed")
    assert reason_of(status) == "NoEffect"
    assert "ghcr.io/acme/other is in none" in status["message"]


async def test_an_image_that_the_bundle_does_not_have_cannot_be_selected(
    world: World, repository: GitRepository
) -> None:
    reason, message = await ended(world, promotion_step(repository, update={"images": ["ap"]}))
    assert reason == "EditError"
    assert f"update.images: Bundle {BUNDLE_NAME} has no image " in message
    assert message.endswith(f" ap. It has app ({IMAGE})")
