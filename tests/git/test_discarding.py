"""A branch is removed without its Bundle only if others lose nothing, and after what is under way on it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from kardinal.git import Repository
from kardinal.git.discarding import OwnCommit
from kardinal.tree.commit_message import KARDINAL
from kardinal.tree.edit import Tree
from tests.git.conftest import Git, manifests, message, setting

BRANCH = "kardinal/team/app-1/prod"
PATH = "environments/prod/kustomization.yaml"
OWN = OwnCommit(trailers=message("prod").trailers, committer=KARDINAL)


async def propose(repository: Repository) -> str:
    edit = setting("prod", b"v2\n")
    return (await repository.propose(BRANCH, base="main", edit=edit, message=message("prod"))).commit


async def test_a_branch_with_the_commit_of_kardinal_alone_is_removed(repository: Repository, bare: Git) -> None:
    await propose(repository)
    assert await repository.discard(BRANCH, base="main", own=OWN)
    assert bare("branch", "--list", BRANCH) == ""
    assert await repository.discard(BRANCH, base="main", own=OWN)


@pytest.mark.parametrize("own", [replace(OWN, trailers={"Kardinal-Uid": "another"}), replace(OWN, committer="a <b@c>")])
async def test_a_commit_that_is_not_the_promotions_own_stays(repository: Repository, bare: Git, own: OwnCommit) -> None:
    commit = await propose(repository)
    assert not await repository.discard(BRANCH, base="main", own=own)
    assert bare("rev-parse", BRANCH) == commit


async def test_commits_of_others_stay_until_merged(repository: Repository, bare: Git) -> None:
    added = bare.commit({**manifests(), PATH: "v3\n"}, branch=BRANCH, parent=await propose(repository))
    assert not await repository.discard(BRANCH, base="main", own=OWN)
    assert bare("rev-parse", BRANCH) == added
    assert await repository.discard(BRANCH, base="main", own=replace(OWN, merged=added))
    assert bare("branch", "--list", BRANCH) == ""


async def test_branch_contained_in_the_base_is_removed(repository: Repository, bare: Git) -> None:
    added = bare.commit({**manifests(), PATH: "v3\n"}, branch=BRANCH, parent=await propose(repository))
    bare("update-ref", "refs/heads/main", added)
    assert await repository.discard(BRANCH, base="main", own=OWN)
    assert bare("rev-parse", "main") == added


async def test_a_push_that_its_caller_has_given_up_is_waited_for(repository: Repository, bare: Git) -> None:
    begun = threading.Event()
    go_on = threading.Event()

    def slow(tree: Tree) -> dict[str, bytes]:
        begun.set()
        go_on.wait(10)
        return {PATH: b"v2\n"}

    pushing = asyncio.create_task(repository.propose(BRANCH, base="main", edit=slow, message=message("prod")))
    await asyncio.to_thread(begun.wait)
    pushing.cancel()
    await asyncio.wait((pushing,))
    discarding = asyncio.create_task(repository.discard(BRANCH, base="main", own=OWN))
    await asyncio.sleep(0)
    assert not discarding.done()
    go_on.set()
    assert await discarding
    assert bare("branch", "--list", BRANCH) == ""
