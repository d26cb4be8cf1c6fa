"""Bundles that bring a commit of a configuration repository into the directory of an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kardinal.cli.output import plain_text
from kardinal.objects import JsonObject
from tests.agent.config_bundles import LIMITS, config_bundle, config_repository, config_step
from tests.agent.promotion_steps import deploy, put, reached, start_agent
from tests.support.names import DEV
from tests.support.objects import bundle
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

HERE = f"environments/{DEV}"


@pytest.fixture
async def agent(world: World) -> None:
    await start_agent(world)
    await deploy(world)


@pytest.fixture
def source(tmp_path: Path) -> GitRepository:
    return config_repository(tmp_path)


class Promotions:
    """Promotes commits of one configuration repository, one after the other."""

    def __init__(self, world: World, repository: GitRepository, source: GitRepository, **config: Any) -> None:
        self._world = world
        self._repository = repository
        self._source = source
        self._config = config
        self._count = 0

    async def promote(self, sha: str, *, until: str = "Verified") -> JsonObject:
        self._count += 1
        name = f"config-{self._count}"
        await self._world.apply(config_bundle(name, self._source, sha))
        await put(self._world, config_step(self._repository, self._source, bundle=name, **self._config))
        return await reached(self._world, until, bundle=name)


async def test_a_commit_is_picked_into_the_environment(
    world: World, agent: None, repository: GitRepository, source: GitRepository
) -> None:
    repository.commit({f"{HERE}/limits.yaml": LIMITS.replace("replicas: 2", "replicas: 9")})
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4"), "new.yaml": "new: true\n"})

    status = await Promotions(world, repository, source).promote(sha)

    assert repository.read(f"{HERE}/limits.yaml") == "cpu: 4\nmemory: 1Gi\nreplicas: 9\n"
    assert repository.read(f"{HERE}/new.yaml") == "new: true\n"
    (commit,) = repository.promotions(DEV)
    assert commit.subject == f"Promote my-app {sha[:7]} to {DEV}"
    assert commit.trailers["Kardinal-Config"] == f"{sha} {source.url} {HERE}"
    assert status["commit"] == commit.sha


async def test_every_file_that_conflicts_is_named_and_nothing_is_pushed(
    world: World, agent: None, repository: GitRepository, source: GitRepository
) -> None:
    repository.commit({f"{HERE}/limits.yaml": "cpu: 2\n", f"{HERE}/other.yaml": "mine\n"})
    before = repository.head()
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4"), "other.yaml": "theirs\n"})

    status = await Promotions(world, repository, source).promote(sha, until="Failed")

    assert f"{HERE}/limits.yaml" in status["message"]
    assert f"{HERE}/other.yaml" in status["message"]
    assert "conflicts with commit" in status["message"]
    assert repository.head() == before


async def test_going_back_to_an_older_commit_takes_the_later_ones_out_again(
    world: World, agent: None, repository: GitRepository, source: GitRepository
) -> None:
    repository.commit({f"{HERE}/limits.yaml": LIMITS})
    promotions = Promotions(world, repository, source)
    first = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 2")})
    await promotions.promote(first)
    as_it_was = repository.git("rev-parse", f"main:{HERE}")
    text = LIMITS.replace("cpu: 1", "cpu: 2").replace("replicas: 2", "replicas: 5")
    await promotions.promote(source.commit({"limits.yaml": text, "added.yaml": "later\n"}))
    last = source.commit({"limits.yaml": text.replace("replicas: 5", "replicas: 6")})
    await promotions.promote(last)
    assert repository.read(f"{HERE}/limits.yaml").endswith("replicas: 6\n")

    await promotions.promote(first)

    assert repository.git("rev-parse", f"main:{HERE}") == as_it_was
    # What was taken out can be brought again, and only that.
    status = await promotions.promote(last, until="Failed")
    assert "conflicts" in status["message"]


async def test_an_older_commit_is_not_gone_back_to_over_changes_of_the_environment(
    world: World, agent: None, repository: GitRepository, source: GitRepository
) -> None:
    repository.commit({f"{HERE}/limits.yaml": LIMITS})
    promotions = Promotions(world, repository, source)
    first = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 2")})
    await promotions.promote(first)
    await promotions.promote(source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 3")}))
    repository.commit({f"{HERE}/limits.yaml": LIMITS.replace("cpu: 1", "cpu: 7")})
    before = repository.head()

    status = await promotions.promote(first, until="Failed")

    assert f"{HERE}/limits.yaml" in status["message"]
    assert repository.head() == before


async def test_an_overlay_makes_files_what_they_are_in_the_commit_deletions_included(
    world: World, agent: None, repository: GitRepository, tmp_path: Path
) -> None:
    source = config_repository(tmp_path, {f"configs/app/{name}.yaml": f"{name}: 1\n" for name in ("a", "b")})
    repository.commit({f"{HERE}/a.yaml": "of the environment\n", f"{HERE}/b.yaml": "of the environment\n"})
    promotions = Promotions(world, repository, source, **{"strategy": "overlay", "from": "configs/app"})
    first = source.commit({"configs/app/a.yaml": "a: 2\n", "elsewhere.yaml": "not below the path\n"})

    await promotions.promote(first)
    assert repository.read(f"{HERE}/a.yaml") == "a: 2\n"
    assert repository.read(f"{HERE}/b.yaml") == "of the environment\n"
    as_it_was = repository.git("rev-parse", f"main:{HERE}")

    source.commit({"configs/app/b.yaml": "b: 3\n", "configs/app/c.yaml": "c: 3\n"})
    last = source.commit({"configs/app/a.yaml": "a: 4\n"}, delete=["configs/app/b.yaml"])
    await promotions.promote(last)
    assert repository.files(HERE) == ["a.yaml", "c.yaml", "kustomization.yaml"]
    assert repository.read(f"{HERE}/c.yaml") == "c: 3\n"

    await promotions.promote(first)
    assert repository.files(HERE) == ["a.yaml", "b.yaml", "kustomization.yaml"]
    assert repository.read(f"{HERE}/a.yaml") == "a: 2\n"
    assert repository.git("rev-parse", f"main:{HERE}") != as_it_was
    assert repository.read(f"{HERE}/b.yaml") == "b: 1\n"


async def test_a_mixed_bundle_sets_the_image_in_what_the_commit_brings(
    world: World, agent: None, repository: GitRepository, source: GitRepository
) -> None:
    old = repository.read(f"{HERE}/kustomization.yaml")
    source.commit({"kustomization.yaml": old})
    sha = source.commit({"kustomization.yaml": old + "namePrefix: x-\n"})
    made = config_bundle("mixed-1", source, sha)
    made["spec"]["type"] = "mixed"
    made["spec"]["artifacts"]["images"] = bundle("x")["spec"]["artifacts"]["images"]
    await world.apply(made)
    step = config_step(repository, source, bundle="mixed-1")
    step["spec"]["steps"].insert(2, {"uses": "kustomize-set-image"})
    await put(world, step)

    await reached(world, "Verified", bundle="mixed-1")

    text = repository.read(f"{HERE}/kustomization.yaml")
    assert 'newTag: "1.1.0"' in text
    assert "namePrefix: x-" in text
    (commit,) = repository.promotions(DEV)
    assert f"{IMAGE}:1.1.0" in repository.git("show", "-s", "--format=%B", commit.sha)


async def test_a_pull_request_says_which_commit_it_brings(
    world: World, repository: GitRepository, source: GitRepository, reviewer: Any
) -> None:
    await start_agent(world)
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4"), "new.yaml": "new: true\n"})
    repository.commit({f"{HERE}/limits.yaml": LIMITS})
    await world.apply(config_bundle("config-1", source, sha))
    step = config_step(repository, source, bundle="config-1")
    step["spec"]["approval"] = "pr-review"
    step["spec"]["steps"][4:4] = [{"uses": "open-pr"}, {"uses": "wait-for-merge"}]
    await put(world, step)

    await reached(world, "WaitingForMerge", bundle="config-1")

    (proposed,) = await reviewer.list("open")
    assert proposed.title == f"Promote my-app {sha[:7]} to {DEV}"
    assert f"{source.url} at {sha[:7]}" in plain_text(proposed.body)
    assert "Raise the limits" in proposed.body
    assert f"files that commit {sha[:7]} changes" in proposed.body
    assert repository.read(f"{HERE}/new.yaml", proposed.head) == "new: true\n"


async def test_a_commit_is_not_taken_twice_for_one_of_another_directory(
    world: World, agent: None, repository: GitRepository, source: GitRepository
) -> None:
    """Two environments read what has landed from one branch."""
    repository.commit({f"{HERE}/limits.yaml": LIMITS, "environments/other/limits.yaml": LIMITS})
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4")})
    await world.apply(config_bundle("config-1", source, sha))
    other = config_step(repository, source, bundle="config-1", environment="other")
    await put(world, config_step(repository, source, bundle="config-1"), other)
    await deploy(world, "other")
    await reached(world, "Verified", bundle="config-1")
    await reached(world, "Verified", "other", bundle="config-1")
    assert repository.read("environments/other/limits.yaml") == repository.read(f"{HERE}/limits.yaml")
    assert "cpu: 4" in repository.read("environments/other/limits.yaml")


async def test_images_are_not_left_out_by_a_sequence_that_only_merges(
    world: World, agent: None, repository: GitRepository, source: GitRepository
) -> None:
    await world.apply(bundle("image-1"))
    await put(world, config_step(repository, source, bundle="image-1"))
    status = await reached(world, "Failed", bundle="image-1")
    assert status["message"] == "steps: none of them brings the images of bundle image-1"
