"""Layout `branch`: environments with a branch of their own, which holds what their directory renders to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.scm import PullRequests
from tests.agent.promotion_steps import deploy, promotion_step, put, reached, start_agent
from tests.support.names import DEV
from tests.support.objects import bundle
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

OTHER = "ghcr.io/acme/worker"
BRANCH = f"env/{DEV}"
OVERLAY = f"""\
resources:
  - pod.yaml
images:
  - name: {IMAGE}
    newTag: 1.0.0
  - name: {OTHER}
    newTag: 1.0.0
"""
POD = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: two
spec:
  containers:
    - name: app
      image: {IMAGE}
    - name: worker
      image: {OTHER}
"""


@pytest.fixture
async def agent(world: World) -> None:
    await start_agent(world)
    await deploy(world)


def own_branch(repository: GitRepository, *, bundle: str, **spec: Any) -> JsonObject:
    """Return a PromotionStep whose environment has a branch of its own, and is copied there."""
    uses = ["git-clone", "kustomize-set-image", "git-commit", "git-push"]
    uses += ["open-pr", "wait-for-merge"] if spec.get("approval") == "pr-review" else []
    git = {"url": repository.url, "provider": "local", "layout": "branch"}
    steps = [{"uses": name} for name in [*uses, "health-check"]]
    return promotion_step(repository, bundle=bundle, git=git, branch=BRANCH, steps=steps, **spec)


async def promote(
    world: World, repository: GitRepository, name: str, *, tag: str = "1.1.0", until: str = "Verified"
) -> JsonObject:
    await world.apply(bundle(name, tag=tag))
    await put(world, own_branch(repository, bundle=name))
    return await reached(world, until, bundle=name)


async def test_a_missing_branch_begins_without_the_history_of_the_source(
    world: World, agent: None, repository: GitRepository
) -> None:
    source = repository.commit({f"environments/{DEV}/sub/a.yaml": "a: 1\n"})

    status = await promote(world, repository, "app-1")

    assert repository.head() == source
    assert repository.files(branch=BRANCH) == [".kardinal/state.yaml", "kustomization.yaml", "sub/a.yaml"]
    assert 'newTag: "1.1.0"' in repository.read("kustomization.yaml", BRANCH)
    begin, promotion = reversed(repository.commits(BRANCH))
    assert begin.subject == f"Begin the branch of {DEV} of my-app"
    assert repository.files(branch=f"{BRANCH}~1") == []
    assert (promotion.sha, promotion.subject) == (status["commit"], f"Promote my-app 1.1.0 to {DEV}")
    state = json.loads(repository.read(".kardinal/state.yaml", BRANCH))
    images = [{"name": "app", "reference": f"{IMAGE}:1.1.0"}]
    assert state == {"images": images, "charts": [], "config": [], "source": source}


async def test_one_bundle_does_not_undo_another(world: World, agent: None, repository: GitRepository) -> None:
    repository.commit({f"environments/{DEV}/kustomization.yaml": OVERLAY, f"environments/{DEV}/pod.yaml": POD})
    await promote(world, repository, "app-1")
    made = bundle("worker-1", image=OTHER, tag="2.0.0")
    made["spec"]["artifacts"]["images"][0]["name"] = "worker"
    await world.apply(made)
    await put(world, own_branch(repository, bundle="worker-1"))
    await reached(world, "HealthChecking", bundle="worker-1")

    text = repository.read("kustomization.yaml", BRANCH)
    assert "newTag: 1.1.0" in text
    assert "newTag: 2.0.0" in text
    await promote(world, repository, "app-2", tag="1.2.0", until="HealthChecking")
    text = repository.read("kustomization.yaml", BRANCH)
    assert "newTag: 1.2.0" in text
    assert "newTag: 2.0.0" in text


async def test_output_replaces_all_but_what_the_host_reads(
    world: World, agent: None, repository: GitRepository
) -> None:
    theirs = {".github/workflows/x.yaml": "x\n", ".gitlab-ci.yml": "y\n", "CODEOWNERS": "* @platform\n"}
    repository.commit(theirs | {"stale.yaml": "old\n", "stale/b.yaml": "old\n"}, branch=BRANCH)
    repository.commit({f"environments/{DEV}/{name}": "z\n" for name in (".github/workflows/evil.yaml", "CODEOWNERS")})

    await promote(world, repository, "app-1")

    assert repository.files(branch=BRANCH) == sorted([*theirs, ".kardinal/state.yaml", "kustomization.yaml"])
    assert repository.read("CODEOWNERS", BRANCH) == "* @platform\n"


async def test_a_pull_request_goes_to_the_branch_of_the_environment(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(bundle("app-1"))
    await put(world, own_branch(repository, bundle="app-1", approval="pr-review"))
    await reached(world, "WaitingForMerge", bundle="app-1")
    (proposed,) = await reviewer.list("open")
    assert proposed.base == BRANCH
    assert "1.0.0 to 1.1.0" in proposed.body
    assert repository.files(branch=BRANCH) == []

    await reviewer.merge(proposed.number, by="ann")

    await reached(world, "Verified", bundle="app-1")
    assert 'newTag: "1.1.0"' in repository.read("kustomization.yaml", BRANCH)


async def test_promoting_what_is_there_makes_no_commit(world: World, agent: None, repository: GitRepository) -> None:
    await promote(world, repository, "app-1")
    before = repository.head(BRANCH)
    await promote(world, repository, "app-2")
    assert repository.head(BRANCH) == before


async def test_the_source_is_the_commit_that_was_opened_first(
    world: World, agent: None, repository: GitRepository
) -> None:
    """A step that is repeated after a crash renders the same."""
    first = repository.head()
    await promote(world, repository, "app-1")
    assert (await reached(world, "Verified", bundle="app-1"))["outputs"]["git-clone"]["source"] == first
    second = repository.commit({f"environments/{DEV}/new.yaml": "n\n"})
    await promote(world, repository, "app-2", tag="1.1.0")
    assert json.loads(repository.read(".kardinal/state.yaml", BRANCH))["source"] == second
    assert repository.read("new.yaml", BRANCH) == "n\n"
