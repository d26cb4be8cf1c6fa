"""Which facts a pattern binds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.policy_gate import GateMatch
from kardinal.promotion.policy.binding import Binding, Place, clean_branch, clean_path, places_of
from tests.support import objects

HERE = Place("team-a", "shop", "prd", "git.example.org/acme/gitops", "main", "environments/prod")


def place(*, repository: str = HERE.repository, branch: str = "main", path: str = "environments/prod") -> Place:
    url = (
        repository
        if repository.startswith("/") or "@" in repository or "://" in repository
        else f"https://{repository}"
    )
    git = {"url": url, "branch": branch}
    made = objects.pipeline("", git=git, environments=[{"name": "prd", "path": path}], namespace="team-a", name="shop")
    (found,) = places_of(Pipeline.model_validate(made))
    return found


def binds(where: Place = HERE, /, **match: list[str]) -> bool:
    return Binding.of(GateMatch.model_validate(match)).holds(where)


def test_a_gate_without_match_binds_everything() -> None:
    assert Binding.of(None).holds(HERE)
    assert Binding.of(GateMatch()).holds(HERE)


@pytest.mark.parametrize(
    ("field", "pattern", "expected"),
    [
        ("namespaces", "team-a", True),
        ("namespaces", "team-*", True),
        ("namespaces", "team", False),
        ("namespaces", "*", True),
        ("pipelines", "s*p", True),
        ("pipelines", "s*pp", False),
        ("pipelines", "**", True),
        ("branches", "main", True),
        ("branches", "refs/heads/main", True),
        ("branches", "MAIN", False),
        ("branches", "*/main", False),
        ("branches", "**/main", True),
        ("paths", ".", True),
        ("paths", "./environments//prod/", True),
        ("paths", "/environments/prod", True),
        ("paths", "*/prod", True),
        ("paths", "*/*/eu", True),
        ("paths", "environments", True),
        ("paths", "environments/staging", False),
        ("paths", "**/staging", True),
        ("paths", "environments/staging/**", False),
    ],
)
def test_a_pattern_and_a_fact(field: str, pattern: str, expected: bool) -> None:
    assert binds(**{field: [pattern]}) is expected
    assert binds(**{field: ["elsewhere", pattern]}) is expected


@pytest.mark.parametrize(
    ("pattern", "bound"),
    [
        ("git.example.org/acme/gitops", "git.example.org/acme/gitops"),
        ("https://robot@GIT.example.org:443/Acme/GitOps.git/", "git.example.org/acme/gitops"),
        ("http://git.example.org:80/acme/gitops", "git.example.org/acme/gitops"),
        ("git.example.org./acme/gitops/.git", "git.example.org/acme/gitops"),
        ("git.example.org", "git.example.org/acme/gitops"),
        ("git.example.org/**", "git.example.org/acme/gitops"),
        ("git.example.org/acme/**", "git.example.org/acme/deep/gitops"),
        ("*.example.org/*/gitops", "git.example.org/acme/gitops"),
        ("**/gitops", "git.example.org:8443/acme/gitops"),
        ("**", "git.example.org/acme/gitops"),
        ("**", "/srv/git/app.git"),
        ("git.example.org:*/acme/gitops", "git.example.org:8443/acme/gitops"),
        ("[2001:db8::1]:8443/acme/*", "[2001:db8:0::1]:8443/acme/gitops"),
        ("10.0.0.1/app", "[::ffff:10.0.0.1]/app"),
        ("/srv/git/*.git", "/srv/git/app.git"),
        ("file:///srv/Git/**", "/srv/git/app.git"),
        ("git.example.org/\u00e9quipe/app", "git.example.org/%45\u0301quipe/app"),
    ],
)
def test_a_pattern_of_repositories_is_compared_as_a_repository_is(pattern: str, bound: str) -> None:
    assert binds(place(repository=bound), repositories=[pattern])


@pytest.mark.parametrize(
    ("pattern", "free"),
    [
        ("git.example.org/acme/*", "git.example.org/acme/deep/gitops"),
        ("git.example.org/acme", "git.example.org/acme/gitops"),
        ("git.example.org", "git.example.org:8443/acme/gitops"),
        ("git.example.org", "git.example.org.evil.net/acme/gitops"),
        ("git.example.org/acme/gitops", "git.example.org/acme/gitops2"),
        ("*/acme/gitops", "/srv/acme/gitops"),
        ("srv/git/*", "/srv/git/app.git"),
        ("/srv/git/*", "srv/git/app"),
    ],
)
def test_a_pattern_does_not_bind_another_repository(pattern: str, free: str) -> None:
    assert not binds(place(repository=free), repositories=[pattern])


name = st.text("ab", min_size=1, max_size=3)
segment = st.text("ab*", min_size=1, max_size=3).filter(lambda text: "**" not in text)
patterns = st.lists(st.one_of(segment, st.just("**")), min_size=1, max_size=4).filter(
    lambda pattern: pattern.count("**") <= 1
)


@given(pattern=patterns, path=st.lists(name, max_size=4))
def test_a_path_is_bound_where_it_or_a_directory_above_or_below_it_can_match(
    pattern: list[str], path: list[str]
) -> None:
    above = [path[:depth] for depth in range(len(path) + 1)]
    # Below the path, the end of the pattern with each `*` filled in can match, or nothing can.
    filled = ["a" if part == "**" else part.replace("*", "a") for part in pattern]
    below = [[*path, *filled[start:]] for start in range(len(filled))]
    expected = any(matched(pattern, directory) for directory in (*above, *below))
    assert binds(place(path="/".join(path) or "."), paths=["/".join(pattern)]) is expected


@given(pattern=patterns, branch=st.lists(name, min_size=1))
def test_a_branch_is_bound_where_the_whole_of_it_matches(pattern: list[str], branch: list[str]) -> None:
    assert binds(place(branch="/".join(branch)), branches=["/".join(pattern)]) is matched(pattern, branch)


def matched(pattern: list[str], segments: list[str]) -> bool:
    """Return what a regular expression says, where every segment ends in a slash."""
    parts = ["(?:[^/]+/)*" if part == "**" else part.replace("*", "[^/]*") + "/" for part in pattern]
    return re.fullmatch("".join(parts), "".join(f"{segment}/" for segment in segments)) is not None


@pytest.mark.parametrize(
    ("written", "clean"),
    [("a/b", "a/b"), ("./a//b/", "a/b"), (".", "."), ("./", "."), ("a/./b/.", "a/b"), ("A/b", "A/b")],
)
def test_a_path_has_one_clean_spelling(written: str, clean: str) -> None:
    assert clean_path(written) == clean


def test_a_branch_has_one_clean_spelling() -> None:
    assert [clean_branch(name) for name in ("main", "refs/heads/main", "heads/main")] == ["main", "main", "heads/main"]


@pytest.mark.parametrize(
    ("pattern", "repository", "bound"),
    [
        ("git.example.org/acme/gitops", "ssh://git@git.example.org:2222/acme/gitops", True),
        ("git.example.org:8443/acme/gitops", "git@git.example.org:acme/gitops.git", True),
        ("git.example.org/acme/*", "http://git.example.org:3000/acme/gitops", True),
        ("ssh://git@git.example.org:2222/acme/gitops", "git.example.org/acme/gitops", True),
        ("ssh://git@git.example.org:2222/acme/gitops", "git.example.org:8443/acme/gitops", True),
        ("git@git.example.org:acme/*", "git.example.org/acme/gitops", True),
        ("git@*.example.org:acme/*", "ssh://git@git.example.org:2222/acme/gitops", True),
        ("http://git.example.org:3000/acme/*", "git.example.org/acme/gitops", True),
        ("[::1]/acme/*", "ssh://git@[::1]:2222/acme/gitops", True),
        ("git.example.org/acme/gitops", "git@other.example.org:acme/gitops", False),
        ("git.example.org/acme/gitops", "git@git.example.org:acme/other", False),
        ("git.example.org:8443/acme/gitops", "git.example.org/acme/gitops", False),
    ],
)
def test_a_pattern_binds_a_repository_by_https_ssh_and_http_alike(pattern: str, repository: str, bound: bool) -> None:
    assert binds(place(repository=repository), repositories=[pattern]) is bound
