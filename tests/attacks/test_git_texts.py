"""Attacks by texts that cost much to compare: lines that repeat themselves, and very many of them."""

from __future__ import annotations

import pytest

from kardinal.git import MergeConflict, Repository, diff
from kardinal.git.lines import STEPS, Effort
from tests.git.conftest import Git, bare, manifests, message, repositories, repository, runner, setting

__all__ = ["bare", "repositories", "repository", "runner"]

FILE = "environments/dev/kustomization.yaml"
MIB = 1 << 20
TWOS = b"a\nb\n" * 15_000
THREES = b"b\na\na\n" * 15_000


async def test_a_diff_of_very_many_lines_is_not_shown(repository: Repository, bare: Git) -> None:
    at = bare.commit({**manifests(), FILE: "a\nb\n" * MIB}, parent=bare("rev-parse", "main"))
    plan = await repository.plan(at, setting("dev", b"b\na\na\n" * (MIB // 8)))
    assert f"diff is not shown: comparing the lines of {FILE} would be too much work" in plan.diff
    assert plan.changes


async def test_diffs_of_lines_that_repeat_themselves_end_together(
    repository: Repository, bare: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give the comparisons of all files of a plan one bound, which is a tenth of the usual one here."""
    monkeypatch.setattr(diff, "Effort", lambda: Effort(STEPS // 10))
    files = {f"files/{number}": TWOS[:20_000].decode() for number in range(20)}
    at = bare.commit({**manifests(), **files}, parent=bare("rev-parse", "main"))
    plan = await repository.plan(at, lambda _: dict.fromkeys(files, THREES[:30_000]))
    assert plan.diff.count("diff is not shown") == len(files)


async def test_a_merge_of_texts_that_are_costly_to_compare_is_a_conflict(repository: Repository, bare: Git) -> None:
    # The lines between keep both changes apart: a merge without a bound would have no conflict.
    head = b"head\n"
    between = b"".join(b"%d\n" % number for number in range(20))
    bare.commit({**manifests(), FILE: (head + between + TWOS).decode()}, parent=bare("rev-parse", "main"))
    branch = "kardinal/app/dev"
    edit = setting("dev", head + between + THREES)
    proposed = await repository.propose(branch, base="main", edit=edit, message=message("dev"))
    await repository.land("main", setting("dev", b"changed\n" + between + TWOS), message("dev", "app-2"))
    assert await repository.conflicts(branch, base="main") == (FILE,)
    with pytest.raises(MergeConflict):
        await repository.merge("main", proposed.commit)


async def test_a_large_file_with_few_differences_is_shown_and_merged(repository: Repository, bare: Git) -> None:
    lines = [f"line {number}" for number in range(20_000)]
    bare.commit({**manifests(), FILE: "\n".join(lines) + "\n"}, parent=bare("rev-parse", "main"))

    def changed(*numbers: int) -> bytes:
        return "".join(f"{'changed' if at in numbers else line}\n" for at, line in enumerate(lines)).encode()

    plan = await repository.plan(bare("rev-parse", "main"), setting("dev", changed(5, 19_000)))
    assert "-line 5\n+changed\n" in plan.diff
    assert "@@ -18998,7 +18998,7 @@" in plan.diff
    branch = "kardinal/app/dev"
    edit = setting("dev", changed(5))
    proposed = await repository.propose(branch, base="main", edit=edit, message=message("dev"))
    await repository.land("main", setting("dev", changed(19_000)), message("dev", "app-2"))
    merged = await repository.merge("main", proposed.commit)
    assert await repository.read(merged.commit, FILE) == changed(5, 19_000)
