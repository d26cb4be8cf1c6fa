"""The commits of a configuration that an environment has, read from trailers, and the way to another one."""

from __future__ import annotations

import pytest

from kardinal.promotion.api.pipeline import MergeStrategy
from kardinal.promotion.steps.config_history import RecordedCommit, landed_commits, moves, recorded_moves, stacked
from kardinal.tree.differences import Move

URL = "https://git.example.org/acme/config"
ONE = "1" * 40
TWO = "2" * 40
THREE = "3" * 40


def landed(*commits: str, url: str = URL, path: str = "environments/dev") -> list[str]:
    """Read the commits back that were promoted in this order."""
    trailers = [{"Kardinal-Config": f"{commit} {url} {path}"} for commit in reversed(commits)]
    return landed_commits([{}, *trailers], repository=URL, path="environments/dev")


def test_commits_are_those_of_the_repository_in_the_directory() -> None:
    assert landed(ONE, TWO) == [ONE, TWO]
    assert landed(ONE, url="https://git.example.org/acme/config.git/") == [ONE]
    assert landed(ONE, url="https://git.example.org/acme/other") == []
    assert landed(ONE, path="environments/prod") == []
    assert landed_commits([{"Kardinal-Config": f"{ONE} {URL} a%20b"}], repository=URL, path="a b") == [ONE]


def test_going_back_takes_away_what_landed_after() -> None:
    assert landed(ONE, TWO, THREE, ONE) == [ONE]
    assert landed(ONE, TWO, ONE, THREE) == [ONE, THREE]


@pytest.mark.parametrize("line", ["", "no-commit", f"{ONE}", f"{ONE} not/a/url environments/dev", f"{ONE} {URL}"])
def test_a_trailer_that_says_something_else_is_passed_over(line: str) -> None:
    assert landed_commits([{"Kardinal-Config": line}], repository=URL, path="environments/dev") == []


def test_a_pick_brings_its_own_changes_and_going_back_the_opposite_of_later_ones() -> None:
    assert moves(ONE, [], "cherry-pick") == [Move(f"{ONE}^", ONE)]
    assert moves(TWO, [ONE], "cherry-pick") == [Move(f"{TWO}^", TWO)]
    assert moves(ONE, [ONE], "cherry-pick") == [Move(f"{ONE}^", ONE)]
    assert moves(ONE, [ONE, TWO, THREE], "cherry-pick") == [Move(THREE, f"{THREE}^"), Move(TWO, f"{TWO}^")]


def test_an_overlay_goes_from_one_snapshot_to_the_other() -> None:
    assert moves(ONE, [], "overlay") == [Move(f"{ONE}^", ONE)]
    assert moves(THREE, [ONE], "overlay") == [Move(ONE, THREE)]
    assert moves(ONE, [ONE, THREE], "overlay") == [Move(THREE, ONE)]


def recorded(commit: str, directory: str = "", strategy: MergeStrategy = "cherry-pick") -> RecordedCommit:
    return RecordedCommit(repository=URL, commit=commit, directory=directory, strategy=strategy)


def test_a_record_loses_what_landed_after_a_commit_that_is_promoted_again() -> None:
    one, two, three = map(recorded, (ONE, TWO, THREE))
    assert stacked((), one) == (one,)
    assert stacked((one, two), three) == (one, two, three)
    assert stacked((one, two, three), one) == (one,)
    assert stacked((one, two, three), three) == (one, two, three)
    # The same commit of another directory brings other files, and is promoted beside it.
    assert stacked((one, two), recorded(ONE, "other")) == (one, two, recorded(ONE, "other"))
    # How it is brought is what the last promotion said.
    assert stacked((one, two), recorded(TWO, strategy="overlay")) == (one, recorded(TWO, strategy="overlay"))


def test_a_record_is_brought_as_it_landed() -> None:
    record = (
        recorded(ONE, strategy="overlay"),
        recorded(TWO),
        recorded(THREE, strategy="overlay"),
        recorded(THREE, "other", "overlay"),
    )
    moved = [Move(f"{ONE}^", ONE), Move(f"{TWO}^", TWO), Move(TWO, THREE), Move(f"{THREE}^", THREE)]
    assert list(recorded_moves(record)) == list(zip(record, moved, strict=True))
    assert list(recorded_moves(())) == []
