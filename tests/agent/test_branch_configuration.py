"""Commits of a configuration in environments with a branch of their own: Bundles keep what others have brought."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.scm import PullRequests
from tests.agent.config_bundles import LIMITS, config_bundle, config_repository
from tests.agent.promotion_steps import deploy, promotion_step, put, reached, start_agent
from tests.support.names import DEV
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

BRANCH = f"env/{DEV}"
HERE = f"environments/{DEV}"


@pytest.fixture
def source(tmp_path: Path) -> GitRepository:
    return config_repository(tmp_path)


class Branch:
    """Promotes to an environment whose branch is rendered from the directory of `repository`."""

    def __init__(self, world: World, repository: GitRepository, source: GitRepository, **config: Any) -> None:
        self._world = world
        self._repository = repository
        self._source = source
        self._config = {"repository": source.url, **config}
        self._count = 0

    async def image(self, tag: str, **spec: Any) -> JsonObject:
        return await self._promote(bundle(f"image-{self._next()}", tag=tag), **spec)

    async def commit(self, sha: str, *, image: str | None = None, **spec: Any) -> JsonObject:
        made = config_bundle(f"config-{self._next()}", self._source, sha)
        if image is not None:
            made["spec"]["type"] = "mixed"
            made["spec"]["artifacts"]["images"] = bundle("x", tag=image)["spec"]["artifacts"]["images"]
        return await self._promote(made, **spec)

    def read(self, path: str) -> str:
        return self._repository.read(path, BRANCH)

    def files(self) -> list[str]:
        """Return the files of the branch, without the record."""
        return [path for path in self._repository.files(branch=BRANCH) if not path.startswith(".kardinal/")]

    def state(self) -> JsonObject:
        state: JsonObject = json.loads(self.read(".kardinal/state.yaml"))
        return state

    def tree(self) -> dict[str, str]:
        return {path: self.read(path) for path in self.files()}

    def _next(self) -> int:
        self._count += 1
        return self._count

    async def _promote(self, made: JsonObject, *, until: str = "Verified", **spec: Any) -> JsonObject:
        name = made["metadata"]["name"]
        await self._world.apply(made)
        await deploy(self._world, image=made["spec"]["artifacts"].get("images", [{"reference": "x:1"}])[0]["reference"])
        waits = ["open-pr", "wait-for-merge"] if spec.get("approval") == "pr-review" else []
        uses = ["git-clone", "config-merge", "kustomize-set-image", "git-commit", "git-push", *waits, "health-check"]
        step = promotion_step(
            self._repository,
            bundle=name,
            git={"url": self._repository.url, "provider": "local", "layout": "branch"},
            branch=BRANCH,
            steps=[{"uses": one} for one in uses],
            update={"config": self._config},
            **spec,
        )
        await put(self._world, step)
        return await reached(self._world, until, bundle=name)


async def test_images_and_commits_keep_each_other_in_both_orders(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    repository.commit({f"{HERE}/limits.yaml": LIMITS})
    branch = Branch(world, repository, source)
    before = repository.head()
    await branch.image("1.1.0")
    assert branch.read("limits.yaml") == LIMITS

    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4"), "new.yaml": "new: true\n"})
    await branch.commit(sha)
    assert 'newTag: "1.1.0"' in branch.read("kustomization.yaml")
    assert branch.read("limits.yaml") == LIMITS.replace("cpu: 1", "cpu: 4")

    # The source changes elsewhere meanwhile, and what is on it comes along.
    repository.commit({f"{HERE}/limits.yaml": LIMITS.replace("replicas: 2", "replicas: 9")})
    await branch.image("1.2.0")
    assert 'newTag: "1.2.0"' in branch.read("kustomization.yaml")
    assert branch.read("limits.yaml") == "cpu: 4\nmemory: 1Gi\nreplicas: 9\n"
    assert branch.read("new.yaml") == "new: true\n"

    last = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 5")})
    await branch.commit(last)
    assert 'newTag: "1.2.0"' in branch.read("kustomization.yaml")
    assert branch.read("limits.yaml") == "cpu: 5\nmemory: 1Gi\nreplicas: 9\n"
    assert [one["commit"] for one in branch.state()["config"]] == [sha, last]
    assert repository.git("rev-list", "--count", f"{before}..main") == "1"


async def test_a_commit_may_be_the_first_and_a_bundle_may_bring_both(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    branch = Branch(world, repository, source)
    await branch.commit(source.commit({"a.yaml": "a: 1\n"}))
    assert branch.files() == ["a.yaml", "kustomization.yaml"]
    await branch.commit(source.commit({"b.yaml": "b: 1\n"}), image="1.5.0")
    assert branch.files() == ["a.yaml", "b.yaml", "kustomization.yaml"]
    assert 'newTag: "1.5.0"' in branch.read("kustomization.yaml")
    await branch.image("1.6.0")
    assert branch.files() == ["a.yaml", "b.yaml", "kustomization.yaml"]


async def test_going_back_to_a_commit_leaves_out_what_landed_after_and_keeps_the_image(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    repository.commit({f"{HERE}/limits.yaml": LIMITS})
    branch = Branch(world, repository, source)
    first = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 2")})
    await branch.commit(first, image="1.1.0")
    as_it_was = branch.tree()
    text = LIMITS.replace("cpu: 1", "cpu: 2").replace("replicas: 2", "replicas: 5")
    await branch.commit(source.commit({"limits.yaml": text, "added.yaml": "later\n"}))
    last = source.commit({"limits.yaml": text.replace("replicas: 5", "replicas: 6")})
    await branch.commit(last)
    assert branch.read("limits.yaml").endswith("replicas: 6\n")

    await branch.commit(first)
    assert branch.tree() == as_it_was
    assert [one["commit"] for one in branch.state()["config"]] == [first]
    await branch.image("1.1.0")
    assert branch.tree() == as_it_was


async def test_an_overlay_gives_the_snapshot_before_back_with_what_was_deleted(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    await start_agent(world)
    source = config_repository(tmp_path, {f"configs/app/{name}.yaml": f"{name}: 1\n" for name in ("a", "b")})
    repository.commit({f"{HERE}/a.yaml": "of the environment\n", f"{HERE}/b.yaml": "of the environment\n"})
    branch = Branch(world, repository, source, **{"strategy": "overlay", "from": "configs/app"})
    first = source.commit({"configs/app/a.yaml": "a: 2\n", "elsewhere.yaml": "not below the path\n"})
    await branch.commit(first)
    assert branch.read("a.yaml") == "a: 2\n"
    as_it_was = branch.tree()

    # A commit that was never promoted is brought by the next one, as it is a snapshot.
    source.commit({"configs/app/b.yaml": "b: 3\n", "configs/app/c.yaml": "c: 3\n"})
    last = source.commit({"configs/app/a.yaml": "a: 4\n"}, delete=["configs/app/b.yaml"])
    await branch.commit(last)
    assert branch.files() == ["a.yaml", "c.yaml", "kustomization.yaml"]
    await branch.image("1.3.0")
    assert branch.files() == ["a.yaml", "c.yaml", "kustomization.yaml"]

    await branch.commit(first)
    assert branch.tree() == as_it_was | {"kustomization.yaml": branch.read("kustomization.yaml")}
    assert 'newTag: "1.3.0"' in branch.read("kustomization.yaml")


async def test_a_source_that_changes_the_same_lines_holds_every_bundle_until_the_files_agree(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    repository.commit({f"{HERE}/limits.yaml": LIMITS})
    branch = Branch(world, repository, source)
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4")})
    await branch.commit(sha)
    repository.commit({f"{HERE}/limits.yaml": LIMITS.replace("cpu: 1", "cpu: 7")})
    before = repository.head(BRANCH)

    status = await branch.image("1.1.0", until="Failed")
    assert f"{HERE}/limits.yaml: conflicts with commit {sha[:12]}: main has another content there" in status["message"]
    assert repository.head(BRANCH) == before

    repository.commit({f"{HERE}/limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4")})
    await branch.image("1.1.0")
    assert branch.read("limits.yaml") == LIMITS.replace("cpu: 1", "cpu: 4")


async def test_a_pull_request_of_a_commit_waits_while_an_image_lands(
    world: World, repository: GitRepository, source: GitRepository, reviewer: PullRequests
) -> None:
    """The proposal is made again on what has landed, so that it does not undo it."""
    await start_agent(world)
    branch = Branch(world, repository, source)
    await branch.image("1.1.0")
    sha = source.commit({"new.yaml": "new: true\n"})
    await branch.commit(sha, approval="pr-review", until="WaitingForMerge")
    await branch.image("1.2.0")
    await world.settle()
    (proposed,) = await reviewer.list("open")

    await reviewer.merge(proposed.number, by="ann")
    await reached(world, "Verified", bundle="config-2")

    assert 'newTag: "1.2.0"' in branch.read("kustomization.yaml")
    assert branch.read("new.yaml") == "new: true\n"
    assert [image["reference"] for image in branch.state()["images"]] == [f"{IMAGE}:1.2.0"]
    assert [one["commit"] for one in branch.state()["config"]] == [sha]


async def test_the_default_sequence_of_a_pipeline_keeps_both(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    repository.commit({f"{HERE}/main.tf": f'image = "{IMAGE}:1.0.0"\n'})
    update = {"strategy": "replace", "replace": {"files": ["main.tf"]}, "config": {"repository": source.url}}
    await start_controller(world)
    await deploy(world)
    git = {"url": repository.url, "provider": "local", "layout": "branch"}
    way = pipeline(repository, environments=[environment(DEV, update=update)], git=git)
    await world.apply(way, bundle("image-1"))
    status = await reached(world, "Verified", bundle="image-1")
    assert [step["uses"] for step in status["steps"]][1:4] == ["config-merge", "helm-set-chart", "replace"]

    await world.apply(config_bundle("config-1", source, source.commit({"new.yaml": "new: true\n"})))
    await reached(world, "Verified", bundle="config-1")
    assert repository.read("main.tf", BRANCH) == f'image = "{IMAGE}:1.1.0"\n'
    assert repository.read("new.yaml", BRANCH) == "new: true\n"


async def test_a_sequence_that_would_undo_what_is_recorded_is_refused(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    branch = Branch(world, repository, source)
    await branch.commit(source.commit({"new.yaml": "new: true\n"}))
    before = repository.head(BRANCH)
    await world.apply(bundle("image-9"))
    uses = ["git-clone", "kustomize-set-image", "git-commit", "git-push", "health-check"]
    git = {"url": repository.url, "provider": "local", "layout": "branch"}
    steps = [{"uses": one} for one in uses]
    await put(world, promotion_step(repository, bundle="image-9", git=git, branch=BRANCH, steps=steps))
    status = await reached(world, "Failed", bundle="image-9")
    assert ".kardinal/state.yaml: records gitCommit" in status["message"]
    assert repository.head(BRANCH) == before
