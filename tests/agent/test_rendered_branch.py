"""A Pipeline with a branch for each environment and no steps of its own, rendered by the real kustomize."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from tests.agent.config_bundles import config_bundle, config_repository
from tests.agent.promotion_steps import deploy
from tests.support.names import DEV, STAGING
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.renderers import install, needs
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World


@pytest.fixture
def kustomize(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put the real renderers at the front of PATH."""
    install(tmp_path / "programs")
    needs(tmp_path / "programs", "kustomize")
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")


async def verified(world: World, made: JsonObject, *environments: str) -> list[JsonObject]:
    """Create a Bundle; return its promotions once they have ended, each Verified."""
    await world.apply(made)
    return [await _ended(world, made["metadata"]["name"], name) for name in environments]


async def _ended(world: World, bundle: str, environment: str) -> JsonObject:
    step = await world.wait_for(
        PROMOTION_STEP,
        names.step_name(bundle, environment),
        lambda step: (step.get("status") or {}).get("state") in ("Verified", "Failed"),
    )
    status: JsonObject = step["status"]
    assert status["state"] == "Verified", status["message"]
    return status


def deployment(repository: GitRepository, branch: str) -> JsonObject:
    """Return the one object of a rendered branch."""
    (found,) = yaml.safe_load_all(repository.read("manifests.yaml", branch))
    assert isinstance(found, dict)
    return found


def image(repository: GitRepository, branch: str) -> str:
    return str(deployment(repository, branch)["spec"]["template"]["spec"]["containers"][0]["image"])


async def test_bundles_are_rendered_from_the_source_to_the_branches_of_two_environments(
    world: World, repository: GitRepository, kustomize: None, tmp_path: Path
) -> None:
    source = config_repository(tmp_path)
    update = {"config": {"repository": source.url}}
    git = {"url": repository.url, "provider": "local", "layout": "branch"}
    environments = [environment(DEV, update=update), environment(STAGING, branch="deploy/staging", update=update)]
    first = repository.head()
    branches = (f"env/{DEV}", "deploy/staging")
    await start_controller(world)
    for name in (DEV, STAGING):
        await deploy(world, name)

    await world.apply(pipeline(repository, environments=environments, git=git))
    (status, _) = await verified(world, bundle("image-1"), DEV, STAGING)
    assert [step["uses"] for step in status["steps"]] == [
        "git-clone",
        "config-merge",
        "helm-set-chart",
        "kustomize-set-image",
        "kustomize-build",
        "git-commit",
        "git-push",
        "health-check",
    ]
    for branch in branches:
        assert repository.files(branch=branch) == [".kardinal/state.yaml", "manifests.yaml"]
        assert image(repository, branch) == f"{IMAGE}:1.1.0"

    # A person adds to the base, and a patch comes as a commit of the configuration.
    base = repository.read("base/deployment.yaml").replace("replicas: 2", "replicas: 3")
    changed = repository.commit({"base/deployment.yaml": base})
    overlay = repository.read(f"environments/{DEV}/kustomization.yaml")
    source.commit({"kustomization.yaml": overlay})
    patched = f"{overlay}commonAnnotations: {{team: shop}}\n"
    promoted = config_bundle("config-1", source, source.commit({"kustomization.yaml": patched}))
    await verified(world, promoted, DEV, STAGING)
    for name in (DEV, STAGING):
        await deploy(world, name, image=f"{IMAGE}:1.2.0")
    await verified(world, bundle("image-2", tag="1.2.0"), DEV, STAGING)

    for branch in branches:
        assert image(repository, branch) == f"{IMAGE}:1.2.0"
        assert deployment(repository, branch)["spec"]["replicas"] == 3
        assert deployment(repository, branch)["metadata"]["annotations"] == {"team": "shop"}
        assert json.loads(repository.read(".kardinal/state.yaml", branch))["source"] == changed
        subjects = [commit.subject for commit in repository.commits(branch)]
        assert [subject.split(" to ")[0] for subject in subjects[:3]] == [
            "Promote my-app 1.2.0",
            f"Promote my-app {source.head()[:7]}",
            "Promote my-app 1.1.0",
        ]
    assert repository.git("rev-list", "--count", f"{first}..main") == "1"


async def test_an_image_that_is_not_rendered_is_not_pushed_to_the_branch(
    world: World, repository: GitRepository, kustomize: None
) -> None:
    git = {"url": repository.url, "provider": "local", "layout": "branch"}
    await start_controller(world)
    await world.apply(pipeline(repository, environments=[environment(DEV)], git=git))
    await world.apply(bundle("image-1", image="ghcr.io/acme/my-ap"))
    step = await world.wait_for(
        PROMOTION_STEP,
        names.step_name("image-1", DEV),
        lambda step: (step.get("status") or {}).get("state") in ("Verified", "Failed"),
    )
    assert "setting ghcr.io/acme/my-ap has no effect" in step["status"]["message"]
    assert repository.branches() == ["main"]
