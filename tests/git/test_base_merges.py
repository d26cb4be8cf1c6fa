"""A merge of the base that is on the branch of a proposal, as "Update branch" makes it, is no commit of others."""

from __future__ import annotations

import pytest

from kardinal.git import Landed, Repository
from kardinal.git.discarding import OwnCommit
from kardinal.tree.commit_message import KARDINAL
from tests.git.conftest import Git, manifests, message, setting

BRANCH = "kardinal/team/app-1/prod"
PATH = "environments/prod/kustomization.yaml"
OWN = OwnCommit(trailers=message("prod").trailers, committer=KARDINAL)


@pytest.fixture(params=["local", "remote"])
def repository(request: pytest.FixtureRequest, repository: Repository) -> Repository:
    """Return a repository on this machine, or the mirror of one, which lacks the contents of most files."""
    return repository if request.param == "local" else request.getfixturevalue("remote")


async def propose(repository: Repository, *, ours: str | None = None, content: bytes = b"v2\n") -> Landed:
    """Propose the content of a file, on what is at the host now."""
    await repository.head("main")
    edit = setting("prod", content)
    return await repository.propose(BRANCH, base="main", edit=edit, message=message("prod"), ours=ours)


def go_on(bare: Git, text: str = "others went on\n", *, branch: str = "main") -> str:
    """Change a file of the base that no promotion writes."""
    return bare.commit({**manifests(), "README.md": text}, branch=branch, parent=f"refs/heads/{branch}^0")


def update_branch(bare: Git, files: dict[str, str], *, base: str = "main", text: str = "Merge main") -> str:
    """Merge the base into the branch as a host does, so that the branch has exactly these files."""
    parent = f"refs/heads/{BRANCH}^0"
    merged = f"refs/heads/{base}^0"
    return bare.commit({**manifests(), **files}, branch=BRANCH, parent=parent, merged=merged, message=text)


UPDATED = {"README.md": "others went on\n", PATH: "v2\n"}


async def test_the_merge_is_adopted_as_if_the_promotions_own_commit_was_the_tip(
    repository: Repository, bare: Git
) -> None:
    await propose(repository)
    go_on(bare)
    merged = update_branch(bare, UPDATED)
    for ours in (None, merged):
        again = await propose(repository, ours=ours)
        assert (again.commit, again.adopted, again.shared) == (merged, True, False)
    go_on(bare, "and on\n")
    merged = update_branch(bare, {**UPDATED, "README.md": "and on\n"})
    again = await propose(repository)
    assert (again.commit, again.adopted, again.shared) == (merged, True, False)


async def test_a_proposal_with_a_merge_is_made_anew_when_its_file_changes_on_the_base(
    repository: Repository, bare: Git
) -> None:
    await propose(repository)
    go_on(bare)
    update_branch(bare, UPDATED)
    bare.commit({**manifests(), PATH: "changed\n"}, parent="refs/heads/main^0")
    again = await propose(repository)
    assert not again.adopted
    assert bare("rev-parse", f"{BRANCH}^@") == bare("rev-parse", "main")


async def test_a_merge_that_brings_something_of_its_own_is_a_commit_of_others(
    repository: Repository, bare: Git
) -> None:
    await propose(repository)
    go_on(bare)
    merged = update_branch(bare, {**UPDATED, "base/deployment.yaml": "kind: Backdoor\n"})
    again = await propose(repository)
    assert (again.commit, again.shared) == (merged, True)
    assert not await repository.discard(BRANCH, base="main", own=OWN)


async def test_a_merge_of_another_branch_is_a_commit_of_others(repository: Repository, bare: Git) -> None:
    await propose(repository)
    bare("update-ref", "refs/heads/elsewhere", "main")
    go_on(bare, branch="elsewhere")
    update_branch(bare, UPDATED, base="elsewhere")
    assert (await propose(repository)).shared


async def test_a_merge_that_claims_to_be_a_promotion_is_a_commit_of_others(repository: Repository, bare: Git) -> None:
    await propose(repository)
    go_on(bare)
    update_branch(bare, UPDATED, text="Merge main\n\nKardinal-Bundle: another-1")
    assert (await propose(repository)).shared


async def test_a_reviewers_commit_below_the_merge_stays_one(repository: Repository, bare: Git) -> None:
    await propose(repository)
    bare.commit({**manifests(), PATH: "v2 but better\n"}, branch=BRANCH, parent=f"refs/heads/{BRANCH}^0")
    go_on(bare)
    merged = update_branch(bare, {**UPDATED, PATH: "v2 but better\n"})
    again = await propose(repository, ours=merged)
    assert (again.commit, again.shared) == (merged, True)


async def test_a_branch_with_the_merge_is_removed_as_one_without(repository: Repository, bare: Git) -> None:
    await propose(repository)
    go_on(bare)
    update_branch(bare, UPDATED)
    assert await repository.discard(BRANCH, base="main", own=OWN)
    assert bare("branch", "--list", BRANCH) == ""


async def test_a_merge_of_two_changes_of_one_file_is_none_of_others(repository: Repository, bare: Git) -> None:
    lines = "one\ntwo\nthree\nfour\nfive\n"
    bare.commit({**manifests(), PATH: lines}, parent="refs/heads/main^0")
    wanted = lines.replace("five", "v2").encode()
    await propose(repository, content=wanted)
    bare.commit({**manifests(), PATH: f"zero\n{lines}"}, parent="refs/heads/main^0")
    update_branch(bare, {PATH: f"zero\n{lines.replace('five', 'v2')}"})
    again = await propose(repository, content=wanted)
    # The edit overwrites what the base has added, so it is made anew; nothing of others was in the way.
    assert not again.adopted
    update_branch(bare, {PATH: f"zero\n{lines.replace('five', 'evil')}"})
    assert (await propose(repository, content=wanted)).shared
