"""Pull requests that no promotion has opened get the status that a branch may require, and none makes it lie."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.api.names import branch_name
from kardinal.objects.conditions import format_time
from kardinal_agent.hosts import others
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.other_changes import answer, asking, patched
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    close_gate,
    create,
    deploy,
    open_gate,
    put_gate,
    reached,
    start_agent,
)
from tests.agent.sites import GitHubSite
from tests.support.fake_gitea import FakeGitea, Pull
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import environment, gate
from tests.support.programs import start_controller
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("pauses between looks at a host")

SOON = timedelta(seconds=20)
PROD_FILE = f"environments/{PROD}/kustomization.yaml"
GATE = f"my-app-1-{DEV}-soak"
OPEN = ("success", "it changes no environment")
WRITE = r"POST /statuses/\w+"


async def wake(world: World) -> None:
    """Have a host say that a pull request has come or changed."""
    await world.live(SOON)
    await patched(world, {"wokenAt": format_time(world.clock.now())})


async def asked(world: World, gitea: FakeGitea, *, held: str = "", **options: Any) -> None:
    """Have an agent serve a Pipeline that asks for statuses on others; changes to prod are `held`."""
    await start_agent(world, **options)
    await world.apply(git_secret(gitea), asking(gitea))
    await answer(world, **({PROD.replace("-", "_"): held} if held else {}))


async def test_an_unrelated_pull_request_is_success_and_one_that_reaches_prod_waits_for_its_gates(
    world: World, gitea: FakeGitea
) -> None:
    _, unrelated = gitea.propose({"README.md": "words\n"}, head="words")
    _, reaching = gitea.propose({PROD_FILE: "resources: []\n"}, head="scale")
    await asked(world, gitea, held="gate weekend: it is Sunday")
    assert gitea.told(unrelated) == OPEN
    assert gitea.told(reaching) == ("pending", f"{PROD}: gate weekend: it is Sunday")
    assert gitea.told(reaching, f"kardinal/my-app/{PROD}") == ("pending", f"{PROD}: gate weekend: it is Sunday")
    written = len(gitea.asked(WRITE))
    assert written == 3
    await world.live(SOON)
    await answer(world)
    assert gitea.told(reaching) == ("success", f"every gate of {PROD} is open")
    assert len(gitea.asked(WRITE)) == written + 2
    await world.live(timedelta(hours=1))
    assert len(gitea.asked(WRITE)) == written + 2


async def test_a_new_pull_request_is_told_at_once_when_the_host_says_so_and_else_by_the_poll(
    world: World, gitea: FakeGitea
) -> None:
    await asked(world, gitea)
    _, first = gitea.propose({"README.md": "1"}, head="first")
    await wake(world)
    assert gitea.told(first) == OPEN
    _, second = gitea.propose({"README.md": "2"}, head="second")
    await world.live(timedelta(minutes=5, seconds=1))
    assert gitea.told(second) == OPEN


async def test_many_wakes_cost_one_list_in_fifteen_seconds(world: World, gitea: FakeGitea) -> None:
    await asked(world, gitea)
    await world.live(SOON)
    gitea.requests.clear()
    for second in range(12):
        await patched(world, {"wokenAt": format_time(world.clock.now() + timedelta(milliseconds=second))})
        await world.live(timedelta(seconds=5))
    assert 2 <= len(gitea.requests) <= 5
    assert {(one.method, one.path) for one in gitea.requests} == {("GET", "/pulls")}


async def test_many_pull_requests_are_told_little_by_little_newest_first_and_once(
    world: World, gitea: FakeGitea, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(others, "WORK", 20)
    commits = [f"{number:040x}" for number in range(1, 61)]
    now = world.clock.now()
    for number, commit in enumerate(commits, start=1):
        gitea.pulls[number] = Pull(number, "t", "", "fix", "main", commit, now, fork=True)
        gitea.listed[commit] = ["README.md"]
    await asked(world, gitea)
    # Ten of them, with three requests for each, and the list; beside them what RepositoryReady asks.
    assert len([one for one in gitea.requests if one.path not in ("", "/pulls/0", "/branches/main")]) == 31
    assert [gitea.told(commit)[0] for commit in commits[-11:]] == ["", *["success"] * 10]
    await world.live(timedelta(minutes=6))
    assert {gitea.told(commit) for commit in commits} == {OPEN}
    assert len(gitea.asked(WRITE)) == 60
    await world.live(timedelta(minutes=5))
    gitea.requests.clear()
    await world.live(timedelta(hours=1))
    assert {one.path for one in gitea.requests} == {"/pulls"}
    assert len(gitea.requests) <= 12


async def test_a_pull_request_that_elsewhere_leads_cannot_call_the_head_of_a_proposal_success(
    world: World, gitea: FakeGitea
) -> None:
    await asked(world, gitea)
    await deploy(world)
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    await create(world, hosted_step(gitea, requiredGates=[GATE]))
    await reached(world, "WaitingForMerge")
    await close_gate(world, GATE, reason="error rate 5%")
    await world.settle()
    branch = branch_name(TEAM, BUNDLE_NAME, DEV)
    ours = gitea.repository.head(branch)
    assert gitea.told(ours)[0] == "pending"
    gitea.requests.clear()
    # From a fork, with the very commit of the proposal, to a branch that no environment is on; and under our name.
    for number, base in ((2, "elsewhere"), (3, "main")):
        gitea.pulls[number] = Pull(number, "t", "", branch, base, ours, world.clock.now(), fork=True)
    await wake(world)
    assert gitea.told(ours)[0] == "pending"
    # Not for a moment, in which it could be merged.
    assert gitea.asked(f"POST /statuses/{ours}") == []
    _, forged = gitea.propose({PROD_FILE: "x: 1\n"}, head=branch, fork=True)
    await answer(world, **{PROD.replace("-", "_"): "gate soak: it decides about Bundles"})
    await wake(world)
    assert gitea.told(forged)[0] == "pending"


async def test_a_commit_that_two_pull_requests_propose_has_one_answer_for_both(world: World, gitea: FakeGitea) -> None:
    gitea.repository.git("branch", "elsewhere", "main")
    gitea.repository.commit({PROD_FILE: "x: 1\n"}, branch="elsewhere")
    _, commit = gitea.propose({"README.md": "words\n"}, head="scale", base="elsewhere")
    gitea.pulls[2] = Pull(2, "t", "", "scale", "main", commit, world.clock.now(), fork=True)
    await asked(world, gitea, held="gate weekend: it is Sunday")
    assert gitea.told(commit)[0] == "pending"
    gitea.close(2)
    await wake(world)
    assert gitea.told(commit) == OPEN


async def test_a_pull_request_to_a_branch_without_environments_is_told_as_if_it_went_to_theirs(
    world: World, gitea: FakeGitea
) -> None:
    gitea.repository.git("branch", "feature", "main")
    number, reaching = gitea.propose({PROD_FILE: "x: 1\n"}, head="scale", base="feature")
    _, unrelated = gitea.propose({"README.md": "words\n"}, head="words", base="feature")
    await asked(world, gitea, held="gate weekend: it is Sunday")
    assert gitea.told(reaching)[0] == "pending"
    assert gitea.told(unrelated) == OPEN
    # Its author sends it to the branch of prod, and merges at once.
    gitea.pulls[number].base = "main"
    assert gitea.told(reaching)[0] == "pending"


@pytest.mark.parametrize("site", ["github"], indirect=True)
async def test_what_the_base_of_a_pull_request_has_of_changes_to_an_environment_counts_as_well(
    world: World, site: GitHubSite
) -> None:
    for branch, files in (("feature", {PROD_FILE: "x: 1\n"}), ("words", {"README.md": "words\n"})):
        site.repository.git("branch", branch, "main" if branch == "feature" else "feature")
        site.repository.commit(files, branch=branch)
    number = site.project.open(head="words", base="feature", title="Words", by="mallory").number
    await start_agent(world)
    await world.apply(git_secret(site), asking(site))
    await answer(world, **{PROD.replace("-", "_"): "gate weekend: it is Sunday"})
    assert site.status(number, "kardinal") == ("pending", f"{PROD}: gate weekend: it is Sunday")


async def test_a_change_of_what_environments_include_reaches_them(world: World, gitea: FakeGitea) -> None:
    _, base = gitea.propose({"base/deployment.yaml": "{}\n"}, head="base")
    await asked(world, gitea, held="gate weekend: it is Sunday")
    assert gitea.told(base) == ("pending", f"{PROD}: gate weekend: it is Sunday")


async def test_a_base_that_cannot_be_read_counts_as_taking_in_anything(world: World, gitea: FakeGitea) -> None:
    gitea.repository.commit({"base/kustomization.yaml": "resources: [\n"})
    _, anything = gitea.propose({"README.md": "words\n"}, head="words")
    await asked(world, gitea, held="gate weekend: it is Sunday")
    assert gitea.told(anything)[0] == "pending"
    await world.live(SOON)
    gitea.repository.commit({"base/kustomization.yaml": "resources: []\n"})
    await wake(world)
    assert gitea.told(anything) == OPEN


async def test_files_of_another_commit_than_the_listed_one_count_as_all(world: World, gitea: FakeGitea) -> None:
    _, commit = gitea.propose({PROD_FILE: "x: 1\n"}, head="scale")
    other = gitea.repository.head("main")
    # Between the list and the question for the files the branch moved to something harmless, and back.
    files = [{"filename": "README.md", "contents_url": f"https://host/contents/README.md?ref={other}"}]
    gitea.outage = lambda request: (200, files) if request.path.endswith("/files") else None
    await asked(world, gitea, held="gate weekend: it is Sunday")
    state, description = gitea.told(commit)
    assert state == "pending"
    assert description.startswith("the host does not list all changed files")


async def test_names_of_files_are_compared_by_segments_however_they_are_written(world: World, gitea: FakeGitea) -> None:
    _, beside = gitea.propose({f"environments/{PROD}-old/a.yaml": "x"}, head="beside")
    _, instead = gitea.propose({"README.md": "x"}, head="instead")
    gitea.listed[instead] = ["a/" * 2000 + "b", "environments", "\u202e", "../../etc"]
    await asked(world, gitea, held="gate weekend: it is Sunday")
    assert gitea.told(beside) == OPEN
    # A file in the place of the directory above is a change of all below it.
    assert gitea.told(instead)[0] == "pending"


async def test_nothing_is_told_while_the_gates_are_not_asked_for_this_version_or_their_time_is_over(
    world: World, gitea: FakeGitea
) -> None:
    _, commit = gitea.propose({PROD_FILE: "x: 1\n"}, head="scale")
    await start_agent(world)
    await world.apply(git_secret(gitea), asking(gitea))
    await world.live(SOON)
    assert gitea.told(commit) == ("", "")
    await answer(world, until=format_time(world.clock.now() - timedelta(seconds=1)))
    await world.live(SOON)
    assert gitea.told(commit) == ("", "")
    await patched(world, {"otherChanges": {"until": None}})
    await world.live(SOON)
    assert gitea.told(commit)[0] == "success"
    changed = asking(gitea, environments=[environment(PROD, path="elsewhere")])
    await world.apply(changed)
    _, later = gitea.propose({"elsewhere/a.yaml": "x"}, head="later")
    await wake(world)
    assert gitea.told(later) == ("", "")


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


async def test_a_pull_request_that_fails_keeps_none_of_the_others_from_an_answer(
    world: World, gitea: FakeGitea
) -> None:
    _, good = gitea.propose({"README.md": "x"}, head="words")
    bad = [gitea.propose({PROD_FILE: f"x: {n}\n"}, head=f"bad-{n}", fork=True)[1] for n in range(5)]

    def broken(request: Any) -> Any:
        number = request.path.removeprefix("/pulls/").removesuffix("/files")
        if number.isdecimal() and int(number) > 1:
            return 500, {"message": "diff too large"}
        return (404, {"message": "not found"}) if request.path.removeprefix("/statuses/") == bad[0] else None

    gitea.outage = broken
    await asked(world, gitea, held="gate weekend: it is Sunday")
    assert gitea.told(good) == OPEN
    await world.live(timedelta(minutes=4))
    assert gitea.told(bad[1])[1].startswith("the host does not list all changed files")
    assert gitea.told(bad[0]) == ("", "")
    gitea.requests.clear()
    await world.live(timedelta(minutes=5))
    assert gitea.asked(r"GET /pulls/[2-5]/files") == []
    assert len(gitea.requests) <= 20


async def test_an_agent_that_comes_back_writes_nothing_that_is_there(world: World, gitea: FakeGitea) -> None:
    gitea.propose({"README.md": "x"}, head="words")
    gitea.propose({PROD_FILE: "x: 1\n"}, head="scale")
    agent = await start_agent(world)
    await world.apply(git_secret(gitea), asking(gitea))
    await answer(world)
    assert len(gitea.asked(WRITE)) == 3
    await world.stop(agent)
    await start_agent(world)
    await world.live(SOON)
    assert len(gitea.asked("GET /pulls")) == 2
    assert len(gitea.asked(WRITE)) == 3


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
    assert gitea.told(reaching) == ("pending", f"{PROD}: held by a freeze of my-app: incident")
    assert gitea.told(unrelated) == OPEN
