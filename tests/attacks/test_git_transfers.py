"""Attacks by a Git host: slow or endless answers, and redirects to the repositories of others."""

from __future__ import annotations

import asyncio
import base64
import inspect
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kardinal.git import (
    GitCredentials,
    GitError,
    GitRunner,
    Repositories,
    Repository,
    RepositoryUnreachable,
    TransferLimits,
    TransferStopped,
    TransientGitError,
)
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_agent import program
from tests.support.clock import VirtualClock
from tests.support.names import DEV, TEAM, of_run
from tests.support.objects import bundle, namespace, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD, USER, Exchange, SmartServer, serving
from tests.support.world import World

OTHERS = of_run("others")
TURNS = 4
"""The promotions of one namespace that may be with one host at once, here: a quarter of an agent's."""
SLOW = TURNS + 1
QUICKLY = TransferLimits(advertisement=3, window=2)


@pytest.fixture
def server(repository: GitRepository, certificate: Path) -> Iterator[SmartServer]:
    repository.git("config", "http.receivepack", "true")
    with serving(repository.path.parent, certificate) as server:
        yield server


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Yield an event that ends what a server does for ever."""
    over = threading.Event()
    yield over
    over.set()


@pytest.fixture
async def remote(tmp_path: Path, server: SmartServer, clock: VirtualClock) -> AsyncIterator[Repository]:
    """Yield the repository as it is seen over HTTPS, by one who waits for seconds only."""
    runner = GitRunner()
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False, limits=QUICKLY)
    yield repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD))
    await repositories.close()
    runner.close()


async def until(condition: Callable[[], object], *, look: float = 0.01) -> None:
    """Wait beside a host that is real; `look` are the seconds between two looks."""
    async with asyncio.timeout(40):
        while not (await found if inspect.isawaitable(found := condition()) else found):
            await asyncio.sleep(look)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def drip(over: threading.Event, first: bytes, rest: bytes, *, pause: float) -> Callable[[Exchange, str], bool]:
    """Return the behaviour of a server that answers `first` and then `rest` again and again."""

    def answer(exchange: Exchange, path: str) -> bool:
        exchange.send_response(200)
        exchange.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        exchange.send_header("Transfer-Encoding", "chunked")
        exchange.end_headers()
        exchange.close_connection = True
        with suppress(OSError):
            exchange.wfile.write(chunk(first))
            while not over.wait(pause):
                exchange.wfile.write(chunk(rest))
        return True

    return answer


@pytest.fixture
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "CONCURRENCY", 4 * TURNS)


@pytest.mark.usefixtures("few_turns")
async def test_a_slow_host_takes_no_turns_from_other_namespaces(
    world: World,
    repository: GitRepository,
    server: SmartServer,
    certificate: Path,
    over: threading.Event,
) -> None:
    with serving(repository.path.parent, certificate) as slow:
        slow.trouble = drip(over, b"0", b"0", pause=5)
        await start_controller(world)
        before = repository.head()
        names = [f"slow-{n}" for n in range(SLOW)]
        for name in names:
            way = pipeline(f"{slow.url}/{name}.git", name=name, provider="git", environments=[DEV])
            await world.apply(way, bundle(f"{name}-1", pipeline=name))

        async def steps(namespace: str) -> list[JsonObject]:
            return [step.get("status") or {} for step in await world.objects(PROMOTION_STEP, namespace)]

        # `world.until` waits until nothing is under way, which is not what happens here.
        async def waiting() -> bool:
            return len(await steps(TEAM)) >= SLOW and len(slow.requests) >= TURNS

        await until(waiting, look=0.1)
        await world.apply(namespace(OTHERS), git_secret(server, OTHERS))
        way = pipeline(f"{server.url}/gitops.git", provider="git", environments=[DEV], namespace=OTHERS)
        way["spec"]["git"]["secretRef"] = {"name": "git"}
        await world.apply(way, bundle("app-1", namespace=OTHERS))
        await until(lambda: repository.head() != before, look=0.1)
        assert repository.promotions(DEV)
        queued = [status["message"] for status in await steps(TEAM) if "message" in status]
        assert queued == [f"queued behind {TURNS} promotions, for a turn at {slow.url.removeprefix('https://')}"]
        over.set()


def git_secret(server: SmartServer, namespace: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": namespace,
            "labels": {"kardinal.io/credentials": "git"},
            "annotations": {"kardinal.io/hosts": server.url.removeprefix("https://")},
        },
        "stringData": {"username": USER, "password": PASSWORD},
    }


def packet(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line


async def test_a_list_of_references_without_end_is_given_up(
    remote: Repository, server: SmartServer, over: threading.Event
) -> None:
    head = b"# service=git-upload-pack\n"
    first = b"1" * 40 + b" refs/heads/a\0multi_ack side-band-64k ofs-delta\n"
    line = b"1" * 40 + b" refs/heads/bbbb\n"
    server.trouble = drip(over, packet(head) + b"0000" + packet(first), packet(line) * 100, pause=0.1)
    with pytest.raises(TransferStopped, match="has not listed its branches in 3 s"):
        await remote.head("main")


async def test_a_pack_that_comes_too_slowly_is_given_up(
    remote: Repository, server: SmartServer, over: threading.Event
) -> None:
    def slow_pack(exchange: Exchange, path: str) -> bool:
        if exchange.command == "GET":
            return False
        content = exchange.ask_git().partition(b"\r\n\r\n")[2]
        exchange.send_response(200)
        exchange.send_header("Content-Type", "application/x-git-upload-pack-result")
        exchange.send_header("Content-Length", str(len(content)))
        exchange.end_headers()
        for byte in content:
            exchange.wfile.write(bytes([byte]))
            if over.wait(0.02):
                break
        return True

    server.trouble = slow_pack
    with pytest.raises((TransferStopped, TransientGitError), match=r"too little|has not listed"):
        await remote.head("main")


@pytest.mark.parametrize("place", ["/other.git", "/gitops.git/../other.git", "/team/gitops.git"])
async def test_a_redirect_to_another_repository_is_refused(
    remote: Repository, server: SmartServer, repository: GitRepository, place: str
) -> None:
    repository.git("clone", "-q", "--bare", ".", str(repository.path.parent / "other.git"))

    def redirect(exchange: Exchange, path: str) -> bool:
        if not path.startswith("/gitops.git/info/"):
            return False
        query = exchange.path.partition("?")[2]
        exchange.refuse(302, "Location", f"{place}/info/refs?{query}&token=hidden")
        return True

    server.trouble = redirect
    with pytest.raises(RepositoryUnreachable, match="redirects to ") as caught:
        await remote.head("main")
    assert not caught.value.transient
    assert "hidden" not in str(caught.value)
    assert not any(request.endswith("other.git/git-upload-pack") for request in server.requests)


async def test_a_redirect_to_another_spelling_of_the_repository_is_followed(
    tmp_path: Path, server: SmartServer, repository: GitRepository, clock: VirtualClock
) -> None:
    def redirect(exchange: Exchange, path: str) -> bool:
        if not path.startswith("/GitOps/info/"):
            return False
        exchange.refuse(301, "Location", exchange.path.replace("/GitOps/", "/gitops.git/"))
        return True

    server.trouble = redirect
    runner = GitRunner()
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False)
    try:
        head = await repositories.open(f"{server.url}/GitOps", GitCredentials(USER, PASSWORD)).head("main")
    finally:
        await repositories.close()
        runner.close()
    assert head.commit == repository.head()


def processes(word: str) -> list[Path]:
    """Return the processes, other than this one, whose arguments hold a word."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(place.name) != os.getpid() and word.encode() in (place / "cmdline").read_bytes():
                found.append(place)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_no_argument_and_no_variable_of_a_child_holds_the_credentials(
    remote: Repository, server: SmartServer, over: threading.Event
) -> None:
    server.trouble = drip(over, b"0", b"0", pause=0.5)
    fetch = asyncio.create_task(remote.head("main"))
    await until(lambda: server.requests)
    children = processes(server.url)
    assert children
    pair = base64.b64encode(f"{USER}:{PASSWORD}".encode())
    for child in children:
        with suppress(OSError):
            seen = (child / "cmdline").read_bytes() + (child / "environ").read_bytes()
            assert PASSWORD.encode() not in seen
            assert pair not in seen
    with pytest.raises((TransferStopped, TransientGitError)):
        await fetch
    await until(lambda: not processes(server.url))


