"""Edits on a branch of a repository on this machine."""

from __future__ import annotations

import asyncio

import pytest

from kardinal.git import BranchNotFound, Repository
from kardinal.tree.edit import EditError, Tree
from tests.git.conftest import Git, manifests, message, setting
from tests.support.clock import VirtualClock


async def test_an_edit_becomes_one_commit_that_git_reads(
    repository: Repository, bare: Git, clock: VirtualClock
) -> None:
    before = await repository.head("main")
    landed = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert landed.changed
    assert not landed.adopted
    assert bare("rev-parse", "main") == landed.commit
    assert bare("rev-parse", "main^") == before.commit
    assert bare("rev-parse", "main^{tree}") == landed.tree
    assert bare("diff", "--name-only", before.commit, landed.commit) == "environments/dev/kustomization.yaml"
    assert bare("show", "-s", "--format=%(trailers:key=Kardinal-Step,valueonly)", "main") == "app-1-dev"
    assert (
        bare("show", "-s", "--format=%an <%ae> %ct", "main")
        == f"kardinal <kardinal@localhost> {int(clock.now().timestamp())}"
    )
    bare("fsck", "--strict")


async def test_an_edit_that_is_on_the_branch_already_is_found_by_its_trailers(repository: Repository) -> None:
    first = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    await repository.land("main", setting("dev", b"v3\n"), message("dev", "app-2"))
    again = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert again.commit == first.commit
    assert again.adopted
    assert len(await repository.log("main", 10)) == 3


async def test_content_that_is_there_already_makes_no_commit(repository: Repository) -> None:
    head = await repository.head("main")
    current = manifests()["environments/dev/kustomization.yaml"].encode()
    landed = await repository.land("main", setting("dev", current), message("dev"))
    assert (landed.commit, landed.tree, landed.changed) == (head.commit, head.tree, False)


async def test_edits_that_arrive_together_are_one_commit_each(repository: Repository, bare: Git) -> None:
    landed = await asyncio.gather(
        *(repository.land("main", setting("dev", b"v%d\n" % n), message("dev", f"app-{n}")) for n in range(20))
    )
    assert len({one.commit for one in landed}) == 20
    assert bare("rev-list", "--count", "main") == "21"
    bare("fsck", "--strict")


async def test_an_edit_that_fails_does_not_take_its_neighbours_with_it(repository: Repository, bare: Git) -> None:
    def broken(tree: Tree) -> dict[str, bytes]:
        raise EditError("spec.update", "no such image")

    results = await asyncio.gather(
        repository.land("main", setting("dev", b"v2\n"), message("dev")),
        repository.land("main", broken, message("staging")),
        repository.land("main", setting("prod", b"v2\n"), message("prod")),
        return_exceptions=True,
    )
    assert isinstance(results[1], EditError)
    assert bare("rev-list", "--count", "main") == "3"


async def test_a_plan_shows_the_change_and_writes_nothing(repository: Repository, bare: Git) -> None:
    head = await repository.head("main")
    objects = bare("count-objects")
    plan = await repository.plan(head.commit, setting("dev", b"v2\n"))
    assert [(change.path, change.after) for change in plan.changes] == [
        ("environments/dev/kustomization.yaml", b"v2\n")
    ]
    assert plan.changes[0].before == manifests()["environments/dev/kustomization.yaml"].encode()
    assert bare("count-objects") == objects
    landed = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert landed.tree == plan.tree


async def test_a_branch_that_does_not_exist_is_named(repository: Repository) -> None:
    with pytest.raises(BranchNotFound, match="no branch release"):
        await repository.land("release", setting("dev", b"v2\n"), message("dev"))
    with pytest.raises(BranchNotFound, match="no branch release"):
        await repository.head("release")
