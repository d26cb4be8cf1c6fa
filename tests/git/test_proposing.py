"""Proposals: an edit on a branch of its own, found again after a restart."""

from __future__ import annotations

import pytest

from kardinal.git import PushRejected, Repository
from kardinal.tree.edit import Tree
from tests.git.conftest import Git, manifests, message, setting

BRANCH = "kardinal/app-1/prod"
PATH = "environments/prod/kustomization.yaml"


async def test_a_proposal_stands_on_the_head_of_its_base(repository: Repository, bare: Git) -> None:
    landed = await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    assert landed.changed
    assert bare("rev-parse", f"{BRANCH}^") == bare("rev-parse", "main")
    assert bare("diff", "--name-only", "main", BRANCH) == PATH


async def test_proposing_again_adopts_what_is_there(repository: Repository, bare: Git) -> None:
    first = await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    bare.commit({**manifests(), "README.md": "elsewhere\n"}, parent="refs/heads/main^0")
    again = await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    assert again.adopted
    assert again.commit == first.commit


async def test_a_proposal_is_made_anew_when_its_file_has_changed_on_the_base(repository: Repository, bare: Git) -> None:
    def appending(tree: Tree) -> dict[str, bytes]:
        return {PATH: (tree.read(PATH) or b"") + b"added\n"}

    first = await repository.propose(BRANCH, base="main", edit=appending, message=message("prod"))
    bare.commit({**manifests(), PATH: "changed\n"}, parent="refs/heads/main^0")
    again = await repository.propose(BRANCH, base="main", edit=appending, message=message("prod"))
    assert not again.adopted
    assert again.commit != first.commit
    assert bare("rev-parse", f"{BRANCH}^") == bare("rev-parse", "main")
    assert bare("show", f"{BRANCH}:{PATH}") == "changed\nadded"


async def test_a_proposal_that_says_the_same_is_made_anew_when_the_base_changed_the_same_lines(
    repository: Repository, bare: Git
) -> None:
    await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    bare.commit({**manifests(), PATH: "changed\n"}, parent="refs/heads/main^0")
    again = await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    assert not again.adopted
    assert (await repository.merge("main", again.commit)).commit == bare("rev-parse", "main") == again.commit


async def test_commit_of_a_reviewer_is_not_thrown_away(repository: Repository, bare: Git) -> None:
    await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    addition = bare.commit({**manifests(), PATH: "v2 but better\n"}, branch=BRANCH, parent=bare("rev-parse", BRANCH))
    again = await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))
    assert (again.commit, again.adopted) == (addition, True)


async def test_a_branch_that_is_not_ours_is_not_touched(repository: Repository, bare: Git) -> None:
    bare("update-ref", f"refs/heads/{BRANCH}", "main")
    with pytest.raises(PushRejected, match="Delete or rename it"):
        await repository.propose(BRANCH, base="main", edit=setting("prod", b"v2\n"), message=message("prod"))


async def test_nothing_to_propose_makes_no_branch(repository: Repository, bare: Git) -> None:
    current = manifests()[PATH].encode()
    landed = await repository.propose(BRANCH, base="main", edit=setting("prod", current), message=message("prod"))
    assert not landed.changed
    assert landed.commit == bare("rev-parse", "main")
    assert bare("branch", "--list", BRANCH) == ""