PROGRAM = """
import asyncio, sys
from pathlib import Path
from kardinal.git import GitRunner, Repositories
from kardinal.clock import SystemClock

async def main():
    repositories = Repositories(Path(sys.argv[1]), runner=GitRunner(), clock=SystemClock(), allow_local=False)
    await repositories.open(sys.argv[2] + "/gitops.git").head("main")

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_program_that_is_killed_leaves_no_child(
    tmp_path: Path, server: SmartServer, over: threading.Event
) -> None:
    server.trouble = drip(over, b"0", b"0", pause=0.5)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, str(tmp_path / "cache"), server.url)
    try:
        await until(lambda: server.requests)
        assert len(processes(f"{server.url}/gitops.git")) >= 2
    finally:
        process.kill()
        await process.wait()
    await until(lambda: not processes(f"{server.url}/gitops.git"))


async def test_a_transfer_that_needs_too_much_memory_fails_alone(
    tmp_path: Path, server: SmartServer, clock: VirtualClock, over: threading.Event
) -> None:
    runner = GitRunner()
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False, memory=4 << 20)
    # What a transfer holds is looked at while it goes on.
    server.trouble = drip(over, b"0", b"0", pause=5)
    try:
        with pytest.raises(GitError, match="needs more than the 1 MiB of memory that there are for it") as refused:
            await repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD)).head("main")
        assert not refused.value.transient
    finally:
        over.set()
        await repositories.close()
        runner.close()


async def test_a_repository_that_is_too_large_leaves_nothing_behind(
    tmp_path: Path, server: SmartServer, repository: GitRepository, clock: VirtualClock
) -> None:
    (tmp_path / "large").write_bytes(os.urandom(2 << 20))
    blob = repository.git("hash-object", "-w", str(tmp_path / "large"))
    tree = repository.git("mktree", stdin=f"100644 blob {blob}\tlarge\n")
    repository.git("update-ref", "refs/heads/main", repository.git("commit-tree", tree, "-m", "large"))
    runner = GitRunner()
    limits = TransferLimits(file=512 << 10)
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False, limits=limits)
    try:
        with pytest.raises(TransferStopped, match="larger than the mirror") as caught:
            await repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD)).head("main")
    finally:
        await repositories.close()
        runner.close()
    assert not caught.value.transient
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["lock"]
