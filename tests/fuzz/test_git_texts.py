"""Texts, merges and histories, with Git itself as the reference: what we compute without libgit2 is what Git says."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pygit2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal.git.ancestry import contains, merge_base, only_in
from kardinal.git.diff import unified
from kardinal.git.lines import Effort, hunks, split_lines
from kardinal.git.merging_trees import merge_texts
from kardinal.git.objects import Staging
from kardinal.git.values import ChangedFile
from tests.fuzz.inputs import INPUTS, fuzzed
from tests.support.repository import GitRepository, create_repository

programs = settings(fuzzed, max_examples=max(1, INPUTS // 10), deadline=None)
"""For tests that start programs for each input."""

HISTORIES = max(1, INPUTS // 50)

few_lines = st.lists(st.sampled_from([b"a", b"b", b"c", b"- name: x", b""]), max_size=12)
line_ends = st.sampled_from([b"\n", b""])


@st.composite
def small_texts(draw: st.DrawFn) -> bytes:
    return b"\n".join(draw(few_lines)) + draw(line_ends)


@st.composite
def edits_of(draw: st.DrawFn, text: bytes) -> bytes:
    """Draw the text with some lines replaced, deleted and inserted."""
    lines = text.split(b"\n")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from([b"x", b"y", b"a"]), max_size=2))
    return b"\n".join(lines)


@fuzzed
@given(one=small_texts(), other=small_texts())
def test_hunks_turn_one_text_into_the_other_and_keep_a_longest_common_part(one: bytes, other: bytes) -> None:
    before = split_lines(one)
    after = split_lines(other)
    found = list(hunks(before, after, Effort()))
    result = list[bytes]()
    at = 0
    kept = 0
    for hunk in found:
        result += before[at : hunk.start] + after[hunk.other_start : hunk.other_end]
        kept += hunk.start - at
        at = hunk.end
    kept += len(before) - at
    assert result + before[at:] == after
    assert kept == _longest_common(before, after)


def _longest_common(one: list[bytes], other: list[bytes]) -> int:
    lengths = [0] * (len(other) + 1)
    for line in one:
        above = list(lengths)
        for at, candidate in enumerate(other):
            lengths[at + 1] = above[at] + 1 if line == candidate else max(above[at + 1], lengths[at])
    return lengths[-1]


@programs
@given(data=st.data())
def test_git_applies_a_diff_that_is_shown(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("texts")
    before = data.draw(small_texts())
    after = data.draw(edits_of(before))
    (directory / "file").write_bytes(before)
    shown = unified([ChangedFile("file", before, after)])
    if before == after:
        assert "@@" not in shown
        return
    ended = subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=directory, input=shown.encode(), check=False)
    assert ended.returncode == 0, shown
    assert (directory / "file").read_bytes() == after


@programs
@given(data=st.data())
def test_texts_are_merged_as_git_merges_them_or_not_at_all(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("texts")
    origin = data.draw(small_texts())
    ours = data.draw(edits_of(origin))
    theirs = data.draw(edits_of(origin))
    merged = merge_texts(origin, ours, theirs, Effort())
    for name, text in (("origin", origin), ("ours", ours), ("theirs", theirs)):
        (directory / name).write_bytes(text)
    command = ["git", "merge-file", "--stdout", "-q", "ours", "origin", "theirs"]
    ended = subprocess.run(command, cwd=directory, capture_output=True, check=False)
    if merged is not None and ended.returncode == 0:
        assert merged == ended.stdout
    if len({origin, ours, theirs}) < 3:  # one side has changed nothing, or both have changed the same
        assert merged == (theirs if ours == origin else ours)


def test_histories_are_walked_as_git_walks_them(tmp_path: Path) -> None:
    """Compare random histories with merges, in which a commit is never older than its parents."""
    chance = random.Random(7)
    repository = create_repository(tmp_path / "repository.git", {"file": "x"})
    for _ in range(HISTORIES):
        commits = _history(chance, repository)
        staging = Staging(pygit2.Repository(str(repository.path)))
        for one, other in (chance.sample(commits, 2) for _ in range(12)):
            bases = _answers(repository, "merge-base", "--all", one, other)
            assert contains(staging, one, other) == (bases == [other])
            found = merge_base(staging, one, other)
            assert found in bases if bases else found is None
            assert sorted(only_in(staging, one, other)) == sorted(_answers(repository, "rev-list", one, f"^{other}"))


def test_ancestry_does_not_depend_on_clocks(tmp_path: Path) -> None:
    chance = random.Random(8)
    repository = create_repository(tmp_path / "repository.git", {"file": "x"})
    for _ in range(HISTORIES):
        commits = _history(chance, repository, clocks=False)
        staging = Staging(pygit2.Repository(str(repository.path)))
        for one, other in (chance.sample(commits, 2) for _ in range(12)):
            assert contains(staging, one, other) == (_answers(repository, "merge-base", "--all", one, other) == [other])


def _history(chance: random.Random, repository: GitRepository, *, clocks: bool = True) -> list[str]:
    """Make 14 commits, each of up to two of those before; without `clocks` their times are in no order."""
    tree = repository.git("rev-parse", "main^{tree}")
    commits: list[str] = []
    for number in range(14):
        parents = chance.sample(commits, min(len(commits), chance.choice([0, 1, 1, 1, 2])))
        time = 1_700_000_000 + (number if clocks else chance.randrange(100))
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{role} A <a@example.com> {time} +0000" for role in ("author", "committer")]
        text = "\n".join([*lines, "", f"{number} {chance.random()}", ""])
        commits.append(repository.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text))
    return commits


def _answers(repository: GitRepository, *arguments: str) -> list[str]:
    """Return the lines that git prints, none where it has no answer."""
    command = ["git", "-C", str(repository.path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
