"""Files that hosts do not list are not known; commits of a merge queue are told apart from branches of people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kardinal.scm import MergeGroup, PullRequests
from tests.hosts.github_host import GitHubHost
from tests.hosts.gitlab_host import GitLabHost
from tests.hosts.host import patient


@pytest.fixture
async def gitlab(tmp_path: Path) -> AsyncIterator[GitLabHost]:
    host = GitLabHost(tmp_path / "gitlab")
    try:
        host.start()
        yield host
    finally:
        await host.close()


async def test_more_files_than_github_lists_are_not_known(github: GitHubHost, github_pulls: PullRequests) -> None:
    number, few = github.propose_from_fork({f"many/{n}.yaml": "x" for n in range(299)})
    _, many = github.propose_from_fork({f"many/{n}.yaml": "x" for n in range(300)})
    assert len(await github_pulls.changed_files(few, base="main", number=number) or ()) == 299
    assert await github_pulls.changed_files(many, base="main", number=number) is None


async def test_more_files_than_gitlab_compares_are_not_known(gitlab: GitLabHost) -> None:
    pulls = patient(await gitlab.connect())
    number, commit = gitlab.propose_from_fork({"a": "x", "b": "x"})
    assert set(await pulls.changed_files(commit, base="main", number=number) or ()) == {"a", "b"}
    gitlab.project.diff_limit = 1
    assert await pulls.changed_files(commit, base="main", number=number) is None


async def test_a_base_with_slashes_is_compared_with(github: GitHubHost, github_pulls: PullRequests) -> None:
    github.git("branch", "release/1.0", "main")
    number, commit = github.propose_from_fork({"a": "x"})
    assert await github_pulls.changed_files(commit, base="release/1.0", number=number) == ["a"]


async def test_the_commits_of_a_merge_queue_are_listed_with_their_pull_requests(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    tip = github.git("rev-parse", "main")
    git = github.project.git
    first = git.commit(f"gh-readonly-queue/main/pr-7-{tip}", {"a": "x"}, start="main")
    second = git.commit(f"gh-readonly-queue/release/1.0/pr-12-{tip}", {"b": "x"}, start="main")
    git.commit("gh-readonly-queue/main/pr-0-x", {"c": "x"}, start="main")
    git.commit("gh-readonly-queues", {"c": "x"}, start="main")
    assert list(await github_pulls.merge_groups()) == [
        MergeGroup(first, "main", 7),
        MergeGroup(second, "release/1.0", 12),
    ]
    before = github.server.remaining
    await github_pulls.merge_groups()
    # Asked again for nothing new, it costs nothing of the quota.
    assert github.server.remaining == before
