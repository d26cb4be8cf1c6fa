"""Pull requests that no promotion has opened get the status that a branch may require, and none makes it lie."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects.conditions import format_time
from tests.agent.hosted import git_secret
from tests.agent.other_changes import answer, asking, patched
from tests.agent.promotion_steps import (
    start_agent,
)
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV, POLICIES, PROD
from tests.support.objects import environment, gate
from tests.support.programs import start_controller
from tests.support.world import World

# What a host and people do to pull requests: the API server has no part in it.
pytestmark = [pytest.mark.virtual_time("pauses between looks at a host"), pytest.mark.of_hosts]

SOON = timedelta(seconds=20)
PROD_FILE = f"environments/{PROD}/kustomization.yaml"
OPEN = ("success", "it changes no environment")
WRITE = r"POST /statuses/\w+"


async def wake(world: World) -> None:
    """Have a host say that a pull request has come or changed."""
    await world.live(SOON)
    await patched(world, {"wokenAt": format_time(world.clock.now())})


async def asked(world: World, gitea: FakeGitea, **options: Any) -> None:
    """Have an agent serve a Pipeline that asks for statuses on others, whose gates are open."""
    await start_agent(world, **options)
    await world.apply(git_secret(gitea), asking(gitea))
    await answer(world)


async def test_pull_request_that_reaches_prod_waits_for_its_gates_and_an_unrelated_one_does_not(
    world: World, gitea: FakeGitea
) -> None:
    _, unrelated = gitea.propose({"README.md": "words\n"}, head="words")
    _, reaching = gitea.propose({PROD_FILE: "resources: []\n"}, head="scale")
    agent = await start_agent(world)
    await world.apply(git_secret(gitea), asking(gitea))
    await world.live(SOON)
    assert gitea.told(unrelated) == gitea.told(reaching) == ("", "")
    await answer(world, **{PROD.replace("-", "_"): "gate weekend: it is Sunday"})
    await world.live(SOON)
    assert gitea.told(unrelated) == OPEN
    assert gitea.told(reaching) == ("pending", f"{PROD}: gate weekend: it is Sunday")
    assert gitea.told(reaching, f"kardinal/my-app/{PROD}") == ("pending", f"{PROD}: gate weekend: it is Sunday")
    assert len(gitea.asked(WRITE)) == 3
    await world.live(SOON)
    await answer(world)
    state, description = gitea.told(reaching)
    assert (state, PROD in description) == ("success", True)
    assert len(gitea.asked(WRITE)) == 5

    # An agent that comes back reads what is there.
    await world.stop(agent)
    gitea.requests.clear()
    await start_agent(world)
    await world.live(SOON)
    assert len(gitea.asked("GET /pulls")) == 1
    await world.live(timedelta(minutes=30))
    assert gitea.asked(WRITE) == []


async def test_new_pull_request_is_told_at_once_and_many_wakes_cost_one_list(world: World, gitea: FakeGitea) -> None:
    await asked(world, gitea)
    _, first = gitea.propose({"README.md": "1"}, head="first")
    await wake(world)
    assert gitea.told(first) == OPEN
    _, second = gitea.propose({"README.md": "2"}, head="second")
    await world.live(timedelta(minutes=5, seconds=1))
    assert gitea.told(second) == OPEN

    # Many wakes cost one list in fifteen seconds.
    await world.live(SOON)
    gitea.requests.clear()
    for number in range(12):
        await patched(world, {"wokenAt": format_time(world.clock.now() + timedelta(milliseconds=number))})
        await world.live(timedelta(seconds=5))
    assert 2 <= len(gitea.requests) <= 5
    assert {(one.method, one.path) for one in gitea.requests} == {("GET", "/pulls")}


async def test_pipelines_of_one_repository_answer_together(world: World, gitea: FakeGitea) -> None:
    _, commit = gitea.propose({PROD_FILE: "x: 1\n", "apps/other/a.yaml": "x"}, head="scale")
    await start_agent(world)
    other = asking(gitea, "other", environments=[environment(PROD, path="apps/other")])
    other["spec"]["git"]["url"] = gitea.url.removesuffix(".git")
    await world.apply(git_secret(gitea), asking(gitea), other)
    await answer(world, "other")
    await world.live(SOON)
    assert gitea.told(commit) == ("", "")
    await answer(world, **{PROD.replace("-", "_"): "gate weekend: it is Sunday"})
    await world.live(SOON)
    assert gitea.told(commit)[0] == "pending"
    assert gitea.told(commit, f"kardinal/other/{PROD}")[0] == "success"
    assert gitea.told(commit, f"kardinal/my-app/{PROD}")[0] == "pending"


async def test_the_agent_of_a_shard_leaves_what_another_one_serves(world: World, gitea: FakeGitea) -> None:
    _, commit = gitea.propose({"README.md": "x"}, head="words")
    await start_agent(world, shard="eu")
    await world.apply(git_secret(gitea), asking(gitea, environments=[DEV, environment(PROD, shard="eu")]))
    await answer(world)
    await world.live(SOON)
    assert gitea.told(commit) == ("", "")
    assert gitea.asked("GET /pulls") == []


async def test_a_token_without_the_right_is_told_on_the_pipeline_once(world: World, gitea: FakeGitea) -> None:
    gitea.propose({"README.md": "x"}, head="words")
    gitea.outage = lambda request: (403, {"message": "token does not have scope"}) if request.method == "POST" else None
    await asked(world, gitea)
    await world.live(timedelta(minutes=20))
    (event,) = await world.events("StatusesNotWritten")
    assert "write:repository" in event["note"]
    assert event["regarding"]["name"] == "my-app"
    assert len(gitea.asked(WRITE)) <= 6


async def test_with_the_poll_off_only_what_is_woken_is_looked_at(world: World, gitea: FakeGitea) -> None:
    await asked(world, gitea, scm_poll_interval=0.0)
    await world.live(SOON)
    gitea.requests.clear()
    await world.live(timedelta(hours=1))
    assert gitea.requests == []
    _, commit = gitea.propose({"README.md": "x"}, head="words")
    await wake(world)
    assert gitea.told(commit) == OPEN


async def test_gates_and_a_pause_reach_the_host_from_the_control_plane(world: World, gitea: FakeGitea) -> None:
    _, unrelated = gitea.propose({"README.md": "x"}, head="words")
    _, reaching = gitea.propose({PROD_FILE: "x: 1\n"}, head="scale")
    await world.apply(gate("soak", "bundle.upstreamSoakMinutes >= 30", namespace=POLICIES), git_secret(gitea))
    await start_controller(world)
    await world.apply(asking(gitea))
    await world.live(SOON)
    assert gitea.told(unrelated) == OPEN
    state, description = gitea.told(reaching)
    assert state == "pending"
    assert description.startswith(f"{PROD}: gate soak: it decides about Bundles")
    await world.apply(gate("soak", "true", namespace=POLICIES))
    await world.live(SOON)
    assert gitea.told(reaching)[0] == "success"
    freeze = gate("my-app-freeze", "false", applies_to=None, labels={"kardinal.io/type": "freeze"}, message="incident")
    await world.apply(freeze)
    await world.live(SOON)
    state, description = gitea.told(reaching)
    assert state == "pending"
    assert re.fullmatch(f"{PROD}: .*freeze.*: incident", description)
    assert gitea.told(unrelated) == OPEN
