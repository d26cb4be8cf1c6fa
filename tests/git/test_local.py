"""Repositories on this machine as people have them: with a work tree, linked, missing, damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.git import (
    DamagedRepository,
    GitError,
    GitRunner,
    InvalidBranchName,
    PushRejected,
    Repositories,
    Repository,
    RepositoryUnreachable,
    create_bare_repository,
)
from kardinal.tree.repository_url import LocalRepositoryRefused
from tests.git.conftest import Git, manifests, message, setting
from tests.support.clock import VirtualClock


@pytest.fixture
def work_tree(bare: Git, tmp_path: Path) -> Git:
    """Return a clone with main checked out."""
    bare("clone", "-q", str(bare.directory), str(tmp_path / "work"))
    return Git(tmp_path / "work")


async def test_a_branch_that_is_checked_out_is_not_moved(repositories: Repositories, work_tree: Git) -> None:
    before = work_tree("rev-parse", "main")
    repository = repositories.open(str(work_tree.directory))
    with pytest.raises(PushRejected, match="main is checked out") as caught:
        await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert "git clone --bare" in caught.value.remedy
    assert work_tree("rev-parse", "main") == before
    assert work_tree("status", "--porcelain") == ""


async def test_a_branch_that_is_not_checked_out_is_moved(repositories: Repositories, work_tree: Git) -> None:
    work_tree("branch", "release")
    repository = repositories.open(str(work_tree.directory))
    landed = await repository.land("release", setting("dev", b"v2\n"), message("dev"))
    assert work_tree("rev-parse", "release") == landed.commit


async def test_a_branch_checked_out_in_a_linked_work_tree_is_not_moved(
    repository: Repository, bare: Git, tmp_path: Path
) -> None:
    bare("worktree", "add", "-q", str(tmp_path / "linked"), "main")
    with pytest.raises(PushRejected, match="main is checked out"):
        await repository.land("main", setting("dev", b"v2\n"), message("dev"))


async def test_a_linked_work_tree_is_not_taken_for_the_repository(
    repositories: Repositories, bare: Git, tmp_path: Path
) -> None:
    bare("worktree", "add", "-q", str(tmp_path / "linked"), "main")
    with pytest.raises(RepositoryUnreachable, match="linked work tree"):
        await repositories.open(str(tmp_path / "linked")).head("main")


async def test_a_path_without_a_repository_says_how_to_make_one(repositories: Repositories, tmp_path: Path) -> None:
    with pytest.raises(RepositoryUnreachable, match="git init --bare"):
        await repositories.open(str(tmp_path / "nothing.git")).head("main")
    (tmp_path / "something").mkdir()
    with pytest.raises(RepositoryUnreachable, match="not a Git repository"):
        await repositories.open(str(tmp_path / "something")).head("main")


async def test_a_repository_that_is_moved_away_is_waited_for(repositories: Repositories, bare: Git) -> None:
    repository = repositories.open(str(bare.directory))
    head = await repository.head("main")
    away = bare.directory.rename(bare.directory.with_name("away.git"))
    with pytest.raises(RepositoryUnreachable, match="no repository at") as of_head:
        await repository.head("main")
    with pytest.raises(RepositoryUnreachable, match="no repository at") as of_edit:
        await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert of_head.value.transient
    assert of_edit.value.transient
    away.rename(bare.directory)
    assert await repository.head("main") == head


async def test_a_shallow_repository_ends_where_its_history_does(
    repositories: Repositories, bare: Git, tmp_path: Path
) -> None:
    for number in range(3):
        files = {**manifests(), "README.md": f"{number}\n"}
        bare.commit(files, parent="refs/heads/main^0")
    bare("clone", "-q", "--bare", "--depth=2", bare.directory.as_uri(), str(tmp_path / "shallow.git"))
    repository = repositories.open(str(tmp_path / "shallow.git"))
    assert (await repository.land("main", setting("dev", b"v2\n"), message("dev"))).changed
    assert len(await repository.log("main", 10)) == 3


async def test_local_repositories_need_permission(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> None:
    repositories = Repositories(tmp_path, runner=runner, clock=clock, allow_local=False)
    for url in ("/srv/gitops.git", "file:///srv/gitops.git"):
        with pytest.raises(LocalRepositoryRefused, match="--allow-local-repositories"):
            repositories.open(url)


async def test_both_spellings_of_a_path_are_the_same_repository(repositories: Repositories, bare: Git) -> None:
    assert repositories.open(str(bare.directory)) is repositories.open(bare.directory.as_uri())


async def test_a_damaged_reference_is_named_and_not_overwritten(repository: Repository, bare: Git) -> None:
    (bare.directory / "refs" / "heads" / "main").write_text("rubbish\n")
    with pytest.raises(DamagedRepository, match="main holds no object id"):
        await repository.land("main", setting("dev", b"v2\n"), message("dev"))


async def test_a_branch_that_is_a_symbolic_reference_is_refused(repository: Repository, bare: Git) -> None:
    bare("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    with pytest.raises(PushRejected, match="alias is a symbolic reference"):
        await repository.land("alias", setting("dev", b"v2\n"), message("dev"))


@pytest.mark.parametrize(
    "branch", ["", "a..b", "-x", "../x", "a.lock", "a//b", "/a", "a/", "x y", "a\nb", "HEAD", ".a", "@{1}"]
)
async def test_a_name_git_would_refuse_is_refused(repository: Repository, branch: str) -> None:
    with pytest.raises(InvalidBranchName):
        await repository.head(branch)
    with pytest.raises(InvalidBranchName):
        await repository.land(branch, setting("dev", b"v2\n"), message("dev"))


async def test_a_new_repository_has_its_files_and_its_branch(
    repositories: Repositories, runner: GitRunner, tmp_path: Path, clock: VirtualClock
) -> None:
    path = tmp_path / "new.git"
    files = {"a/b/c.yaml": b"c\n", "d.yaml": b"d\n"}
    await runner.run(lambda: create_bare_repository(path, files, branch="trunk", clock=clock))
    git = Git(path)
    assert git("symbolic-ref", "HEAD") == "refs/heads/trunk"
    assert git("ls-tree", "-r", "--name-only", "trunk").split() == ["a/b/c.yaml", "d.yaml"]
    git("fsck", "--strict")
    assert await repositories.open(str(path)).read((await repositories.open(str(path)).head("trunk")).commit, "d.yaml")


async def test_a_remote_repository_is_neither_watched_nor_keeps_records(repositories: Repositories) -> None:
    repository = repositories.open("https://example.org/gitops.git")
    assert not repository.local
    with pytest.raises(GitError, match="can not be watched"):
        repository.watch(lambda: None)
    with pytest.raises(GitError, match="can not keep records"):
        repository.references  # noqa: B018
