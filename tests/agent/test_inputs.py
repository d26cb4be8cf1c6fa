"""A second repository or ref as an input: what is read from it, and that it is one commit to the end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.scm import PullRequests
from tests.agent.inputs import copying, platform_repository, with_inputs
from tests.agent.promotion_steps import create, deploy, reached, start_agent, state
from tests.agent.test_crashes import Crash, start_crashing, until_crashed
from tests.support.names import DEV
from tests.support.renderers import CHART, install, needs, program
from tests.support.repository import GitRepository
from tests.support.world import World

HERE = f"environments/{DEV}"
SET = {"uses": "kustomize-set-image"}


@pytest.fixture
def platform(tmp_path: Path) -> GitRepository:
    return platform_repository(tmp_path)


def opening(platform: GitRepository | None, *, name: str = "platform", **config: Any) -> JsonObject:
    url = {"url": platform.url} if platform is not None else {}
    return {"uses": "git-clone", "as": name, "config": url | config}


async def promoted(world: World, step: JsonObject, until: str = "Verified") -> JsonObject:
    await start_agent(world)
    await deploy(world)
    await create(world, step)
    return await reached(world, until)


async def test_files_of_another_repository_are_copied_in_the_commit_of_the_promotion(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    before = platform.git("for-each-ref")
    status = await promoted(world, with_inputs(repository, opening(platform), copying(), SET))

    (commit,) = repository.promotions(DEV)
    assert repository.files(HERE) == ["base/kustomization.yaml", "base/service.yaml", "kustomization.yaml"]
    assert repository.read(f"{HERE}/base/service.yaml") == platform.read("bases/web/service.yaml")
    assert 'newTag: "1.1.0"' in repository.read(f"{HERE}/kustomization.yaml")
    assert (status["commit"], len(repository.promotions(DEV))) == (commit.sha, 1)
    assert status["outputs"]["platform"] == {"commit": platform.head()}
    assert status["steps"][1]["message"] == f"branch main of {platform.url} is read at {platform.head()[:12]}"
    assert platform.git("for-each-ref") == before


async def test_a_branch_a_tag_and_a_commit_are_what_they_name(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    first = platform.head()
    platform.git("tag", "-a", "v1", "-m", "one", first)
    platform.git("tag", "light", first)
    platform.git("branch", "next", "main")
    platform.commit({"bases/web/service.yaml": "kind: Service\nmetadata: {name: two}\n"}, branch="next")
    platform.commit({"bases/web/service.yaml": "kind: Service\nmetadata: {name: three}\n"})
    refs = {
        "branch": ({"branch": "next"}, "two"),
        "tag": ({"tag": "v1"}, "one"),
        "light": ({"tag": "light"}, "one"),
        "commit": ({"commit": first}, "one"),
    }
    opened = [opening(platform, name=name, **ref) for name, (ref, _) in refs.items()]
    copied = [copying(name=name, to=name) for name in refs]
    await promoted(world, with_inputs(repository, *opened, *copied))
    for name, (_, expected) in refs.items():
        assert f"name: {expected}" in repository.read(f"{HERE}/{name}/service.yaml")


async def test_another_branch_of_the_own_repository_is_an_input(world: World, repository: GitRepository) -> None:
    repository.git("branch", "bases", "main")
    bases = repository.commit({"shared/a.yaml": "a: 1\n"}, branch="bases")
    status = await promoted(world, with_inputs(repository, opening(None, branch="bases"), copying("shared", to="x")))
    assert repository.read(f"{HERE}/x/a.yaml") == "a: 1\n"
    assert status["outputs"]["platform"]["commit"] == bases == repository.head("bases")
    assert status["outputs"]["git-clone"]["commit"] == repository.git("rev-parse", "main~1")


async def test_the_version_chooses_a_tag_and_the_commit_stands_in_expressions(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    platform.git("tag", "v1.1.0", "main")
    head = platform.head()
    platform.commit({"bases/web/service.yaml": "later\n"})
    repository.commit({f"{HERE}/pin.yaml": "commit: none\n"})
    update = {"file": "pin.yaml", "updates": [{"path": "commit", "value": "${outputs.platform.commit}"}]}
    steps = [opening(platform, tag="v${bundle.version}"), copying(), {"uses": "yaml-update", "config": update}]
    await promoted(world, with_inputs(repository, *steps))
    assert head in repository.read(f"{HERE}/pin.yaml")
    assert "name: one" in repository.read(f"{HERE}/base/service.yaml")


async def test_a_restart_reads_the_commit_that_was_noted(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    crash = Crash(1, written=False)
    await start_crashing(world, crash)
    await deploy(world)
    await create(world, with_inputs(repository, opening(platform), copying()))
    await until_crashed(world, crash)
    noted = (await state(world))["outputs"]["platform"]["commit"]
    platform.commit({"bases/web/service.yaml": "later\n", "bases/web/more.yaml": "more\n"})

    await start_agent(world)
    status = await reached(world, "Verified")

    assert status["outputs"]["platform"]["commit"] == noted != platform.head()
    assert repository.files(f"{HERE}/base") == ["kustomization.yaml", "service.yaml"]
    assert len(repository.promotions(DEV)) == 1


async def test_a_proposal_that_is_made_again_reads_the_noted_commit_even_off_its_branch(
    world: World, repository: GitRepository, platform: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, with_inputs(repository, opening(platform), copying(), SET, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    first = platform.head()
    other = platform.git("commit-tree", "main^{tree}", "-m", "another history")
    platform.git("update-ref", "refs/heads/main", other)
    (proposed,) = await reviewer.list("open")
    kustomization = repository.read(f"{HERE}/kustomization.yaml")
    repository.commit({f"{HERE}/kustomization.yaml": f"# changed\n{kustomization}"})

    async def made_again() -> bool:
        return (await reviewer.get(proposed.number)).head_commit != proposed.head_commit

    await world.until(made_again)
    again = (await reviewer.get(proposed.number)).head
    assert (
        repository.read(f"{HERE}/base/service.yaml", again)
        == platform.git("show", f"{first}:bases/web/service.yaml") + "\n"
    )


async def test_health_is_looked_at_when_the_input_is_gone(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    await start_agent(world)
    await create(world, with_inputs(repository, opening(platform), copying(), SET))
    await reached(world, "HealthChecking")
    shutil.rmtree(platform.path)
    await deploy(world)
    await reached(world, "Verified")


async def test_a_kustomization_of_an_input_is_rendered_into_the_environment(
    world: World, repository: GitRepository, platform: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    program(programs, "kustomize", 'while read -r line; do echo "$line"; done < "$2/service.yaml"')
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    build = {"uses": "kustomize-build", "config": {"path": "bases/web", "input": "platform", "out": "web.yaml"}}
    await promoted(world, with_inputs(repository, opening(platform), build, SET))
    assert repository.read(f"{HERE}/web.yaml") == platform.read("bases/web/service.yaml")


async def test_a_chart_of_an_input_is_rendered_with_the_values_of_the_environment(
    world: World, repository: GitRepository, platform: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "programs")
    needs(tmp_path / "programs", "helm")
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")
    platform.commit(CHART)
    repository.commit({f"{HERE}/values.yaml": "note: of the environment\n"})
    config = {"chart": "charts/web", "input": "platform", "values": ["values.yaml"], "out": "web.yaml"}
    await promoted(world, with_inputs(repository, opening(platform), {"uses": "helm-template", "config": config}, SET))
    assert "r/web:1" in (rendered := repository.read(f"{HERE}/web.yaml"))
    assert "of the environment" in rendered


async def test_a_chart_that_an_input_does_not_have_is_named_with_it(
    world: World, repository: GitRepository, platform: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chart of that path in the environment's own repository is another one."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program(programs, "helm", 'for last; do :; done; read -r line < "$last/Chart.yaml" && echo "kind: A # $line"')
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    repository.commit(CHART)
    config = {"chart": "charts/web", "input": "platform"}
    step = with_inputs(repository, opening(platform), {"uses": "helm-template", "config": config}, SET)
    status = await promoted(world, step, "Failed")
    assert status["message"].startswith("helm-template: platform:/charts/web: cannot be rendered")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (copying("bases/wep"), "copy: platform:/bases/wep: no such file or directory"),
        ({"branch": "absent"}, "git-clone: input platform: {url} has no branch absent"),
        ({"tag": "absent"}, "git-clone: input platform: {url} has no tag absent"),
        ({"commit": "ab" * 20}, "git-clone: input platform: {url} has no commit abababababab on branch main"),
        ({"url": "file:///nowhere/x"}, "git-clone: input platform: there is no repository"),
    ],
)
async def test_missing_input_is_named(
    world: World, repository: GitRepository, platform: GitRepository, step: JsonObject, said: str
) -> None:
    before = repository.head()
    config: dict[str, Any] = {} if "uses" in step else step
    made = with_inputs(repository, opening(platform, **config), step if "uses" in step else copying())
    made["spec"]["steps"][1]["retry"] = {"attempts": 1}
    status = await promoted(world, made, "Failed")
    assert status["message"].startswith(said.format(url=platform.url))
    assert repository.head() == before
