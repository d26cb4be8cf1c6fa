"""Every provider keeps what promotion relies on: proposals, comments, and their ends."""

from __future__ import annotations

import pytest

from kardinal.git import MergeConflict
from kardinal.scm import HeadMoved, MergeBlocked, MergeMethod, PullRequestEnded, PullRequests
from kardinal.tree.commit_message import CommitMessage, parse_trailers
from tests.hosts.host import FILE, HEAD, Host, new_pull_request, patient


async def test_a_proposal_is_opened_once_and_shown_as_it_was_written(host: Host, pulls: PullRequests) -> None:
    commit = host.propose()
    new = new_pull_request()
    opened = await pulls.open(new)
    assert (opened.state, opened.title, opened.body) == ("open", new.title, new.body)
    assert (opened.head, opened.base, opened.head_commit) == (HEAD, "main", commit)
    assert opened.labels == ("kardinal",)
    assert (opened.merge_commit, opened.merged_by, opened.merged_at) == (None, None, None)
    shown = await pulls.get(opened.number)
    assert (shown.number, shown.url, shown.created_at) == (opened.number, opened.url, opened.created_at)


async def test_a_program_that_comes_back_adopts_the_open_pull_request_of_its_branch(
    host: Host, pulls: PullRequests
) -> None:
    host.propose()
    opened = await pulls.open(new_pull_request())
    again = await patient(await host.connect()).open(new_pull_request())
    assert (again.number, again.created_at) == (opened.number, opened.created_at)
    assert [one.number for one in await pulls.list("open")] == [opened.number]


async def test_the_newest_pull_request_of_a_branch_is_found_in_whatever_state(host: Host, pulls: PullRequests) -> None:
    assert await pulls.find(HEAD, base="main") is None
    host.propose()
    numbers = []
    for _ in range(3):
        numbers.append((await pulls.open(new_pull_request())).number)
        found = await pulls.find(HEAD, base="main")
        assert found is not None
        assert (found.number, found.state) == (numbers[-1], "open")
        await host.close_by_person(numbers[-1])
    found = await pulls.find(HEAD, base="main")
    assert found is not None
    assert (found.number, found.state) == (max(numbers), "closed")
    assert await pulls.find(HEAD, base="release") is None
    assert await pulls.find("kardinal/app-1", base="main") is None


async def test_open_pull_requests_are_listed_without_those_that_ended(host: Host, pulls: PullRequests) -> None:
    numbers = {}
    for environment in ("dev", "staging", "prod"):
        head = f"kardinal/app-1/{environment}"
        host.propose(head, content=f"{environment}\n")
        numbers[environment] = (await pulls.open(new_pull_request(head))).number
    await host.close_by_person(numbers["dev"])
    await host.merge(numbers["staging"], None)
    assert [one.number for one in await pulls.list("open")] == [numbers["prod"]]
    assert [one.number for one in await pulls.list("closed")] == [numbers["dev"]]
    assert [one.number for one in await pulls.list("merged")] == [numbers["staging"]]
    assert [one.number for one in await pulls.list()] == sorted(numbers.values())


async def test_an_update_changes_what_is_given_and_nothing_else(host: Host, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request(labels=("kardinal", "kardinal/promotion")))).number
    updated = await pulls.update(number, title="Promote app 1.3.0 to prod")
    assert (updated.title, updated.body) == ("Promote app 1.3.0 to prod", "| a | table |")
    updated = await pulls.update(number, body="| another | table |\n\nNaïve “text” ✓")
    assert (updated.title, updated.body) == ("Promote app 1.3.0 to prod", "| another | table |\n\nNaïve “text” ✓")
    updated = await pulls.update(number, labels=("kardinal", "kardinal/rollback"))
    assert set(updated.labels) == {"kardinal", "kardinal/rollback"}
    assert await pulls.get(number) == updated


