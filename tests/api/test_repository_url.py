"""Which repositories are accepted, and what the others are told."""

from __future__ import annotations

import pytest

from kardinal.api.repository_url import InvalidRepositoryURL, RepositoryURL
from kardinal.git import Credentials


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("https://example.org/team/app.git", "https://example.org/team/app.git"),
        ("https://EXAMPLE.org:443/team/app/", "https://example.org/team/app"),
        ("https://example.org:8443/a..b", "https://example.org:8443/a..b"),
        ("https://[::1]/app", "https://[::1]/app"),
        ("/srv//git/./app.git/", "file:///srv/git/app.git"),
        ("file:///srv/git/app.git", "file:///srv/git/app.git"),
        ("file://localhost/srv/a%20b.git", "file:///srv/a b.git"),
    ],
)
def test_a_repository_has_one_normal_spelling(given: str, normal: str) -> None:
    assert RepositoryURL.parse(given, allow_local=True).text == normal


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://example.org/app.git",
        "ssh://git@example.org/app.git",
        "git@example.org:app.git",
        "git://example.org/app",
        "ext::sh -c id",
        "relative/path",
        "../app.git",
        "/srv/../etc",
        "file:///srv/%2e%2e/etc",
        "file://other/srv/app.git",
        "file:srv/app.git",
        "/",
        "https://",
        "https://example.org",
        "https://example.org/a/../b",
        "https://example.org/app?x=1",
        "https://example.org/app#x",
        "https://example.org:port/app",
        "https://example.org/a b",
        "https://example.org/a\nb",
        "https://example.org/" + "a" * 3000,
    ],
)
def test_what_is_not_a_repository_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidRepositoryURL):
        RepositoryURL.parse(url, allow_local=True)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    for url in ("https://user:hunter2@example.org/app.git", "https://hunter2@example.org/app"):
        with pytest.raises(InvalidRepositoryURL, match=r"git\.secretRef") as caught:
            RepositoryURL.parse(url, allow_local=True)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidRepositoryURL) as caught:
        RepositoryURL.parse("ftp://user:hunter2@example.org/app.git", allow_local=True)
    assert "hunter2" not in str(caught.value)


def test_credentials_do_not_show_themselves() -> None:
    credentials = Credentials("robot", "hunter2")
    assert "hunter2" not in f"{credentials} {credentials!r} {[credentials]}"
