"""Every host lists the pull requests of others, says what a commit changes, and takes a status for it."""

from __future__ import annotations

import pytest

from kardinal.scm import CommitStatus, OpenHead, PullRequests
from tests.hosts.host import FILE, HEAD, Host, new_pull_request

PENDING = CommitStatus("kardinal", "pending", "prod: gate weekend: it is Sunday")
OPEN = CommitStatus("kardinal", "success", "every gate of prod is open")


@pytest.fixture(autouse=True)
def _at_a_host(host: Host) -> None:
    if not host.provider.capabilities.statuses:
        pytest.skip("this provider has no statuses")


async def test_pull_requests_of_strangers_are_listed_apart_from_those_of_the_repository(
    host: Host, pulls: PullRequests
) -> None:
    ours = host.propose()
    number = (await pulls.open(new_pull_request())).number
    foreign, theirs = host.propose_from_fork({"README.md": "words\n"}, head=HEAD)
    assert await pulls.heads() == [
        OpenHead(number, ours, HEAD, "main", own=True),
        OpenHead(foreign, theirs, HEAD, "main", own=False),
    ]
    await host.close_by_person(number)
    assert [head.number for head in await pulls.heads()] == [foreign]


async def test_a_commit_of_a_fork_says_its_files_and_takes_a_status_that_changes(
    host: Host, pulls: PullRequests
) -> None:
    number, commit = host.propose_from_fork({"README.md": "words\n", "environments/prod/ü b.yaml": "x: 1\n"})
    host.add_commit("main", "elsewhere/a.yaml", "x: 1\n")
    files = await pulls.changed_files(commit, base="main", number=number)
    assert files is not None
    assert set(files) == {"README.md", "environments/prod/ü b.yaml"}
    assert await pulls.set_status(commit, PENDING, urgent=False)
    assert not await pulls.set_status(commit, PENDING, urgent=False)
    assert await pulls.set_status(commit, OPEN, urgent=False)
    found = await pulls.statuses(commit)
    assert (found["kardinal"].state, found["kardinal"].description) == (OPEN.state, OPEN.description)


async def test_both_names_of_a_file_that_moves_are_said(host: Host, pulls: PullRequests) -> None:
    host.add_commit("main", FILE, "a long text that stays as it is\n" * 20)
    host.fetch()
    tip = host.git("rev-parse", "main")
    content = host.git("show", f"{tip}:{FILE}") + "\n"
    host.git("branch", "--force", "move", tip)
    host.git.commit({"moved/kustomization.yaml": content}, branch="move", parent=tip)
    host.publish("move")
    number = (await pulls.open(new_pull_request("move"))).number
    (head,) = await pulls.heads()
    files = await pulls.changed_files(head.commit, base="main", number=number)
    assert files is not None
    assert {FILE, "moved/kustomization.yaml"} <= set(files)


async def test_a_host_without_queues_has_no_groups(host: Host, pulls: PullRequests) -> None:
    assert list(await pulls.merge_groups()) == []
