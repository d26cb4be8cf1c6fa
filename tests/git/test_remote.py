"""A repository behind HTTPS: Git's own server, a real mirror, real refusals."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kardinal.clock import SystemClock
from kardinal.git import (
    AuthenticationFailed,
    CommitNotFound,
    GitCredentials,
    GitError,
    GitRunner,
    PushRejected,
    Repositories,
    Repository,
    RepositoryUnreachable,
    TransferLimits,
    TransferStopped,
    TransientGitError,
)
from tests.git.conftest import Git, manifests, message, setting
from tests.support.clock import VirtualClock
from tests.support.smart_server import PASSWORD, USER, Exchange, SmartServer, no_trouble


def mirrors(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("*.git"))


def hook(bare: Git, name: str, script: str) -> None:
    path = bare.directory / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def test_an_edit_is_pushed_with_the_given_credentials(remote: Repository, bare: Git) -> None:
    landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit
    assert bare("show", "main:environments/dev/kustomization.yaml") == "v2"
    assert await remote.read(landed.commit, "environments/dev/kustomization.yaml") == b"v2\n"
    assert await remote.contains("main", landed.commit)
    assert await remote.find("main", {"Kardinal-Step": "app-1-dev"}) == landed.commit


async def test_callers_at_the_same_time_share_one_fetch(remote: Repository, repositories: Repositories) -> None:
    heads = await asyncio.gather(*(remote.head("main") for _ in range(20)))
    assert len(set(heads)) == 1
    assert repositories.fetches == 1


async def test_a_fetch_that_began_before_the_question_does_not_answer_it(
    remote: Repository, server: SmartServer, bare: Git
) -> None:
    before = await remote.head("main")
    advertised = threading.Event()
    resume = threading.Event()

    def answer_late(exchange: Exchange, path: str) -> bool:
        # The second version of the protocol lists the references in the answer to a question of its own.
        lists = exchange.command == ("POST" if exchange.headers.get("Git-Protocol") else "GET")
        if not (lists and exchange.headers.get("Authorization") and exchange.headers.get("User-Agent")):
            return False
        server.trouble = no_trouble
        answer = exchange.ask_git()
        advertised.set()
        resume.wait(10)
        exchange.send(answer)
        return True

    server.trouble = answer_late
    early = asyncio.create_task(remote.head("main"))
    await asyncio.to_thread(advertised.wait, 10)
    moved = bare.commit({**manifests(), "README.md": "other\n"}, parent=before.commit)
    late = asyncio.create_task(remote.head("main"))
    await asyncio.sleep(0)
    resume.set()
    assert (await early).commit == before.commit
    assert (await late).commit == moved


async def test_writing_needs_no_fetch_once_the_mirror_is_there(remote: Repository, repositories: Repositories) -> None:
    for number in range(3):
        await remote.land("main", setting("dev", b"v%d\n" % number), message("dev", f"app-{number}"))
    assert repositories.fetches == 1


async def test_edits_that_arrive_during_a_push_share_the_next_one(
    remote: Repository, server: SmartServer, bare: Git
) -> None:
    await remote.head("main")
    landed = await asyncio.gather(
        *(remote.land("main", setting("dev", b"v%d\n" % n), message("dev", f"app-{n}")) for n in range(20))
    )
    assert len({one.commit for one in landed}) == 20
    assert bare("rev-list", "--count", "main") == "21"
    pushes = [request for request in server.requests if request.startswith("POST") and "receive-pack" in request]
    assert len(pushes) <= 2


async def test_an_edit_is_made_again_on_what_others_have_pushed(
    remote: Repository, repositories: Repositories, bare: Git
) -> None:
    before = await remote.head("main")
    other = bare.commit({**manifests(), "README.md": "other\n"}, parent=before.commit)
    landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit
    assert bare("rev-parse", "main^") == other
    assert bare("show", "main:README.md") == "other"
    assert repositories.fetches == 2


async def test_a_commit_made_by_another_process_while_we_push_is_kept(remote: Repository, bare: Git) -> None:
    before = await remote.head("main")
    other = bare.commit({**manifests(), "README.md": "other\n"}, branch="other", parent=before.commit)
    # The hook runs between the server's look at the branch and its move.
    hook(bare, "update", f"git update-ref refs/heads/main {other} {before.commit}; rm hooks/update")
    landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("log", "--format=%H", "main").split() == [landed.commit, other, before.commit]


async def test_a_push_whose_answer_was_lost_is_found_and_not_repeated(
    remote: Repository, bare: Git, server: SmartServer
) -> None:
    await remote.head("main")

    def lose_the_answer(exchange: Exchange, path: str) -> bool:
        if exchange.command == "POST" and path.endswith("receive-pack"):
            # A client whose connection was open before may send the request once more by itself.
            if not asked:
                asked.append(exchange.ask_git())
            exchange.close_connection = True
            return True
        return False

    asked: list[bytes] = []
    server.trouble = lose_the_answer
    with pytest.raises(TransientGitError):
        await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    server.trouble = no_trouble
    landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert landed.adopted
    assert bare("rev-list", "--count", "main") == "2"


async def test_a_protected_branch_is_a_final_answer_in_the_words_of_the_remote(remote: Repository, bare: Git) -> None:
    hook(bare, "pre-receive", "echo 'main is protected: open a pull request' >&2; exit 1")
    with pytest.raises(PushRejected, match="main is protected: open a pull request") as caught:
        await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert not caught.value.transient
    assert "approval: pr-review" in caught.value.remedy


async def test_a_commit_the_remote_refuses_does_not_take_its_neighbours_with_it(remote: Repository, bare: Git) -> None:
    await remote.head("main")
    hook(
        bare,
        "pre-receive",
        'read old new ref; if git diff --name-only "$old" "$new" | grep -q prod; then exit 1; fi',
    )
    results = await asyncio.gather(
        remote.land("main", setting("dev", b"v2\n"), message("dev")),
        remote.land("main", setting("prod", b"v2\n"), message("prod")),
        remote.land("main", setting("staging", b"v2\n"), message("staging")),
        return_exceptions=True,
    )
    assert [type(result).__name__ for result in results] == ["Landed", "PushRejected", "Landed"]
    assert bare("log", "--format=%s", "main").splitlines()[:2] == ["promote app-1 to staging", "promote app-1 to dev"]


async def test_a_lock_that_is_not_given_up_ends_as_a_transient_error(remote: Repository, bare: Git) -> None:
    lock = bare.directory / "refs" / "heads" / "main.lock"
    lock.touch()
    with pytest.raises(TransientGitError, match="main can not be moved"):
        await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    lock.unlink()
    assert (await remote.land("main", setting("dev", b"v2\n"), message("dev"))).changed


async def test_the_right_to_push_is_asked_for_again_where_the_branch_moves_meanwhile(
    remote: Repository, server: SmartServer, bare: Git
) -> None:
    before = await remote.head("main")

    def move(exchange: Exchange, path: str) -> bool:
        if "receive-pack" in exchange.path:
            server.trouble = no_trouble
            bare.commit({**manifests(), "README.md": "other\n"}, parent=before.commit)
        return False

    server.trouble = move
    await remote.check_push("main")
    assert server.trouble is no_trouble


async def test_a_proposal_is_pushed_and_its_branch_deleted(remote: Repository, bare: Git) -> None:
    landed = await remote.propose(
        "kardinal/app-1/dev", base="main", edit=setting("dev", b"v2\n"), message=message("dev")
    )
    assert bare("rev-parse", "kardinal/app-1/dev") == landed.commit
    await remote.delete_branch("kardinal/app-1/dev")
    await remote.delete_branch("kardinal/app-1/dev")
    assert bare("branch", "--list", "kardinal/*") == ""


async def test_wrong_credentials_are_refused_once_and_never_shown(
    repositories: Repositories, server: SmartServer
) -> None:
    secret = "hunter2-hunter2"
    repository = repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, secret))
    with pytest.raises(AuthenticationFailed, match="refuses the credentials") as caught:
        await repository.head("main")
    assert caught.value.blocked
    assert secret not in repr(caught.value)
    assert len(server.requests) <= 3


async def test_missing_credentials_are_asked_for(repositories: Repositories, server: SmartServer) -> None:
    with pytest.raises(AuthenticationFailed, match=r"name it in secretRef"):
        await repositories.open(f"{server.url}/gitops.git").head("main")


async def test_a_repository_that_does_not_exist_is_looked_for_again(
    repositories: Repositories, server: SmartServer
) -> None:
    with pytest.raises(RepositoryUnreachable, match="404") as caught:
        await repositories.open(f"{server.url}/nothing.git", GitCredentials(USER, PASSWORD)).head("main")
    assert caught.value.transient


async def test_a_host_that_does_not_answer_is_worth_another_attempt(repositories: Repositories) -> None:
    with pytest.raises(RepositoryUnreachable, match="can not be reached") as caught:
        await repositories.open("https://127.0.0.1:1/gitops.git").head("main")
    assert caught.value.transient


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_server_in_trouble_is_worth_another_attempt(
    remote: Repository, server: SmartServer, status: int
) -> None:
    def refuse(exchange: Exchange, path: str) -> bool:
        exchange.refuse(status)
        return True

    server.trouble = refuse
    with pytest.raises(TransientGitError, match=str(status)):
        await remote.head("main")
    server.trouble = no_trouble
    await remote.head("main")


@pytest.fixture
async def impatient(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> AsyncIterator[Repositories]:
    """Yield repositories that wait for two seconds where others wait for a minute."""
    limits = TransferLimits(advertisement=2, window=5)
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False, limits=limits)
    yield repositories
    await repositories.close()


async def test_a_stalled_server_is_given_up_and_holds_up_no_other(
    impatient: Repositories, repository: Repository, server: SmartServer
) -> None:
    remote = impatient.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD))
    stalled = threading.Event()
    over = threading.Event()

    def stall(exchange: Exchange, path: str) -> bool:
        stalled.set()
        over.wait(20)
        return True

    server.trouble = stall
    waiting = asyncio.create_task(remote.head("main"))
    await asyncio.to_thread(stalled.wait, 10)
    await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert not waiting.done()
    with pytest.raises(TransferStopped, match="has not listed its branches"):
        await waiting
    over.set()


async def test_a_damaged_mirror_is_made_anew(remote: Repository, tmp_path: Path) -> None:
    head = await remote.head("main")
    (mirror,) = mirrors(tmp_path)
    shutil.rmtree(mirror / "objects")
    assert await remote.head("main") == head
    (mirror,) = mirrors(tmp_path)
    for pack in (mirror / "objects" / "pack").glob("*"):
        pack.chmod(0o600)
        pack.write_bytes(b"rubbish")
    assert (await remote.land("main", setting("dev", b"v2\n"), message("dev"))).changed


async def test_a_commit_from_an_earlier_life_is_fetched(
    remote: Repository, server: SmartServer, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    head = await remote.head("main")
    others = Repositories(tmp_path / "fresh", runner=runner, clock=clock, allow_local=False)
    repository = others.open(remote.url, GitCredentials(USER, PASSWORD))
    assert await repository.read(head.commit, "README.md") == b"hello\n"
    with pytest.raises(CommitNotFound):
        await repository.read("1" * 40, "README.md")
    await others.close()


async def test_another_credential_has_a_mirror_of_its_own(
    remote: Repository, repositories: Repositories, tmp_path: Path
) -> None:
    await remote.head("main")
    with pytest.raises(AuthenticationFailed):
        await repositories.open(remote.url, GitCredentials(USER, "other")).head("main")
    assert len(mirrors(tmp_path)) == 2


async def test_a_cache_serves_one_process(
    remote: Repository, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    await remote.head("main")
    others = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False)
    with pytest.raises(GitError, match="used by another process"):
        await others.open(remote.url, GitCredentials(USER, PASSWORD)).head("main")
    await others.close()


async def test_mirrors_that_were_not_used_for_long_are_deleted(
    remote: Repository, repositories: Repositories, tmp_path: Path, runner: GitRunner
) -> None:
    await remote.head("main")
    await repositories.close()
    (mirror,) = mirrors(tmp_path)
    later = VirtualClock(start=SystemClock().now())
    later.skip(8 * 24 * 3600)
    others = Repositories(tmp_path / "cache", runner=runner, clock=later, allow_local=False)
    with pytest.raises(RepositoryUnreachable):
        await others.open("https://127.0.0.1:1/gitops.git").head("main")
    assert not mirror.exists()
    await others.close()
