"""Redirects that are followed: those that lead to the same repository, under another spelling of its address.

A host may add `.git` or take a slash away. Another host would be given the credentials, and another path may be the
repository of others, to which no gate of this one applies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from kardinal.api.repository_url import InvalidRepositoryURL, RepositoryURL, repository_key
from kardinal.git.errors import RepositoryUnreachable

__all__ = ["Redirected", "following", "request_address"]

_MOST = 3
_ENDINGS = ("/info/refs", "/git-upload-pack", "/git-receive-pack")
_SHOWN = 200

T = TypeVar("T")


class Redirected(Exception):
    """A remote answered with the address of another place; the transfer was not made."""

    def __init__(self, location: str) -> None:
        super().__init__("redirected")
        self.location = location


def request_address(url: str) -> str:
    """Return the address of the first request of a transfer."""
    return f"{url}/info/refs"


def following(url: str, transfer: Callable[[str], T]) -> T:
    """Make a transfer with `url`, or with the address that it redirects to where that is the same repository."""
    address = url
    for _ in range(_MOST):
        try:
            return transfer(address)
        except Redirected as redirect:
            address = _same_repository(url, urljoin(request_address(address), redirect.location))
    raise RepositoryUnreachable(f"{url} redirects again and again", remedy="Put the final address into git.url")


def _same_repository(url: str, location: str) -> str:
    """Return the repository that a redirect leads to, if it is the one of `url`."""
    bare = location.partition("#")[0].partition("?")[0]
    for ending in _ENDINGS:
        bare = bare.removesuffix(ending)
    try:
        target = RepositoryURL.parse(bare, allow_local=False, insecure=_host_of(url)).text
        if repository_key(target) == repository_key(url) and urlsplit(target).scheme == urlsplit(url).scheme:
            return target
    except InvalidRepositoryURL:
        pass
    raise RepositoryUnreachable(
        f"{url} redirects to {_shown(bare)}, which is not the same repository",
        remedy="Put the final address into git.url",
    )


def _host_of(url: str) -> list[str]:
    """Return the host of a URL that was accepted, which http stays allowed to."""
    return [urlsplit(url).netloc]


def _shown(location: str) -> str:
    """Return an address without what could be a secret."""
    try:
        parts = urlsplit(location)
        text = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        text = "another place"
    return "".join(character for character in text if character.isprintable())[:_SHOWN]
