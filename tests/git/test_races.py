"""Several processes on one repository on this machine: no commit of any of them is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pygit2
import pytest

from kardinal.clock import SystemClock
from kardinal.git import GitRunner, PushRejected, Repositories, Repository
from kardinal.scm import NewPullRequest, local_pull_requests
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.edit import Tree
from tests.git.conftest import Git, manifests, message, setting, until

WORKER = Path(__file__).with_name("worker.py")
ROOT = WORKER.parents[2]


def start_worker(bare: Git, name: str, count: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(WORKER), str(bare.directory), name, str(count)]
    return subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})


def start_pushing(bare: Git, clone: Path, count: int) -> subprocess.Popen[bytes]:
    """Commit and push as a person does, pulling first whenever another push was faster."""
    subprocess.run(["git", "clone", "-q", str(bare.directory), str(clone)], check=True)
    script = f"""
        for number in $(seq {count}); do
            echo $number > "person-$number" && git add . && git commit -q -m "person $number" || exit 1
            until git push -q origin main 2>/dev/null; do git pull -q --rebase origin main || exit 1; done
        done
    """
    return subprocess.Popen(["sh", "-c", script], cwd=clone, env=bare.environment)


async def finished(*processes: subprocess.Popen[bytes]) -> None:
    assert await asyncio.gather(*(asyncio.to_thread(process.wait, 50) for process in processes)) == [0] * len(processes)


async def until_commits(bare: Git, count: int) -> None:
    # Asked of libgit2, and not of a program: the processes that race need the processor.
    repository = pygit2.Repository(str(bare.directory))
    await until(lambda: sum(1 for _ in repository.walk(repository.references["refs/heads/main"].target)) > count)


def subjects(bare: Git) -> list[str]:
    return bare("log", "--format=%s", "main").splitlines()


async def test_a_commit_pushed_while_an_edit_is_being_made_is_kept(
    repository: Repository, bare: Git, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    bare("clone", "-q", str(bare.directory), str(clone))
    person = Git(clone)
    (clone / "README.md").write_text("other\n")
    person("commit", "-qam", "person")
    edits = 0

    def edit(tree: Tree) -> dict[str, bytes]:
        nonlocal edits
        edits += 1
        if edits == 1:
            # The tip has been read, and nothing is written yet.
            person("push", "-q", "origin", "main")
        return {"environments/dev/kustomization.yaml": b"v2\n"}

    await repository.land("main", edit, message("dev"))
    assert edits == 2
    assert subjects(bare) == ["promote app-1 to dev", "person", "Begin"]
    assert bare("show", "main:README.md") == "other"


async def test_a_branch_created_while_a_proposal_is_being_made_is_not_overwritten(
    repository: Repository, bare: Git
) -> None:
    def edit(tree: Tree) -> dict[str, bytes]:
        bare("update-ref", "refs/heads/kardinal/app-1/dev", other)
        return {"environments/dev/kustomization.yaml": b"v2\n"}

    other = bare("commit-tree", "main^{tree}", "-p", "main", "-m", "somebody's own")
    with pytest.raises(PushRejected, match="was not made by this promotion"):
        await repository.propose("kardinal/app-1/dev", base="main", edit=edit, message=message("dev"))
    assert bare("rev-parse", "kardinal/app-1/dev") == other


async def test_agents_a_person_who_pushes_and_merged_pull_requests_lose_no_commit(
    repository: Repository, bare: Git, tmp_path: Path
) -> None:
    pulls = local_pull_requests(repository, clock=SystemClock())

    async def review(number: int) -> None:
        head = f"kardinal/review-{number}"

        def edit(tree: Tree) -> dict[str, bytes]:
            return {f"review/{number}.yaml": b"reviewed\n"}

        trailers = {"Kardinal-Step": f"review-{number}"}
        await repository.propose(head, base="main", edit=edit, message=CommitMessage(f"review {number}", "", trailers))
        pull = await pulls.open(NewPullRequest(title="", body="", head=head, base="main"))
        await pulls.merge(pull.number, by="reviewer")

    agents = [start_worker(bare, "one", 12), start_worker(bare, "two", 12)]
    person = start_pushing(bare, tmp_path / "clone", 4)
    await asyncio.gather(*(review(number) for number in range(4)))
    await finished(*agents, person)
    expected = [f"{name} {number}" for name in ("one", "two") for number in range(12)]
    expected += [f"person {number}" for number in range(1, 5)] + [f"review {number}" for number in range(4)]
    assert sorted(subjects(bare)) == sorted([*expected, "Begin"])
    assert bare("rev-list", "--count", "--merges", "main") == "0"
    assert len(bare("ls-tree", "-r", "--name-only", "main").split()) == len(manifests()) + 32
    bare("fsck", "--strict")


async def test_packing_references_meanwhile_loses_nothing(repository: Repository, bare: Git) -> None:
    async def pack() -> None:
        for _ in range(10):
            await asyncio.to_thread(bare, "pack-refs", "--all", "--prune")

    async def promote() -> None:
        for number in range(30):
            await repository.land("main", setting("dev", b"v%d\n" % number), message("dev", f"app-{number}"))

    await asyncio.gather(pack(), promote())
    assert len(subjects(bare)) == 31


async def test_two_agents_on_one_step_make_one_commit(
    repository: Repository, bare: Git, tmp_path: Path, runner: GitRunner
) -> None:
    others = Repositories(tmp_path / "other", runner=runner, clock=SystemClock(), allow_local=True)
    other = others.open(repository.url)
    results = await asyncio.gather(
        *(one.land("main", setting("dev", b"v2\n"), message("dev")) for one in (repository, other) for _ in range(3))
    )
    assert len({landed.commit for landed in results}) == 1
    assert len(subjects(bare)) == 2
    await others.close()


async def test_a_process_killed_at_any_moment_loses_nothing_and_repeats_nothing(
    repository: Repository, bare: Git
) -> None:
    for reached in (4, 11):
        worker = start_worker(bare, "one", 20)
        await until_commits(bare, reached)
        worker.kill()
        worker.wait()
        # Whatever it held is free for the next one.
        await repository.land("main", setting("dev", b"v%d\n" % reached), message("dev", f"app-{reached}"))
    await finished(start_worker(bare, "one", 20))
    expected = [f"one {number}" for number in range(20)] + [f"promote app-{n} to dev" for n in (4, 11)]
    assert sorted(subjects(bare)) == sorted([*expected, "Begin"])
    bare("fsck", "--strict")
