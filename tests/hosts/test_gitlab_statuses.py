"""A status at GitLab stands in the pipeline that its merge request asks, and replaces none that has failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kardinal.scm import CommitStatus, PullRequests
from tests.hosts.gitlab_host import GitLabHost
from tests.hosts.host import HEAD, new_pull_request, patient

CONTEXT = "kardinal/shop/prod"
PENDING = CommitStatus(CONTEXT, "pending", "gate business-hours is closed")
SUCCESS = CommitStatus(CONTEXT, "success", "every gate is open")


@pytest.fixture
async def gitlab(tmp_path: Path) -> AsyncIterator[GitLabHost]:
    host = GitLabHost(tmp_path / "gitlab")
    try:
        host.start()
        host.propose()
        yield host
    finally:
        await host.close()


@pytest.fixture
async def requests(gitlab: GitLabHost) -> PullRequests:
    return patient(await gitlab.connect())


def sent(gitlab: GitLabHost) -> list[tuple[object, object]]:
    """Return `pipeline_id` and `ref` of every status that was written."""
    return [(one.body.get("pipeline_id"), one.body.get("ref")) for one in gitlab.server.requests("POST", "/statuses/")]


async def test_a_status_stands_in_the_head_pipeline_of_its_merge_request(
    gitlab: GitLabHost, requests: PullRequests
) -> None:
    opened = await requests.open(new_pull_request())
    assert opened.head_commit is not None
    own = gitlab.project.run(opened.head_commit, f"refs/merge-requests/{opened.number}/head")
    gitlab.project.run(opened.head_commit, HEAD)
    assert await requests.set_status(opened.head_commit, PENDING)
    assert await requests.set_status(opened.head_commit, SUCCESS)
    assert sent(gitlab) == [(own.identifier, own.ref)] * 2
    assert [one.pipeline for one in gitlab.project.statuses[opened.head_commit]] == [own.identifier]
    assert len(gitlab.project.pipelines) == 2


async def test_without_a_pipeline_a_status_is_of_the_branch(gitlab: GitLabHost, requests: PullRequests) -> None:
    opened = await requests.open(new_pull_request())
    assert opened.head_commit is not None
    gitlab.git("branch", "another-of-this-commit", opened.head_commit)
    assert await requests.set_status(opened.head_commit, PENDING)
    assert sent(gitlab) == [(None, HEAD)]
    assert [one.ref for one in gitlab.project.pipelines] == [HEAD]


async def test_a_status_of_an_earlier_pipeline_is_written_to_the_one_that_counts(
    gitlab: GitLabHost, requests: PullRequests
) -> None:
    opened = await requests.open(new_pull_request())
    assert opened.head_commit is not None
    assert await requests.set_status(opened.head_commit, SUCCESS)
    own = gitlab.project.run(opened.head_commit, f"refs/merge-requests/{opened.number}/head")
    assert await requests.set_status(opened.head_commit, SUCCESS)
    assert not await requests.set_status(opened.head_commit, SUCCESS)
    assert sent(gitlab)[1:] == [(own.identifier, own.ref)]


async def test_a_pipeline_of_another_commit_or_project_gets_no_status(
    gitlab: GitLabHost, requests: PullRequests
) -> None:
    opened = await requests.open(new_pull_request())
    assert opened.head_commit is not None
    # Of merged results: GitLab tests a commit of its own.
    gitlab.project.run(gitlab.tip("main"), f"refs/merge-requests/{opened.number}/merge")
    assert await requests.set_status(opened.head_commit, PENDING)
    number, commit = gitlab.propose_from_fork({"a": "x"}, head="theirs")
    gitlab.project.run(commit, "theirs", project=99)
    assert await requests.set_status(commit, PENDING)
    assert sent(gitlab) == [(None, HEAD), (None, None)]
    assert number == 2


async def test_a_commit_without_a_merge_request_gets_its_status(gitlab: GitLabHost, requests: PullRequests) -> None:
    assert await requests.set_status(gitlab.tip(HEAD), PENDING)
    assert sent(gitlab) == [(None, None)]


async def test_a_pipeline_that_is_deleted_meanwhile_is_looked_for_again(
    gitlab: GitLabHost, requests: PullRequests
) -> None:
    opened = await requests.open(new_pull_request())
    assert opened.head_commit is not None
    gitlab.project.run(opened.head_commit, HEAD, project=7)
    shown = gitlab.project.pipelines.pop()
    gitlab.project.head_pipeline = lambda request: shown if not sent(gitlab) else None  # type: ignore[method-assign, unused-ignore]
    assert await requests.set_status(opened.head_commit, PENDING)
    assert sent(gitlab) == [(shown.identifier, HEAD), (None, HEAD)]
