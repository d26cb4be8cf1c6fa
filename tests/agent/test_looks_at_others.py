"""One look at the pull requests of others: which get the status, and none makes it lie."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.names import branch_name
from kardinal_agent.hosts import others
from tests.agent.looks import Looks, answered, looking
from tests.agent.other_changes import asking
from tests.agent.sites import GitHubSite
from tests.support.clock import VirtualClock
from tests.support.fake_gitea import FakeGitea, Pull
from tests.support.names import DEV, PROD, TEAM

PROD_FILE = f"environments/{PROD}/kustomization.yaml"
OPEN = ("success", "it changes no environment")
WRITE = r"POST /statuses/\w+"
WEEKEND = {PROD: "gate weekend: it is Sunday"}
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def looks(gitea: FakeGitea, clock: VirtualClock, tmp_path: Path) -> AsyncIterator[Looks]:
    async with looking(gitea, tmp_path / "looks", clock=clock) as found:
        yield found


async def test_many_pull_requests_are_told_little_by_little_newest_first_and_once(
    looks: Looks, gitea: FakeGitea, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(others, "WORK", 20)
    commits = [f"{number:040x}" for number in range(1, 61)]
    for number, commit in enumerate(commits, start=1):
        gitea.pulls[number] = Pull(number, "t", "", "fix", "main", commit, clock.now(), fork=True)
        gitea.listed[commit] = ["README.md"]
    assert await looks.look()
    # Ten of them, with three requests for each, and the list.
    assert len(gitea.requests) == 31
    assert [gitea.told(commit)[0] for commit in commits[-11:]] == ["", *["success"] * 10]
    while await looks.look(after=MINUTE):
        pass
    assert {gitea.told(commit) for commit in commits} == {OPEN}
    assert len(gitea.asked(WRITE)) == 60
    gitea.requests.clear()
    assert not await looks.look(after=timedelta(hours=1))
    assert [one.path for one in gitea.requests] == ["/pulls"]


async def test_a_pull_request_that_elsewhere_leads_cannot_call_the_head_of_a_proposal_success(
    looks: Looks, gitea: FakeGitea, clock: VirtualClock
) -> None:
    branch = branch_name(TEAM, "my-app-1", DEV)
    _, ours = gitea.propose({f"environments/{DEV}/kustomization.yaml": "x: 1\n"}, head=branch)
    gitea.statuses[ours] = {"kardinal": {"context": "kardinal", "state": "pending"}}
    await looks.look()
    # From a fork, with the very commit of the proposal, to a branch that no environment is on; and under our name.
    for number, base in ((2, "elsewhere"), (3, "main")):
        gitea.pulls[number] = Pull(number, "t", "", branch, base, ours, clock.now(), fork=True)
    await looks.look()
    assert gitea.told(ours)[0] == "pending"
    # Not for a moment, in which it could be merged.
    assert gitea.asked(f"POST /statuses/{ours}") == []
    _, forged = gitea.propose({PROD_FILE: "x: 1\n"}, head=branch, fork=True)
    await looks.look({PROD: "gate soak: it decides about Bundles"})
    assert gitea.told(forged)[0] == "pending"


async def test_a_commit_that_two_pull_requests_propose_has_one_answer_for_both(
    looks: Looks, gitea: FakeGitea, clock: VirtualClock
) -> None:
    gitea.repository.git("branch", "elsewhere", "main")
    gitea.repository.commit({PROD_FILE: "x: 1\n"}, branch="elsewhere")
    _, commit = gitea.propose({"README.md": "words\n"}, head="scale", base="elsewhere")
    gitea.pulls[2] = Pull(2, "t", "", "scale", "main", commit, clock.now(), fork=True)
    await looks.look(WEEKEND)
    assert gitea.told(commit)[0] == "pending"
    gitea.close(2)
    await looks.look(WEEKEND)
    assert gitea.told(commit) == OPEN


async def test_a_pull_request_to_a_branch_without_environments_is_told_as_if_it_went_to_theirs(
    looks: Looks, gitea: FakeGitea
) -> None:
    gitea.repository.git("branch", "feature", "main")
    _, reaching = gitea.propose({PROD_FILE: "x: 1\n"}, head="scale", base="feature")
    _, unrelated = gitea.propose({"README.md": "words\n"}, head="words", base="feature")
    await looks.look(WEEKEND)
    # Its author may send it to the branch of prod, and merge at once.
    assert gitea.told(reaching)[0] == "pending"
    assert gitea.told(unrelated) == OPEN


@pytest.mark.parametrize("site", ["github"], indirect=True)
async def test_changes_of_the_base_to_an_environment_count(
    site: GitHubSite, clock: VirtualClock, tmp_path: Path
) -> None:
    for branch, files in (("feature", {PROD_FILE: "x: 1\n"}), ("words", {"README.md": "words\n"})):
        site.repository.git("branch", branch, "main" if branch == "feature" else "feature")
        site.repository.commit(files, branch=branch)
    number = site.project.open(head="words", base="feature", title="Words", by="mallory").number
    async with looking(site, tmp_path / "looks", clock=clock) as looks:
        await looks.look(WEEKEND)
    assert site.status(number, "kardinal") == ("pending", f"{PROD}: gate weekend: it is Sunday")


async def test_a_change_of_what_environments_include_reaches_them(looks: Looks, gitea: FakeGitea) -> None:
    _, base = gitea.propose({"base/deployment.yaml": "{}\n"}, head="base")
    await looks.look(WEEKEND)
    assert gitea.told(base) == ("pending", f"{PROD}: gate weekend: it is Sunday")


async def test_a_base_that_cannot_be_read_counts_as_taking_in_anything(looks: Looks, gitea: FakeGitea) -> None:
    gitea.repository.commit({"base/kustomization.yaml": "resources: [\n"})
    _, anything = gitea.propose({"README.md": "words\n"}, head="words")
    await looks.look(WEEKEND)
    assert gitea.told(anything)[0] == "pending"
    gitea.repository.commit({"base/kustomization.yaml": "resources: []\n"})
    await looks.look(WEEKEND, after=MINUTE)
    assert gitea.told(anything) == OPEN


async def test_files_of_another_commit_than_the_listed_one_count_as_all(looks: Looks, gitea: FakeGitea) -> None:
    _, commit = gitea.propose({PROD_FILE: "x: 1\n"}, head="scale")
    other = gitea.repository.head("main")
    # Between the list and the question for the files the branch moved to something harmless, and back.
    files = [{"filename": "README.md", "contents_url": f"https://host/contents/README.md?ref={other}"}]
    gitea.outage = lambda request: (200, files) if request.path.endswith("/files") else None
    await looks.look(WEEKEND)
    state, description = gitea.told(commit)
    assert state == "pending"
    assert description.startswith("the host does not list all changed files")


async def test_names_of_files_are_compared_by_segments_however_they_are_written(looks: Looks, gitea: FakeGitea) -> None:
    _, beside = gitea.propose({f"environments/{PROD}-old/a.yaml": "x"}, head="beside")
    _, instead = gitea.propose({"README.md": "x"}, head="instead")
    gitea.listed[instead] = ["a/" * 2000 + "b", "environments", "\u202e", "../../etc"]
    await looks.look(WEEKEND)
    assert gitea.told(beside) == OPEN
    # A file in the place of the directory above is a change of all below it.
    assert gitea.told(instead)[0] == "pending"


async def test_a_pull_request_that_fails_keeps_none_of_the_others_from_an_answer(
    looks: Looks, gitea: FakeGitea
) -> None:
    _, good = gitea.propose({"README.md": "x"}, head="words")
    bad = [gitea.propose({PROD_FILE: f"x: {n}\n"}, head=f"bad-{n}", fork=True)[1] for n in range(5)]

    def broken(request: Any) -> Any:
        number = request.path.removeprefix("/pulls/").removesuffix("/files")
        if number.isdecimal() and int(number) > 1:
            return 500, {"message": "diff too large"}
        return (404, {"message": "not found"}) if request.path.removeprefix("/statuses/") == bad[0] else None

    gitea.outage = broken
    assert await looks.look(WEEKEND)
    assert gitea.told(good) == OPEN
    for _ in range(4):
        await looks.look(WEEKEND, after=MINUTE)
    assert "all changed files" in gitea.told(bad[1])[1]
    assert gitea.told(bad[0]) == ("", "")
    gitea.requests.clear()
    for _ in range(5):
        await looks.look(WEEKEND, after=MINUTE)
    assert gitea.asked(r"GET /pulls/[2-5]/files") == []
    assert len(gitea.requests) <= 20


NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("until", "generation", "known"),
    [
        (None, 1, True),
        (NOW + timedelta(seconds=1), 1, True),
        (NOW, 1, False),
        (NOW - timedelta(seconds=1), 1, False),
        (None, 2, False),
    ],
    ids=["any time", "still", "over", "long over", "of another version"],
)
def test_an_answer_of_the_gates_counts_for_its_version_and_until_its_time_is_over(
    gitea: FakeGitea, *, until: datetime | None, generation: int, known: bool
) -> None:
    made = answered(asking(gitea), now=NOW, until=until, held=WEEKEND)
    made["metadata"]["generation"] = generation
    asked = Pipeline.model_validate(made)
    found = others.answers([asked], now=NOW)
    assert (found is not None) == known
    if found is not None:
        assert list(found.values()) == [(f"{PROD}: gate weekend: it is Sunday",)]
    unanswered = Pipeline.model_validate(asking(gitea, "other"))
    assert others.answers([asked, unanswered], now=NOW) is None