async def test_a_comment_is_written_once_and_edited_from_then_on(host: Host, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    await pulls.comment(number, "1 gate is closed", marker="progress")
    await patient(await host.connect()).comment(number, "all gates are open", marker="progress")
    await pulls.comment(number, "all gates are open", marker="progress")
    await pulls.comment(number, "something else", marker="notice")
    texts = await host.comments(number)
    assert len(texts) == 2
    assert texts[0].startswith("all gates are open")
    assert texts[1].startswith("something else")


async def test_the_person_who_closed_a_pull_request_is_named(host: Host, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    assert await pulls.closed_by(number) is None
    await host.close_by_person(number)
    name = await pulls.closed_by(number)
    assert name is not None
    assert name.startswith("alice")


async def test_closing_says_why_and_a_second_time_changes_nothing(host: Host, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    for _ in range(2):
        closed = await pulls.close(number, by="kardinal", comment="A newer Bundle supersedes app-1.")
        assert (closed.state, closed.merge_commit) == ("closed", None)
    texts = await host.comments(number)
    assert len(texts) == 1
    assert texts[0].startswith("A newer Bundle supersedes app-1.")
    with pytest.raises(PullRequestEnded, match="closed"):
        await pulls.merge(number, by="kardinal")
    assert host.content("main") == "# prod\nimages: []"


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_merge_by_a_person_is_read_with_the_commit_that_landed(
    host: Host, pulls: PullRequests, method: MergeMethod
) -> None:
    if host.merge_methods and method not in host.merge_methods:
        pytest.skip("the settings of this repository do not allow it")
    proposed = host.propose()
    host.add_commit("main", "README.md", "others went on\n")
    number = (await pulls.open(new_pull_request())).number
    await host.merge(number, method)
    merged = await pulls.get(number)
    assert merged.state == "merged"
    assert merged.merge_commit == host.landed(method)
    assert merged.merge_commit != proposed
    assert host.content("main") == "v2"
    assert host.content("main", "README.md") == "others went on"
    assert merged.merged_by is not None
    assert merged.merged_by.startswith("alice")
    assert merged.merged_at is not None
    assert merged.merged_at >= merged.created_at


async def test_kardinal_merges_once_with_the_head_that_it_looked_at(host: Host, pulls: PullRequests) -> None:
    proposed = host.propose()
    opened = await pulls.open(new_pull_request())
    merged = await pulls.merge(opened.number, by="kardinal", expected_head=opened.head_commit)
    assert (merged.state, merged.merge_commit) == ("merged", host.tip("main"))
    assert host.content("main") == "v2"
    assert host.git("merge-base", "--is-ancestor", proposed, "main") == ""
    again = await pulls.merge(opened.number, by="kardinal", expected_head=opened.head_commit)
    assert (again.merge_commit, again.merged_at) == (merged.merge_commit, merged.merged_at)
    with pytest.raises(PullRequestEnded, match="merged"):
        await pulls.close(opened.number, by="kardinal", comment="")


async def test_every_method_of_the_provider_merges(host: Host, pulls: PullRequests) -> None:
    for method in sorted(host.merge_methods):
        head = f"kardinal/app-1/{method}"
        host.propose(head, content=f"{method}\n")
        number = (await pulls.open(new_pull_request(head))).number
        host.add_commit("main", "README.md", f"before {method}\n")
        merged = await pulls.merge(number, by="kardinal", method=method)
        assert merged.merge_commit == host.landed(method)
        assert host.content("main") == method
        assert host.content("main", "README.md") == f"before {method}"
        parents = host.git("show", "-s", "--format=%P", merged.merge_commit or "").split()
        assert len(parents) == (2 if method == "merge" else 1)


async def test_a_head_that_moved_is_not_merged(host: Host, pulls: PullRequests) -> None:
    host.propose()
    opened = await pulls.open(new_pull_request())
    added = host.add_commit(HEAD, "NOTES", "a reviewer's\n")
    before = host.tip("main")
    with pytest.raises(HeadMoved) as moved:
        await pulls.merge(opened.number, by="kardinal", expected_head=opened.head_commit)
    assert moved.value.transient
    assert host.tip("main") == before
    shown = await pulls.get(opened.number)
    assert (shown.state, shown.head_commit) == ("open", added)


async def test_a_draft_is_told_apart_and_the_host_merges_none(host: Host, pulls: PullRequests) -> None:
    host.propose()
    opened = await pulls.open(new_pull_request())
    assert not opened.draft
    await host.make_draft(opened.number)
    assert (await pulls.get(opened.number)).draft
    before = host.tip("main")
    with pytest.raises(MergeBlocked):
        await (await host.connect()).merge(opened.number, by="kardinal")
    assert host.tip("main") == before


async def test_a_conflict_with_the_base_merges_nothing(host: Host, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    before = host.add_commit("main", FILE, "mine\n")
    # A host that compares the branches in the background answers that it cannot say yet.
    with pytest.raises((MergeConflict, MergeBlocked)):
        await (await host.connect()).merge(number, by="kardinal")
    assert host.tip("main") == before
    assert (await pulls.get(number)).state == "open"


async def test_a_branch_that_is_deleted_leaves_a_pull_request_that_can_be_read(host: Host, pulls: PullRequests) -> None:
    proposed = host.propose()
    number = (await pulls.open(new_pull_request())).number
    host.delete_branch(HEAD)
    shown = await pulls.get(number)
    assert (shown.head, shown.head_commit, shown.merge_commit) == (HEAD, proposed, None)
    assert shown.state in ("open", "closed")
    found = await pulls.find(HEAD, base="main")
    assert found is not None
    assert found.number == number


async def test_access_tells_what_the_credential_may_do(host: Host, pulls: PullRequests) -> None:
    access = await pulls.access()
    assert (access.read, access.push, access.archived) == (True, True, False)
    assert access.merge_methods == host.merge_methods
    assert (access.pull_requests, access.lacks) == (True, ())


async def test_nothing_is_missing_with_the_permissions_of_the_guide_and_asking_changes_nothing(
    host: Host, pulls: PullRequests
) -> None:
    before = host.tip("main")
    access = await pulls.access(("pull-requests", "statuses"))
    assert (access.pull_requests, access.lacks) == (True, ())
    assert (await pulls.branch_access("main")).push is not False
    assert (await pulls.branch_access("environments/not-there")).push in (None, True)
    assert await pulls.list() == []
    assert host.tip("main") == before


async def test_a_squash_has_the_message_that_is_given_with_its_trailers(host: Host, pulls: PullRequests) -> None:
    if "squash" not in host.merge_methods:
        pytest.skip("the provider has no squash")
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    message = CommitMessage("Promote app 1.2.0 to prod", "Why: a test", {"Kardinal-Bundle": "app-1"})
    merged = await pulls.merge(number, by="kardinal", method="squash", message=message)
    host.fetch()
    text = host.git("show", "-s", "--format=%B", merged.merge_commit or "main")
    assert text.startswith("Promote app 1.2.0 to prod")
    assert "Why: a test" in text
    assert parse_trailers(text)["Kardinal-Bundle"] == "app-1"
