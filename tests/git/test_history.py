"""Finding a commit by its trailers, and knowing where to stop."""

from __future__ import annotations

import pytest

from kardinal.git import FIND_DEPTH, Repository
from kardinal.tree.commit_message import CommitMessage, parse_trailers
from tests.git.conftest import Git, message, setting


async def test_a_commit_is_found_by_all_its_trailers_and_the_newest_wins(repository: Repository, bare: Git) -> None:
    await repository.land("main", setting("dev", b"v1\n"), message("dev", "app-1"))
    second = await repository.land("main", setting("dev", b"v2\n"), message("dev", "app-2"))
    third = await repository.land("main", setting("prod", b"v2\n"), message("prod", "app-2"))
    assert await repository.find("main", {"Kardinal-Bundle": "app-2"}) == third.commit
    dev = {"Kardinal-Bundle": "app-2", "Kardinal-Environment": "dev"}
    assert await repository.find("main", dev) == second.commit
    assert await repository.find("main", dev, since=second.commit) is None
    assert await repository.find("main", {**dev, "Kardinal-Step": "other"}) is None
    assert await repository.find("main", {}) is None


async def test_a_commit_behind_a_merge_is_found(repository: Repository, bare: Git) -> None:
    landed = await repository.propose("topic", base="main", edit=setting("dev", b"v2\n"), message=message("dev"))
    merge = bare("commit-tree", "main^{tree}", "-p", "main", "-p", "topic", "-m", "merge by hand")
    bare("update-ref", "refs/heads/main", merge)
    assert await repository.find("main", {"Kardinal-Step": "app-1-dev"}) == landed.commit
    assert await repository.contains("main", landed.commit)


async def test_the_search_ends_at_a_depth(repository: Repository, bare: Git) -> None:
    def commits(count: int, first: str) -> str:
        lines = [f"commit refs/heads/main\ncommitter a <a@b> {n} +0000\ndata 2\nx\n" for n in range(count)]
        return "\n".join([lines[0] + first, *lines[1:]])

    landed = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    bare("fast-import", "--quiet", input=commits(FIND_DEPTH - 1, f"from {landed.commit}\n"))
    assert await repository.find("main", message("dev").trailers) == landed.commit
    bare("fast-import", "--quiet", input=commits(1, f"from {bare('rev-parse', 'main')}\n"))
    assert await repository.find("main", message("dev").trailers) is None


async def test_a_log_begins_at_the_head_and_reads_what_others_wrote(repository: Repository, bare: Git) -> None:
    await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    newest, first = await repository.log("main", 10)
    assert newest.parents == (first.id,)
    assert newest.subject == "promote app-1 to dev"
    assert newest.author == "kardinal <kardinal@localhost>"
    assert newest.trailers["Kardinal-Bundle"] == "app-1"
    assert first.author == "Somebody Else <somebody@example.com>"
    assert [commit.id for commit in await repository.log("main", 1)] == [newest.id]


async def test_a_branch_contains_its_ancestors_and_nothing_else(repository: Repository, bare: Git) -> None:
    first = (await repository.head("main")).commit
    landed = await repository.propose("topic", base="main", edit=setting("dev", b"v2\n"), message=message("dev"))
    assert await repository.contains("topic", first)
    assert await repository.contains("main", first)
    assert not await repository.contains("main", landed.commit)
    assert not await repository.contains("main", "1" * 40)


async def test_a_revision_includes_what_is_before_it(repository: Repository, bare: Git) -> None:
    first = (await repository.head("main")).commit
    landed = (await repository.land("main", setting("dev", b"v2\n"), message("dev"))).commit
    assert await repository.includes("main", landed, first) is True
    assert await repository.includes("main", landed, landed) is True
    assert await repository.includes("main", first, landed) is False


async def test_a_revision_that_is_no_commit_here_includes_nothing_that_is_known(
    repository: Repository, bare: Git
) -> None:
    first = (await repository.head("main")).commit
    tree = bare("rev-parse", "main^{tree}")
    for unknown in ("1" * 40, "1" * 64, tree):
        assert await repository.includes("main", unknown, first) is None
        assert await repository.includes("main", first, unknown) is None


def test_a_message_is_a_subject_a_body_and_trailers() -> None:
    text = str(CommitMessage("promote\nto  dev", "body\n\nmore: text", {"Kardinal-Bundle": "app-1", "Key": "a: b"}))
    assert text == "promote to dev\n\nbody\n\nmore: text\n\nKardinal-Bundle: app-1\nKey: a: b\n"
    assert parse_trailers(text) == {"Kardinal-Bundle": "app-1", "Key": "a: b"}


def test_lines_others_add_to_the_trailers_do_no_harm() -> None:
    text = "subject\n\nA: 1\n(cherry picked from commit 123)\nSigned-off-by: x <x@y>\n"
    assert parse_trailers(text) == {"A": "1", "Signed-off-by": "x <x@y>"}
    assert parse_trailers("A: 1\n") == parse_trailers("subject\n\nA: 1\n\nlast words\n") == {}


@pytest.mark.parametrize(("key", "value"), [("A B", "x"), ("A", "x\nB: y"), ("A", ""), ("A", " "), ("", "x")])
def test_a_trailer_can_not_smuggle_in_another(key: str, value: str) -> None:
    with pytest.raises(ValueError, match="can not be a trailer"):
        CommitMessage("s", "", {key: value})
