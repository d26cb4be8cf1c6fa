"""The API of a host is found from the repository's URL."""

from __future__ import annotations

import pytest

from kardinal.scm import UnsupportedProvider
from kardinal.scm.addresses import RepositoryAddress, quoted


@pytest.mark.parametrize(
    ("url", "origin", "below", "owner", "name"),
    [
        ("https://git.example.org/acme/config", "https://git.example.org", "", "acme", "config"),
        ("https://git.example.org/acme/config.git", "https://git.example.org", "", "acme", "config"),
        ("https://git.example.org:8443/acme/config.git/", "https://git.example.org:8443", "", "acme", "config"),
        ("https://example.org/git/acme/config", "https://example.org", "/git", "acme", "config"),
        ("https://example.org/a b/acme/config", "https://example.org", "/a%20b", "acme", "config"),
        ("https://[::1]:3000/acme/config", "https://[::1]:3000", "", "acme", "config"),
        ("http://127.0.0.1:3000/acme/config", "http://127.0.0.1:3000", "", "acme", "config"),
        ("ssh://git@git.example.org:2222/acme/config.git", "https://git.example.org", "", "acme", "config"),
        ("ssh://git@[::1]/acme/config.git", "https://[::1]", "", "acme", "config"),
        ("ssh://git@ssh.github.com:443/acme/config.git", "https://github.com", "", "acme", "config"),
        ("ssh://git@altssh.gitlab.com:443/acme/config.git", "https://gitlab.com", "", "acme", "config"),
    ],
)
def test_the_origin_and_the_last_two_segments(url: str, origin: str, below: str, owner: str, name: str) -> None:
    address = RepositoryAddress.of(url)
    assert address.origin == origin
    assert address.owner_and_name() == (below, owner, name)


@pytest.mark.parametrize("url", ["file:///srv/config.git", "/srv/config.git", "https://", "ftp://host/a/b"])
def test_a_repository_that_is_at_no_host_is_refused(url: str) -> None:
    with pytest.raises(UnsupportedProvider, match="not at a host"):
        RepositoryAddress.of(url)


def test_a_repository_without_an_owner_is_refused() -> None:
    with pytest.raises(UnsupportedProvider, match="https://host/owner/repository"):
        RepositoryAddress.of("https://git.example.org/config").owner_and_name()


def test_a_segment_cannot_leave_its_place_in_a_path() -> None:
    assert quoted("a/../b?c#d%2e") == "a%2F..%2Fb%3Fc%23d%252e"
