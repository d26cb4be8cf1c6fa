"""Which environments the files of a change reach, whatever strangers call their files."""

from __future__ import annotations

import pytest

from kardinal.promotion.policy.binding import Place
from kardinal_agent.hosts.included import Included
from kardinal_agent.hosts.statuses import SINGLE_LIMIT, EnvironmentSubject, statuses_of
from kardinal_agent.hosts.touched import touched


def place(path: str, environment: str = "prod", branch: str = "main") -> Place:
    return Place("team", "my-app", environment, "git.example.com/acme/config", branch, path)


PLACES = {
    place("environments/prod"): Included(("bases/web",)),
    place("environments/dev", "dev"): Included(),
    place("apps", "apps", branch="deploy"): Included(),
}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], []),
        (["README.md"], []),
        (["environments/prod/a.yaml"], ["prod"]),
        (["bases/web/deployment.yaml"], ["prod"]),
        (["bases/web"], ["prod"]),
        (["bases/website/deployment.yaml"], []),
        (["environments/prod/deep/er/a.yaml", "apps/x"], ["prod", "apps"]),
        (["environments/production/a.yaml", "environments/prod.yaml", "x/environments/prod/a"], []),
        # A file, or a symbolic link, in the place of a directory.
        (["environments/prod"], ["prod"]),
        (["environments"], ["prod", "dev"]),
        (["environments/", "/environments/prod/a", "./environments/prod/a"], []),
        (["Environments/Prod/a.yaml"], []),
        (["a/" * 100_000 + "b"], []),
    ],
)
def test_an_environment_is_reached_in_its_directory_and_in_the_place_of_it(
    files: list[str], expected: list[str]
) -> None:
    assert [one.environment for one in touched(PLACES, files)] == expected


def test_any_file_reaches_an_environment_that_is_the_whole_branch_or_may_take_in_anything() -> None:
    whole = place(".", "prod", "env/prod")
    open_ended = place("apps/dev", "dev")
    places = {whole: Included(), open_ended: Included(unknown=True), place("apps/staging", "staging"): Included()}
    assert touched(places, ["anything"]) == [whole, open_ended]
    assert touched(places, []) == []


def test_files_that_are_not_known_reach_every_environment() -> None:
    assert touched(PLACES, None) == [*PLACES]


def test_a_change_of_many_environments_has_one_status_for_all() -> None:
    few = {EnvironmentSubject("my-app", f"env-{n}"): ("closed",) for n in range(SINGLE_LIMIT)}
    assert len(statuses_of(few)) == SINGLE_LIMIT + 1
    many = {**few, EnvironmentSubject("my-app", "one-more"): ()}
    (only,) = statuses_of(many)
    assert (only.context, only.state, only.description) == ("kardinal", "pending", "closed")


def test_a_description_is_one_line_and_short_whatever_the_reason() -> None:
    *_, status = statuses_of(
        {EnvironmentSubject("my-app", "prod"): ("a\nb\r\n" * 100,)}, unknown="not all files are known"
    )
    assert "\n" not in status.description
    assert len(status.description) <= 140
    assert status.description.startswith("not all files are known; a b")
