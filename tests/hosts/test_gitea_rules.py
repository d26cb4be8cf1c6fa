"""Rules of a real Gitea, and what people do to proposals there: to the end, by controller and agent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kardinal.promotion.api.names import branch_name
from kardinal.promotion.kinds import BUNDLE
from tests.agent.promotion_steps import reached, wake
from tests.hosts.gitea_host import GiteaHost
from tests.hosts.projects import (
    add_files,
    begin,
    pipeline_of,
    repository_condition,
    until,
    waits,
)
from tests.support.gitea import GiteaProject
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import bundle
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.of_hosts,
    pytest.mark.virtual_time("seconds that a host has to show a merge"),
]


@pytest.fixture
async def host(gitea_project: GiteaProject, tmp_path: Path, world: World) -> GiteaHost:
    """Return the repository as people see it, where a controller promotes."""
    await start_controller(world)
    return GiteaHost(tmp_path, gitea_project)


def pull(project: GiteaProject, number: int) -> dict[str, object]:
    found: dict[str, object] = project.api("GET", f"{project.path}/pulls/{number}")
    return found


def head(project: GiteaProject, number: int) -> str:
    return str(project.api("GET", f"{project.path}/pulls/{number}")["head"]["sha"])


def pass_checks(project: GiteaProject, number: int) -> None:
    path = f"{project.path}/statuses/{head(project, number)}"
    project.api("POST", path, {"context": "ci", "state": "success"}, by="alice")


async def test_two_proposals_that_the_base_leaves_behind_land_one_after_the_other(
    world: World, host: GiteaHost
) -> None:
    project = host.project
    rules = {"block_on_outdated_branch": True, "enable_push": True, "enable_status_check": True}
    project.protect("main", **rules, status_check_contexts=["ci"])
    shop = pipeline_of(project, "shop", DEV, pr=True)
    cart = pipeline_of(project, "cart", STAGING, pr=True)
    await begin(world, project, shop, cart)
    # Looking at the repository took a part of the requests that a host gets at one moment.
    await world.live(timedelta(seconds=10))
    await world.apply(bundle("shop-1", pipeline="shop"), bundle("cart-1", pipeline="cart"))
    numbers = {await waits(world, "shop-1", DEV), await waits(world, "cart-1", STAGING)}
    add_files(project, {"notes.txt": "others went on\n"})
    before = {number: head(project, number) for number in numbers}

    async def known_to_be_behind() -> bool:
        return all(project.behind(number) for number in numbers)

    # Until Gitea has counted, it would merge what is behind.
    await until(world, known_to_be_behind)
    for number in numbers:
        pass_checks(project, number)

    async def updated() -> set[int]:
        return {number for number in numbers if head(project, number) != before[number]}

    (first,) = await until(world, updated)
    # The checks of the first run: the other one keeps its head meanwhile.
    for _ in range(4):
        await world.live(timedelta(minutes=1))
    assert await updated() == {first}
    pass_checks(project, first)

    async def landed() -> bool:
        return bool(pull(project, first)["merged"])

    await until(world, landed)
    (second,) = numbers - {first}
    assert head(project, second) == before[second] or not pull(project, second)["merged"]

    async def both() -> bool:
        return len(await updated()) == 2

    await until(world, both)
    pass_checks(project, second)
    await reached(world, "Verified", DEV, bundle="shop-1")
    await reached(world, "Verified", STAGING, bundle="cart-1")
    assert host.content("main", "notes.txt") == "others went on"


async def test_a_squash_by_kardinal_keeps_the_trailers(world: World, host: GiteaHost) -> None:
    project = host.project
    await begin(world, project, pipeline_of(project, "shop", DEV, pr=True, git={"mergeMethod": "squash"}))
    await world.apply(bundle("shop-1", pipeline="shop"))

    async def verified() -> bool:
        return bool((await world.get(BUNDLE, "shop-1")).get("status", {}).get("phase") == "Verified")

    await until(world, verified)
    host.fetch()
    newest = GitRepository(host.git.directory).commits()[0]
    assert host.git("show", "-s", "--format=%P", newest.sha).count(" ") == 0
    assert newest.subject.startswith(f"Promote shop 1.1.0 to {DEV}")
    assert newest.trailers["Kardinal-Bundle"] == "shop-1"
    assert newest.trailers["Kardinal-Step"] == f"{TEAM}/shop-1-{DEV}"


async def test_a_proposal_that_a_person_pushes_to_the_base_has_landed(world: World, host: GiteaHost) -> None:
    project = host.project
    await begin(world, project, pipeline_of(project, "shop", PROD, approval="pr-review"))
    await world.apply(bundle("shop-1", pipeline="shop"))
    number = await waits(world, "shop-1", PROD)
    host.fetch()
    proposed = host.git("rev-parse", branch_name(TEAM, "shop-1", PROD))
    host.git("branch", "--force", "main", proposed)
    host.publish("main")
    await wake(world, PROD, bundle="shop-1")
    status = await reached(world, "Verified", PROD, bundle="shop-1")
    assert status["commit"] == proposed
    assert host.tip("main") == proposed
    assert pull(project, number)["state"] == "closed"
    told = [one for one in await host.comments(number) if "nothing is left to merge" in one]
    assert len(told) == 1
    assert [one["name"] for one in project.api("GET", f"{project.path}/branches")] == ["main"]


async def test_the_person_who_closed_a_proposal_is_named(world: World, host: GiteaHost) -> None:
    project = host.project
    await begin(world, project, pipeline_of(project, "shop", PROD, approval="pr-review"))
    await world.apply(bundle("shop-1", pipeline="shop"))
    number = await waits(world, "shop-1", PROD)
    await host.close_by_person(number)
    await wake(world, PROD, bundle="shop-1")
    status = await reached(world, "Failed", PROD, bundle="shop-1")
    assert f"closed by {project.people['alice'].name} " in status["message"]


async def test_an_archived_repository_is_told_before_anything_is_promoted(world: World, host: GiteaHost) -> None:
    project = host.project
    project.api("PATCH", project.path, {"archived": True})
    await begin(world, project, pipeline_of(project, "shop", PROD, approval="pr-review"))

    async def told() -> bool:
        return (await repository_condition(world, "shop")).get("status") == "False"

    await until(world, told)
    assert "archived" in (await repository_condition(world, "shop"))["message"]
    project.api("PATCH", project.path, {"archived": False})
    await world.apply(bundle("shop-1", pipeline="shop"))
    await waits(world, "shop-1", PROD)
