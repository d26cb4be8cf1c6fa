"""Pull requests kept in the bare repository itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kardinal.git import GitRunner, MergeConflict, Repositories, Repository
from kardinal.scm import (
    NewPullRequest,
    PullRequestEnded,
    PullRequestError,
    PullRequestNotFound,
    PullRequests,
    UnsupportedProvider,
    local_pull_requests,
)
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.edit import Tree
from tests.git.conftest import Git, manifests, until
from tests.support.clock import VirtualClock


@pytest.fixture
def pulls(repository: Repository, clock: VirtualClock) -> PullRequests:
    return local_pull_requests(repository, clock=clock)


async def propose(repository: Repository, environment: str = "prod", content: bytes = b"v2\n") -> NewPullRequest:
    def edit(tree: Tree) -> dict[str, bytes]:
        return {f"environments/{environment}/kustomization.yaml": content}

    head = f"kardinal/app-1/{environment}"
    trailers = {"Kardinal-Bundle": "app-1", "Kardinal-Environment": environment}
    await repository.propose(
        head, base="main", edit=edit, message=CommitMessage(f"promote to {environment}", "", trailers)
    )
    return NewPullRequest(
        title=f"Promote to {environment}",
        body="| a | table |",
        head=head,
        base="main",
        labels=("kardinal",),
        environment=environment,
        bundle="app-1",
        pipeline="app",
    )


async def test_a_pull_request_is_kept_in_the_repository_and_adopted_when_opened_again(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    new = await propose(repository)
    opened = await pulls.open(new)
    assert (opened.number, opened.state, opened.body) == (1, "open", "| a | table |")
    assert await pulls.open(new) == opened
    assert await pulls.get(1) == opened
    assert await pulls.find(new.head, base="main") == opened
    assert bare("rev-parse", "refs/kardinal/pull/1/head") == bare("rev-parse", new.head)
    assert '"environment": "prod"' in bare("cat-file", "blob", "refs/kardinal/pull/1/meta")


async def test_merging_moves_the_base_forward_and_deletes_the_branch(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    new = await propose(repository)
    proposed = bare("rev-parse", new.head)
    number = (await pulls.open(new)).number
    merged = await pulls.merge(number, by="reviewer")
    assert (merged.state, merged.merged_by, merged.merge_commit) == ("merged", "reviewer", proposed)
    assert bare("rev-parse", "main") == proposed
    assert bare("branch", "--list", new.head) == ""
    assert await pulls.merge(number, by="another person") == merged


async def test_merging_after_the_base_moved_re_applies_the_change_as_one_commit_with_its_trailers(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    number = (await pulls.open(await propose(repository))).number
    other = bare.commit({**manifests(), "README.md": "other\n"}, parent=bare("rev-parse", "main"))
    merged = await pulls.merge(number, by="reviewer")
    assert merged.merge_commit == bare("rev-parse", "main")
    assert bare("rev-parse", "main^") == other
    assert bare("rev-list", "--count", "--merges", "main") == "0"
    assert bare("show", "main:README.md") == "other"
    assert bare("show", "main:environments/prod/kustomization.yaml") == "v2"
    assert bare("show", "-s", "--format=%(trailers:key=Kardinal-Environment,valueonly)", "main") == "prod"


async def test_a_conflict_names_the_file_and_leaves_the_pull_request_open(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    number = (await pulls.open(await propose(repository))).number
    path = "environments/prod/kustomization.yaml"
    other = bare.commit({**manifests(), path: "mine\n"}, parent=bare("rev-parse", "main"))
    with pytest.raises(MergeConflict, match=path):
        await pulls.merge(number, by="reviewer")
    assert bare("rev-parse", "main") == other
    assert (await pulls.get(number)).state == "open"


async def test_commit_of_a_reviewer_is_merged_with_the_branch(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    new = await propose(repository)
    number = (await pulls.open(new)).number
    files = {**manifests(), "environments/prod/kustomization.yaml": "v2\n", "NOTES": "reviewed\n"}
    del files["base/deployment.yaml"]
    addition = bare.commit(files, branch=new.head, parent=bare("rev-parse", new.head))
    bare.commit({**manifests(), "README.md": "other\n"}, parent=bare("rev-parse", "main"))
    await pulls.merge(number, by="reviewer")
    assert bare("show", "main:NOTES") == "reviewed"
    assert "base/deployment.yaml" not in bare("ls-tree", "-r", "--name-only", "main")
    assert bare("log", "-1", "--format=%s", "main") == "promote to prod"
    assert bare("rev-parse", f"refs/kardinal/pull/{number}/head") == addition


async def test_a_closed_pull_request_stays_closed_and_a_new_one_gets_a_new_number(
    pulls: PullRequests, repository: Repository
) -> None:
    new = await propose(repository)
    first = await pulls.open(new)
    closed = await pulls.close(first.number, by="reviewer", comment="not today")
    assert (closed.state, closed.comments) == ("closed", ("not today",))
    assert await pulls.closed_by(closed.number) == "reviewer"
    with pytest.raises(PullRequestEnded, match="closed"):
        await pulls.merge(first.number, by="reviewer")
    assert (await pulls.open(new)).number == 2
    assert [pull.number for pull in await pulls.list("open")] == [2]
    assert [pull.number for pull in await pulls.list()] == [1, 2]


async def test_a_merged_pull_request_can_not_be_closed(pulls: PullRequests, repository: Repository) -> None:
    number = (await pulls.open(await propose(repository))).number
    await pulls.merge(number, by="reviewer")
    with pytest.raises(PullRequestEnded, match="merged"):
        await pulls.close(number, by="reviewer", comment="")


async def test_an_unknown_number_is_named(pulls: PullRequests) -> None:
    with pytest.raises(PullRequestNotFound, match="no pull request 7"):
        await pulls.get(7)
    with pytest.raises(PullRequestNotFound, match="no pull request 7"):
        await pulls.merge(7, by="reviewer")


async def test_openers_of_the_same_branch_end_with_one_pull_request(
    pulls: PullRequests, repository: Repository, clock: VirtualClock
) -> None:
    new = await propose(repository)
    others = [local_pull_requests(repository, clock=clock) for _ in range(8)]
    opened = await asyncio.gather(*(other.open(new) for other in [pulls, *others]))
    assert {pull.number for pull in opened} == {1}


async def test_concurrent_openers_of_different_branches_get_different_numbers(
    pulls: PullRequests, repository: Repository
) -> None:
    proposals = [await propose(repository, name) for name in ("dev", "staging", "prod")]
    opened = await asyncio.gather(*(pulls.open(new) for new in proposals))
    assert sorted(pull.number for pull in opened) == [1, 2, 3]


async def test_two_merges_at_once_make_one_commit(
    repository: Repository, bare: Git, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    others = Repositories(tmp_path / "other-cache", runner=runner, clock=clock, allow_local=True)
    first = local_pull_requests(repository, clock=clock)
    second = local_pull_requests(others.open(repository.url), clock=clock)
    number = (await first.open(await propose(repository))).number
    bare.commit({**manifests(), "README.md": "other\n"}, parent=bare("rev-parse", "main"))
    one, two = await asyncio.gather(first.merge(number, by="one"), second.merge(number, by="two"))
    assert one == two
    assert bare("rev-list", "--count", "main") == "3"
    await others.close()


async def test_a_merge_that_died_before_its_record_was_written_is_completed_by_the_next(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    number = (await pulls.open(await propose(repository))).number
    bare.commit({**manifests(), "README.md": "other\n"}, parent=bare("rev-parse", "main"))
    landed = await repository.merge("main", bare("rev-parse", f"refs/kardinal/pull/{number}/head"))
    merged = await pulls.merge(number, by="reviewer")
    assert merged.merge_commit == landed.commit
    assert bare("rev-list", "--count", "main") == "3"


async def test_an_opening_that_died_before_its_record_was_written_is_completed_by_the_next(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    new = await propose(repository)
    bare("update-ref", "refs/kardinal/pull/1/head", new.head)
    assert (await pulls.open(new)).number == 1
    assert len(await pulls.list()) == 1


async def test_merge_and_close_at_once_have_one_winner_and_the_base_agrees(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    number = (await pulls.open(await propose(repository))).number
    results = await asyncio.gather(
        pulls.close(number, by="one", comment=""), pulls.merge(number, by="two"), return_exceptions=True
    )
    assert sum(isinstance(result, PullRequestEnded) for result in results) == 1
    merged = (await pulls.get(number)).state == "merged"
    assert bare("rev-list", "--count", "main") == ("2" if merged else "1")


async def test_a_branch_deleted_by_hand_is_merged_from_what_was_proposed(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    new = await propose(repository)
    number = (await pulls.open(new)).number
    bare("branch", "-D", new.head)
    await pulls.merge(number, by="reviewer")
    assert bare("show", "main:environments/prod/kustomization.yaml") == "v2"


async def test_comments_are_kept_in_order(pulls: PullRequests, repository: Repository) -> None:
    number = (await pulls.open(await propose(repository))).number
    await asyncio.gather(*(pulls.comment(number, f"comment {n}", marker=f"c{n}") for n in range(5)))
    assert sorted((await pulls.get(number)).comments) == [f"comment {n}" for n in range(5)]


async def test_a_damaged_record_is_named_and_hides_no_other(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    await pulls.open(await propose(repository, "dev"))
    await pulls.open(await propose(repository, "prod"))
    rubbish = bare("hash-object", "-w", "--stdin", input='{"title": 1}')
    bare("update-ref", "refs/kardinal/pull/1/meta", rubbish)
    assert [pull.number for pull in await pulls.list()] == [2]
    with pytest.raises(PullRequestError, match="record of pull request 1 is damaged"):
        await pulls.get(1)
    assert (await pulls.open(await propose(repository, "staging"))).number == 3


async def test_packed_references_are_pull_requests_all_the_same(
    pulls: PullRequests, repository: Repository, bare: Git
) -> None:
    opened = await pulls.open(await propose(repository))
    bare("pack-refs", "--all", "--prune")
    assert await pulls.list() == [opened]
    assert (await pulls.merge(1, by="reviewer")).state == "merged"


async def test_a_merge_wakes_those_who_wait(pulls: PullRequests, repository: Repository, clock: VirtualClock) -> None:
    number = (await pulls.open(await propose(repository))).number
    wakes: list[None] = []
    subscription = pulls.subscribe(lambda: wakes.append(None))
    await until(lambda: len(wakes) == 1)
    await pulls.merge(number, by="reviewer")
    clock.advance_to_next_timer()
    await until(lambda: len(wakes) == 2)
    subscription.close()


async def test_a_repository_elsewhere_has_no_local_pull_requests(
    repositories: Repositories, clock: VirtualClock
) -> None:
    with pytest.raises(UnsupportedProvider, match="provider local"):
        local_pull_requests(repositories.open("https://example.org/gitops.git"), clock=clock)


async def test_a_branch_is_not_merged_into_itself(pulls: PullRequests) -> None:
    with pytest.raises(PullRequestError, match="into itself"):
        await pulls.open(NewPullRequest(title="", body="", head="main", base="main"))


async def test_requests_are_reported_with_their_outcome(repository: Repository, clock: VirtualClock) -> None:
    seen: list[tuple[str, str]] = []
    pulls = local_pull_requests(
        repository, clock=clock, on_request=lambda endpoint, status: seen.append((endpoint, status))
    )
    number = (await pulls.open(await propose(repository))).number
    await pulls.close(number, by="reviewer", comment="")
    with pytest.raises(PullRequestEnded):
        await pulls.merge(number, by="reviewer")
    assert seen == [("open", "ok"), ("close", "ok"), ("merge", "PullRequestEnded")]
