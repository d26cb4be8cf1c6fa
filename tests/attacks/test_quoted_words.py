"""Words of a host in other places than the answer of an error: they are quoted by the same rule, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kardinal.git.addresses import HostAddresses
from kardinal.scm import AccessDenied, ConflictWithBase, HeadMoved, MergeBlocked, PullRequests, UnknownAnswer
from tests.hosts.fakes.faults import Fault
from tests.hosts.fakes.github import TOKEN
from tests.hosts.fakes.github_state import Removal
from tests.hosts.fakes.gitlab import TOKEN as ROBOT_TOKEN
from tests.hosts.github_fixtures import github, github_pulls, moment
from tests.hosts.github_host import GitHubHost, descriptions
from tests.hosts.gitlab_host import GitLabHost
from tests.hosts.host import new_pull_request
from tests.support.clock import VirtualClock

__all__ = ["descriptions", "github", "github_pulls", "moment"]

WORDS = "words of an internal service"


def hostile(token: str) -> str:
    """Return words with control characters and the token of kardinal, and too many of them."""
    return f"{WORDS}\x1b[31m\u202e\n{token} " + "x" * 900


@pytest.fixture(params=[True, False], ids=["public", "private"])
def public(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have the address of every host be one whose words may be passed on, or one that is private and not listed."""
    monkeypatch.setattr(HostAddresses, "check", lambda *_: request.param)
    found: bool = request.param
    return found


@pytest.fixture
async def gitlab(tmp_path: Path, moment: VirtualClock) -> AsyncIterator[GitLabHost]:
    """Yield a fake GitLab with the branch of a proposal."""
    made = GitLabHost(tmp_path, clock=moment)
    try:
        made.start()
        made.propose()
        yield made
    finally:
        await made.close()


def check(error: Exception, *, public: bool) -> None:
    """Assert that an error quotes by the rule."""
    text = str(error)
    assert (WORDS in text) is public
    assert text.isprintable()
    assert text.count("x") <= 202
    assert TOKEN not in text
    assert ROBOT_TOKEN not in text


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("", UnknownAnswer),
        ("Resource not accessible by personal access token: ", AccessDenied),
        ("Head branch was modified: ", HeadMoved),
    ],
)
async def test_an_error_of_graphql_is_quoted_by_the_rule_and_understood_anyway(
    github: GitHubHost, github_pulls: PullRequests, public: bool, said: str, kind: type[Exception]
) -> None:
    await github_pulls.open(new_pull_request())
    errors = {"errors": [{"message": f"{said}{hostile(TOKEN)}"}]}
    github.server.faults.append(Fault("POST", "/graphql", status=200, body=errors))
    with pytest.raises(kind) as raised:
        await github_pulls.merge(1, by="kardinal")
    check(raised.value, public=public)


async def test_a_host_without_queues_is_known_by_words_that_are_not_quoted(
    github: GitHubHost, github_pulls: PullRequests, public: bool
) -> None:
    await github_pulls.open(new_pull_request())
    errors = {"errors": [{"message": "Field 'mergeQueue' doesn't exist on type 'Repository'"}]}
    github.server.faults.append(Fault("POST", "/graphql", status=200, body=errors))
    assert (await github_pulls.merge(1, by="kardinal")).state == "merged"


async def test_reason_of_a_removal_from_the_queue_is_quoted_by_the_rule(
    github: GitHubHost, github_pulls: PullRequests, public: bool
) -> None:
    await github_pulls.open(new_pull_request())
    github.project.queues.add("main")
    github.project.pulls[1].removed = Removal(datetime(2100, 1, 1, tzinfo=UTC), hostile(TOKEN), "mallory\x1b[31m")
    with pytest.raises(MergeBlocked, match="was taken out of the merge queue of main") as raised:
        await github_pulls.merge(1, by="kardinal")
    check(raised.value, public=public)


async def test_reason_of_gitlab_not_to_merge_is_quoted_by_the_rule(gitlab: GitLabHost, public: bool) -> None:
    requests = await gitlab.connect(clock=gitlab.clock)
    await requests.open(new_pull_request())
    gitlab.project.required_statuses = {"ci"}
    gitlab.project.requests[1].merge_error = hostile(ROBOT_TOKEN)
    with pytest.raises(MergeBlocked, match="cannot be merged yet") as raised:
        await requests.merge(1, by="kardinal")
    check(raised.value, public=public)
    assert ("ci_must_pass" in str(raised.value)) is not public


async def test_reason_of_gitlab_not_to_rebase_is_quoted_by_the_rule(gitlab: GitLabHost, public: bool) -> None:
    requests = await gitlab.connect(clock=gitlab.clock)
    await requests.open(new_pull_request())
    gitlab.project.requests[1].merge_error = hostile(ROBOT_TOKEN)
    gitlab.server.faults.append(Fault("PUT", "/rebase$", "nothing"))
    with pytest.raises(ConflictWithBase, match="cannot be rebased") as raised:
        await requests.bring_up_to_date(1)
    check(raised.value, public=public)
