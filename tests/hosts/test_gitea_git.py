"""Git and pull requests together, on a real Gitea over HTTPS with an authority of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hack.gitea.server import RunningGitea
from kardinal.clock import SystemClock
from kardinal.git import (
    AuthenticationFailed,
    BranchLocked,
    GitCredentials,
    GitRunner,
    PushRejected,
    Repositories,
    Repository,
    TransferLimits,
    TransferStopped,
)
from kardinal.scm import PROVIDERS, PullRequests
from kardinal.scm.http import HostSessions
from tests.git.conftest import manifests, message, setting, until
from tests.hosts.gitea_host import GiteaHost
from tests.hosts.host import FILE, HEAD, PATIENCE, new_pull_request, patient
from tests.support.gitea import new_project
from tests.support.held_push import HeldPush

MERGE_METHODS = ("merge", "squash", "rebase")


@pytest.fixture
async def host(gitea: RunningGitea, tmp_path: Path) -> AsyncIterator[GiteaHost]:
    host = GiteaHost(tmp_path, new_project(gitea, manifests()))
    host.start()
    yield host
    await host.close()


@pytest.fixture
async def pulls(host: GiteaHost) -> PullRequests:
    return patient(await host.connect())


@pytest.fixture
async def repository(host: GiteaHost, tmp_path: Path) -> AsyncIterator[Repository]:
    """Return the repository as kardinal's user reaches it by Git, with the credential of the same Secret."""
    runner = GitRunner(workers=2)
    repositories = Repositories(tmp_path / "mirrors", runner=runner, clock=SystemClock(), allow_local=False)
    yield repositories.open(host.url, await credentials(host))
    await repositories.close()
    runner.close()


async def credentials(host: GiteaHost) -> GitCredentials:
    async with HostSessions(clock=SystemClock()) as http:
        authenticator = PROVIDERS["gitea"].authenticate(host.secret(), host.target(http))
    assert authenticator is not None
    return replace(await authenticator.credentials(), authority=host.project.server.authority)


@pytest.mark.parametrize("method", MERGE_METHODS)
async def test_a_proposal_is_pushed_reviewed_merged_by_a_person_and_found_where_it_landed(
    host: GiteaHost, pulls: PullRequests, repository: Repository, method: str
) -> None:
    landed = await repository.propose(HEAD, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    opened = await pulls.open(new_pull_request())
    assert opened.head_commit == landed.commit
    host.review(opened.number, "alice", "approve")
    assert [approval.commit for approval in await pulls.approvals(opened.number)] == [landed.commit]
    await asyncio.to_thread(host.add_commit, "main", "README.md", "others went on\n")
    await host.merge(opened.number, method)  # type: ignore[arg-type]
    merged = await pulls.get(opened.number)
    assert merged.merge_commit is not None
    assert (await repository.head("main")).commit == merged.merge_commit
    assert await repository.contains("main", merged.merge_commit)
    assert await repository.read(merged.merge_commit, FILE) == b"v2\n"


async def test_a_protected_branch_refuses_a_push_and_says_so(host: GiteaHost, repository: Repository) -> None:
    host.project.protect("main", enable_push=False)
    with pytest.raises(PushRejected) as rejected:
        await repository.land("main", setting("prod", b"v2\n"), message("prod"))
    assert not rejected.value.transient
    assert host.content("main") == "# prod\nimages: []"


async def test_a_token_that_is_revoked_ends_fetch_and_push(host: GiteaHost, repository: Repository) -> None:
    await repository.head("main")
    token = host.secret()["token"]
    host.revoke_token()
    with pytest.raises(AuthenticationFailed) as denied:
        await repository.land("main", setting("prod", b"v2\n"), message("prod"))
    assert token not in str(denied.value)
    assert denied.value.field == "git.secretRef"


async def test_programs_that_open_at_once_end_with_one_pull_request(host: GiteaHost) -> None:
    host.propose()
    programs = [patient(await host.connect()) for _ in range(4)]
    async with asyncio.timeout(2 * PATIENCE):
        opened = await asyncio.gather(*(program.open(new_pull_request()) for program in programs))
    assert len({one.number for one in opened}) == 1
    assert [one.number for one in await programs[0].list("open")] == [opened[0].number]


async def test_programs_that_merge_at_once_agree_on_the_commit_that_landed(
    host: GiteaHost, pulls: PullRequests
) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    programs = [patient(await host.connect()) for _ in range(3)]
    async with asyncio.timeout(2 * PATIENCE):
        merged = await asyncio.gather(*(one.merge(number, by="kardinal", method="squash") for one in programs))
    (landed,) = {one.merge_commit for one in merged}
    assert landed is not None
    # Gitea itself may merge twice what is asked twice in one instant; the second commit then changes nothing.
    assert host.git("diff", landed, host.tip("main")) == ""
    assert host.content(landed) == "v2"


async def test_the_locks_of_a_killed_push_block_the_repository_and_one_that_may_end_leaves_none(
    host: GiteaHost, repository: Repository, tmp_path: Path
) -> None:
    held = HeldPush(host.project.bare)
    runner = GitRunner(workers=2)
    for ending in (0.0, 60.0):
        limits = TransferLimits(ending=ending)
        directory = tmp_path / f"mirrors-{ending:.0f}"
        program = Repositories(directory, runner=runner, clock=SystemClock(), allow_local=False, limits=limits)
        pushing = program.open(host.url, await credentials(host))
        landing = asyncio.create_task(pushing.land("main", setting("prod", b"v2\n"), message("prod")))
        await until(held.reached)
        closing = asyncio.create_task(program.close())
        if ending:
            held.release()
            assert (await landing).changed
        else:
            with pytest.raises(TransferStopped):
                await landing
            await until(held.killed)
            held.forget()
            with pytest.raises(BranchLocked, match=r" \S*(HEAD|main)\.lock: remove it"):
                await repository.land("main", setting("prod", b"v2\n"), message("prod"))
            for lock in held.locks:
                lock.unlink()
            held.again()
        await closing
    runner.close()
    assert not any(lock.exists() for lock in held.locks)
