"""A token that is deleted at a real Gitea while reviews wait, and a controller that starts again meanwhile."""

from __future__ import annotations

import pytest

from tests.agent.promotion_steps import reached, state, wake
from tests.hosts.gitea_host import merge_by_person
from tests.hosts.projects import (
    begin,
    git_secret,
    pipeline_of,
    repository_condition,
    until,
    waits,
)
from tests.support.gitea import BOT_SCOPES, GiteaProject, Person, new_token
from tests.support.names import DEV, PROD, STAGING
from tests.support.objects import bundle
from tests.support.programs import start_controller
from tests.support.secret_values import know_secret
from tests.support.world import World

REVIEWS = {"shop": DEV, "cart": STAGING, "mail": PROD}
"""Pipeline -> its environment."""


@pytest.mark.timeout(150)
@pytest.mark.of_hosts
@pytest.mark.virtual_time("lives through the back-off")
async def test_reviews_outlive_a_token_that_was_deleted_and_a_restart(
    world: World, gitea_project: GiteaProject
) -> None:
    project = gitea_project
    controller = await start_controller(world)
    chain = [pipeline_of(project, name, where, approval="pr-review") for name, where in REVIEWS.items()]
    await begin(world, project, *chain)
    await world.apply(*(bundle(f"{name}-1", pipeline=name) for name in REVIEWS))
    numbers = {name: await waits(world, f"{name}-1", where) for name, where in REVIEWS.items()}
    for number in numbers.values():
        review = {"event": "APPROVED", "body": "good"}
        project.api("POST", f"{project.path}/pulls/{number}/reviews", review, by="alice")
    heads = {number: proposed(project, number) for number in numbers.values()}

    project.revoke("bot")
    await world.stop(controller)
    await start_controller(world)

    async def all_held() -> bool:
        found = [await state(world, where, bundle=f"{name}-1") for name, where in REVIEWS.items()]
        return all(held(status) == ("True", "Blocked") for status in found)

    await until(world, all_held)
    for name, where in REVIEWS.items():
        status = await state(world, where, bundle=f"{name}-1")
        assert status["state"] == "WaitingForMerge"
        assert "git.secretRef" in status["message"]

        async def not_ready(name: str = name) -> bool:
            return (await repository_condition(world, name)).get("status") == "False"

        await until(world, not_ready)
        assert "valid one into the Secret" in (await repository_condition(world, name))["message"]

    bot = project.people["bot"].name
    project.people["bot"] = Person(bot, new_token(project.server, bot, BOT_SCOPES))
    know_secret(project.people["bot"].token)
    await world.apply(git_secret(project))

    async def all_go_on() -> bool:
        found = [await state(world, where, bundle=f"{name}-1") for name, where in REVIEWS.items()]
        ready = [(await repository_condition(world, name)).get("status") for name in REVIEWS]
        return all(held(status)[0] == "False" for status in found) and set(ready) == {"True"}

    await until(world, all_go_on)
    for name, where in REVIEWS.items():
        number = numbers[name]
        assert proposed(project, number) == heads[number]
        await merge_by_person(project, number, "merge")
        await wake(world, where, bundle=f"{name}-1")
        status = await reached(world, "Verified", where, bundle=f"{name}-1")
        assert status["pullRequest"]["number"] == number
        assert status["evidence"]["approvedBy"] == [project.people["alice"].name]
    assert len(project.api("GET", f"{project.path}/pulls?state=all")) == len(REVIEWS)


def held(status: dict[str, object]) -> tuple[str, str]:
    conditions = status.get("conditions", ())
    assert isinstance(conditions, list | tuple)
    return next(((one["status"], one["reason"]) for one in conditions if one["type"] == "Held"), ("", ""))


def proposed(project: GiteaProject, number: int) -> str:
    """Return the head of an open pull request."""
    found = project.api("GET", f"{project.path}/pulls/{number}")
    assert found["state"] == "open"
    return str(found["head"]["sha"])
