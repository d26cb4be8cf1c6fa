"""The commits of a configuration that an environment has, read from trailers, and the way to another one."""

from __future__ import annotations

import pytest

from kardinal.steps.config_history import Move, landed_commits, moves

URL = "https://git.example.org/acme/config"
ONE, TWO, THREE = ("1" * 40, "2" * 40, "3" * 40)


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
