"""Contents of a mirror: history, the branches in use, and of files only those that were read."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kardinal.git import BranchNotFound, GitCredentials, GitRunner, Repositories, Repository, TransferLimits
from kardinal.git.errors import CacheFull
from kardinal.tree.differences import Move
from kardinal.tree.edit import Edit, Tree
from tests.git.conftest import ENVIRONMENTS, Git, manifests, message, setting
from tests.support.clock import VirtualClock
from tests.support.smart_server import PASSWORD, USER, Exchange, SmartServer


@pytest.fixture(autouse=True)
def filtering(bare: Git) -> None:
    """Let the server leave out files."""
    bare("config", "uploadpack.allowFilter", "true")


def mirrors(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("*.git"))


def look(mirror: Path, *arguments: str) -> str:
    """Ask git about a mirror, which it may fetch nothing for."""
    done = subprocess.run(
        ["git", f"--git-dir={mirror}", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def absent(tmp_path: Path) -> int:
    """Return how many objects of the branch main the only mirror lacks."""
    (mirror,) = mirrors(tmp_path)
    listed = look(mirror, "rev-list", "--objects", "--missing=print", "refs/heads/main").splitlines()
    return sum(line.startswith("?") for line in listed)


def fetches(server: SmartServer) -> int:
    return sum(request.startswith("GET") and "upload-pack" in request for request in server.requests)


def copying(source: str, target: str) -> Edit:
    """Return an edit that has to read a file."""

    def edit(tree: Tree) -> dict[str, bytes]:
        content = tree.read(source)
        assert content is not None
        return {target: content + b"# copied\n"}

    return edit


async def test_a_mirror_has_the_history_without_files_until_they_are_read(
    remote: Repository, bare: Git, tmp_path: Path
) -> None:
    first = await remote.head("main")
    bare.commit({**manifests(), "README.md": "other\n"}, parent=first.commit)
    await remote.head("main")
    blobs = absent(tmp_path)
    assert blobs == len(ENVIRONMENTS) + 3
    assert look(mirrors(tmp_path)[0], "rev-list", "--count", "refs/heads/main").strip() == "2"
    assert await remote.read((await remote.head("main")).commit, "README.md") == b"other\n"
    # What lies below comes with it, but not what only history has.
    assert absent(tmp_path) == 1


async def test_files_that_edits_miss_are_fetched_at_once(remote: Repository, server: SmartServer, bare: Git) -> None:
    await remote.head("main")
    before = fetches(server)
    landed = await asyncio.gather(
        *(
            remote.land(
                "main", copying(f"environments/{name}/kustomization.yaml", f"environments/{name}/x"), message(name)
            )
            for name in ENVIRONMENTS
        )
    )
    assert all(one.changed for one in landed)
    assert bare("show", "main:environments/dev/x") == "# dev\nimages: []\n# copied"
    assert fetches(server) - before == 1


async def test_files_of_all_commits_that_are_compared_are_fetched_at_once(
    remote: Repository, server: SmartServer, bare: Git
) -> None:
    """A rendered branch records many commits, and every promotion to it compares each with the one before."""
    commits = [bare("rev-parse", "main")]
    for number in range(4):
        commits.append(bare.commit({**manifests(), "README.md": f"{number}\n"}, parent=commits[-1]))
    await remote.head("main")
    before = fetches(server)
    moves = [Move(f"{commit}^", commit) for commit in commits[1:]]
    found = await remote.differences("main", moves, "")
    assert [[(change.path, change.before, change.after) for change in each] for each in found] == [
        [("README.md", old.encode(), new.encode())]
        for old, new in zip(["hello\n", "0\n", "1\n", "2\n"], ["0\n", "1\n", "2\n", "3\n"], strict=True)
    ]
    # One to look at the branch, and one for the files.
    assert fetches(server) - before == 2


async def test_files_below_the_directory_of_one_come_with_it(
    remote: Repository, server: SmartServer, bare: Git
) -> None:
    head = bare("rev-parse", "main")
    files = {f"app/{name}.yaml": f"{name}: 1\n" for name in ("a", "deep/b", "deep/er/c")}
    bare.commit({**manifests(), **files}, parent=head)
    await remote.head("main")
    before = fetches(server)

    def edit(tree: Tree) -> dict[str, bytes]:
        return {"app/all": b"".join(tree.read(path) or b"" for path in sorted(files))}

    await remote.land("main", edit, message("dev"))
    assert bare("show", "main:app/all") == "a: 1\ndeep/b: 1\ndeep/er/c: 1"
    assert fetches(server) - before == 1


async def test_a_push_fetches_nothing_that_the_edit_has_not_read(
    remote: Repository, server: SmartServer, bare: Git
) -> None:
    head = bare("rev-parse", "main")
    source = "environments/dev/kustomization.yaml"
    bare.commit({**manifests(), source: "images: []\n", "README.md": "other\n"}, parent=head)
    await remote.head("main")
    before = fetches(server)
    await remote.land("main", copying(source, source), message("dev"))
    assert bare("show", f"main:{source}") == "images: []\n# copied"
    assert fetches(server) - before == 1


async def test_unused_branches_are_not_fetched(remote: Repository, bare: Git, tmp_path: Path) -> None:
    other = bare.commit({"huge": "x" * 1000}, branch="main-archive")
    await remote.head("main")
    (mirror,) = mirrors(tmp_path)
    assert look(mirror, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    with pytest.raises(subprocess.CalledProcessError):
        look(mirror, "cat-file", "-e", other)
    assert (await remote.head("main-archive")).commit == other


async def test_a_branch_that_is_gone_does_not_hold_up_the_others(remote: Repository, bare: Git) -> None:
    bare.commit({"x": "1"}, branch="env/dev")
    await remote.head("env/dev")
    await remote.head("main")
    bare("branch", "-D", "env/dev")
    with pytest.raises(BranchNotFound, match="env/dev"):
        await remote.head("env/dev")
    with pytest.raises(BranchNotFound, match="no-such"):
        await remote.head("no-such")
    assert (await remote.head("main")).commit == bare("rev-parse", "main")


async def test_a_proposal_that_others_have_deleted_is_not_there(remote: Repository, bare: Git) -> None:
    branch = "kardinal/app-1/dev"
    await remote.propose(branch, base="main", edit=setting("dev", b"v2\n"), message=message("dev"))
    bare("update-ref", "-d", f"refs/heads/{branch}")
    with pytest.raises(BranchNotFound):
        await remote.head(branch)
    again = await remote.propose(branch, base="main", edit=setting("dev", b"v2\n"), message=message("dev"))
    assert bare("rev-parse", branch) == again.commit


async def test_files_outside_an_edit_keep_kind_and_mode(remote: Repository, bare: Git) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    blob = bare("hash-object", "-w", "--stdin", input=pointer)
    link = bare("hash-object", "-w", "--stdin", input="../README.md")
    head = bare("rev-parse", "main")
    entries = [
        f"100644 blob {blob}\tmodel.bin",
        f"120000 blob {link}\tlink",
        f"160000 commit {'1' * 40}\tvendor",
        f"100755 blob {blob}\trun.sh",
        f"100644 blob {blob}\tkustomization.yaml",
    ]
    directory = bare("mktree", input="\n".join(entries) + "\n")
    attributes = bare(
        "hash-object", "-w", "--stdin", input="*.bin filter=lfs diff=lfs merge=lfs -text\n* text=auto eol=crlf\n"
    )
    root = bare(
        "mktree", "--missing", input=f"100644 blob {attributes}\t.gitattributes\n040000 tree {directory}\tdev\n"
    )
    bare("update-ref", "refs/heads/main", bare("commit-tree", root, "-p", head, "-m", "x"))

    def edit(tree: Tree) -> dict[str, bytes]:
        return {"dev/run.sh": b"new\n", "dev/kustomization.yaml": b"a: 1\r\nb: 2\n"}

    await remote.land("main", edit, message("dev"))
    changed = bare("diff-tree", "-r", "--no-renames", "main^", "main").splitlines()
    assert {line.rpartition("\t")[2]: line[1:14] for line in changed} == {
        "dev/kustomization.yaml": "100644 100644",
        "dev/run.sh": "100755 100755",
    }
    assert bare("ls-tree", "main", "dev/").splitlines()[1:2] == [f"120000 blob {link}\tdev/link"]
    assert bare("cat-file", "-s", "main:dev/kustomization.yaml") == "11"


@pytest.fixture
async def cramped(
    bare: Git, server: SmartServer, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> AsyncIterator[Repositories]:
    """Make a second repository; yield repositories whose cache has room for one mirror and a half."""
    bare.commit(manifests(), parent="refs/heads/main^0", message=os.urandom(50_000).hex())
    shutil.copytree(bare.directory, tmp_path / "second.git")
    measuring = Repositories(tmp_path / "measured", runner=runner, clock=clock, allow_local=False)
    await measuring.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD)).head("main")
    await measuring.close()
    size = sum(file.stat().st_size for file in (tmp_path / "measured").rglob("*") if file.is_file())
    repositories = Repositories(
        tmp_path / "cache", runner=runner, clock=clock, allow_local=False, cache_size=size * 3 // 2
    )
    yield repositories
    await repositories.close()


async def test_the_mirror_that_was_not_used_for_longest_makes_room(
    cramped: Repositories, server: SmartServer, bare: Git, tmp_path: Path
) -> None:
    one, two = (
        cramped.open(f"{server.url}/{name}.git", GitCredentials(USER, PASSWORD)) for name in ("gitops", "second")
    )
    head = await one.head("main")
    (first,) = mirrors(tmp_path)
    await two.head("main")
    assert first not in mirrors(tmp_path)
    assert len(mirrors(tmp_path)) == 1
    # It comes back as soon as it is asked for, whatever the question is.
    assert await one.read(head.commit, "README.md") == b"hello\n"
    await two.head("main")
    landed = await one.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit


async def test_a_mirror_that_is_held_makes_no_room(cramped: Repositories, server: SmartServer, tmp_path: Path) -> None:
    """Refuse the second of two that an edit reads by turns: they would make room for each other for ever."""
    one, two = (
        cramped.open(f"{server.url}/{name}.git", GitCredentials(USER, PASSWORD)) for name in ("gitops", "second")
    )
    await one.head("main")
    (first,) = mirrors(tmp_path)
    releases = [one.hold(), one.hold()]
    with pytest.raises(CacheFull):
        await two.head("main")
    releases[0]()
    with pytest.raises(CacheFull):
        await two.head("main")
    assert first in mirrors(tmp_path)
    releases[1]()
    await two.head("main")
    assert first not in mirrors(tmp_path)


async def test_a_mirror_in_use_is_not_deleted(
    cramped: Repositories, server: SmartServer, bare: Git, tmp_path: Path
) -> None:
    one, two = (
        cramped.open(f"{server.url}/{name}.git", GitCredentials(USER, PASSWORD)) for name in ("gitops", "second")
    )
    head = await one.head("main")
    (first,) = mirrors(tmp_path)
    loop = asyncio.get_running_loop()

    def fetch_the_other(tree: object) -> bool:
        with pytest.raises(CacheFull):
            asyncio.run_coroutine_threadsafe(two.head("main"), loop).result(30)
        return first in mirrors(tmp_path)

    assert await one.inspect(head.commit, fetch_the_other)
    await two.head("main")
    assert first not in mirrors(tmp_path)


async def test_a_push_does_not_fail_because_a_fetch_holds_the_branch_in_the_mirror(
    remote: Repository, bare: Git, tmp_path: Path
) -> None:
    proposal = "kardinal/app-1/dev"
    await remote.propose(proposal, base="main", edit=setting("dev", b"v2\n"), message=message("dev"))
    (mirror,) = mirrors(tmp_path)
    locks = [mirror / "refs" / "heads" / f"{name}.lock" for name in ("main", proposal)]
    for lock in locks:
        lock.touch()
    await remote.delete_branch(proposal)
    landed = await remote.land("main", setting("prod", b"v2\n"), message("prod"))
    assert bare("branch", "--format=%(refname:short) %(objectname)") == f"main {landed.commit}"
    for lock in locks:
        lock.unlink()
    assert await remote.find("main", message("prod").trailers) == landed.commit


async def test_a_mirror_is_not_shallow(remote: Repository, bare: Git, tmp_path: Path) -> None:
    tip = bare("rev-parse", "main")
    for number in range(3):
        tip = bare.commit({**manifests(), "README.md": f"{number}\n"}, parent=tip)
    first = bare("rev-list", "--max-parents=0", "main")
    assert await remote.contains("main", first)
    assert not (mirrors(tmp_path)[0] / "shallow").exists()


async def test_a_large_file_that_is_not_read_does_not_count(
    server: SmartServer, bare: Git, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    head = bare("rev-parse", "main")
    large = "".join(f"{number * 7919 % 1000003}\n" for number in range(100_000))
    bare.commit({**manifests(), "environments/dev/model.bin": large}, parent=head)
    repositories = Repositories(
        tmp_path / "cache", runner=runner, clock=clock, allow_local=False, limits=TransferLimits(file=256 << 10)
    )
    remote = repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD))
    source = "environments/dev/kustomization.yaml"
    assert (await remote.land("main", copying(source, source), message("dev"))).changed
    await repositories.close()


async def test_files_may_take_longer_than_the_list_of_branches(
    server: SmartServer, bare: Git, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    # More than one line of the protocol.
    content = os.urandom(200_000).hex()
    bare.commit({**manifests(), "README.md": content}, parent="refs/heads/main^0")
    limits = TransferLimits(advertisement=2)
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False, limits=limits)
    remote = repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD))
    head = await remote.head("main")

    def send_slowly(exchange: Exchange, path: str) -> bool:
        if exchange.command != "POST":
            return False
        head, _, answer = exchange.ask_git().partition(b"\r\n\r\n")
        exchange.send_response(200)
        for line in head.decode().splitlines():
            exchange.send_header(*line.split(": ", 1))
        exchange.send_header("Content-Length", str(len(answer)))
        exchange.end_headers()
        exchange.wfile.write(answer[:-30])
        exchange.wfile.flush()
        # Longer than the limit that must not count here.
        threading.Event().wait(3)
        exchange.wfile.write(answer[-30:])
        return True

    server.trouble = send_slowly
    assert await remote.read(head.commit, "README.md") == content.encode()
    await repositories.close()
