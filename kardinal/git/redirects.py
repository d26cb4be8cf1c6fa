"""Follow redirects that lead to the same repository under another spelling of its URL.

A host may add `.git` or remove a slash, for example from `/acme/deploy/` to `/acme/deploy.git`. A redirect to another
host is refused, because that host would receive the credentials. A redirect to another path is refused, because that
may be another repository, to which the gates of this one do not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from kardinal.git.errors import RepositoryUnreachable
from kardinal.tree.repository_url import InvalidRepositoryURL, RepositoryURL, repository_key

__all__ = ["Redirected", "following"]

_MOST = 3
_ENDINGS = ("/info/refs", "/git-upload-pack", "/git-receive-pack")
_SHOWN = 200

T = TypeVar("T")


class Redirected(Exception):
    """A remote answered with another URL; the transfer was not made."""

    def __init__(self, location: str) -> None:
        super().__init__("redirected")
        self.location = location


def following(url: str, transfer: Callable[[str], T]) -> T:
    """Make a transfer with `url`, or with the URL that it redirects to if that is the same repository."""
    address = url
    for _ in range(_MOST):
        try:
            return transfer(address)
        except Redirected as redirect:
            address = _same_repository(url, urljoin(f"{address}/info/refs", redirect.location))
    raise RepositoryUnreachable(f"{url} redirects again and again", remedy="Put the final address into git.url")


def _same_repository(url: str, location: str) -> str:
    """Return the repository that a redirect leads to, if it is the one of `url`; otherwise raise."""
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
    """Return the host of a URL that was accepted before, so that http stays allowed for it."""
    return [urlsplit(url).netloc]


def _shown(location: str) -> str:
    """Return a URL without parts that may be secret."""
    try:
        parts = urlsplit(location)
        text = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        text = "another place"
    return "".join(character for character in text if character.isprintable())[:_SHOWN]
