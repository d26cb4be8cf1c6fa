"""Transfers by libgit2: what it asks during one, and what its failures mean. Runs in `worker`, where it can be killed.

The credentials callback answers once. A server that asks again has refused them, and answering for ever is how
clients hang. What a push found at the remote is compared before anything is sent, so a branch that has moved costs
one request. libgit2 follows redirects on one host to any path and port whatever it is told, so the first request is
made once before it.
"""

from __future__ import annotations

import base64
import http.client
import re
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

import pygit2
from pygit2.enums import ConfigLevel, FetchPrune

from kardinal.git.credentials import Credentials
from kardinal.git.errors import DamagedRepository, RefMoved, TransientGitError
from kardinal.git.meaning import (
    Expected,
    failure_of,
    for_status,
    no_credentials,
    refused_credentials,
    refused_push,
)
from kardinal.git.redirects import Redirected, request_address

__all__ = ["Transfer", "prepare", "transfer"]

_CONNECT_TIMEOUT = 10_000
_SILENCE_TIMEOUT = 30_000
"""Milliseconds without a byte after which a server counts as stalled."""

_WINDOW = 32 << 20
_MAPPED = 256 << 20
"""Bytes of packs in memory, at once and in all."""

_NETWORK_CLASSES = frozenset({12, 16, 34})
"""GIT_ERROR_NET, GIT_ERROR_SSL and GIT_ERROR_HTTP."""

_STATUS = re.compile(r"unexpected http status code: (\d{3})")
_NO_OBJECT = "0" * 40
_BRANCHES = "+refs/heads/*:refs/heads/*"


def prepare() -> None:
    """Set libgit2 up for this whole process: without the configuration of others, and with limits."""
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.settings.search_path[level] = ""
    pygit2.settings.server_connect_timeout = _CONNECT_TIMEOUT
    pygit2.settings.server_timeout = _SILENCE_TIMEOUT
    pygit2.settings.mwindow_size = _WINDOW
    pygit2.settings.mwindow_mapped_limit = _MAPPED


def transfer(mirror: str, new: str | None, callbacks: Transfer) -> None:
    """Fetch the branches, or push where `callbacks` expect something of a reference; None deletes that."""
    if location := _location(callbacks):
        raise Redirected(location)
    repository = pygit2.Repository(mirror)
    remote = repository.remotes.create_anonymous(callbacks.url)
    pushing = callbacks.pushing
    try:
        if pushing is None:
            remote.fetch([_BRANCHES], callbacks=callbacks, prune=FetchPrune.PRUNE, proxy=True)
        else:
            remote.push([f"{'+' if new else ''}{new or ''}:{pushing.ref}"], callbacks=callbacks, proxy=True)
    except pygit2.GitError as error:
        raise _translated(error, callbacks) from None
    callbacks.raise_refusal()


class Transfer(pygit2.RemoteCallbacks):
    """One fetch or push; `progress` is told the bytes received, and so that the references are known."""

    def __init__(
        self, url: str, credentials: Credentials | None, *, progress: Callable[[int], None], pushing: Expected | None
    ) -> None:
        super().__init__()
        self.url = url
        self.secret = credentials
        self.pushing = pushing
        self._progress = progress
        self._asked = False
        self._said: list[str] = []
        self._refusal: str | None = None

    def credentials(self, url: str, username_from_url: str | None, allowed_types: object) -> pygit2.UserPass:
        if self.secret is None:
            raise no_credentials(self.url)
        if url.rstrip("/") != self.url:
            raise Redirected(url)
        if self._asked:
            raise refused_credentials(self.url)
        self._asked = True
        return pygit2.UserPass(self.secret.username, self.secret.password)

    def transfer_progress(self, stats: pygit2.remotes.TransferProgress) -> None:
        self._progress(stats.received_bytes)

    def push_transfer_progress(self, objects_pushed: int, total_objects: int, bytes_pushed: int) -> None:
        self._progress(bytes_pushed)

    def sideband_progress(self, string: str) -> None:
        self._said.append(string)
        del self._said[:-100]

    def push_negotiation(self, updates: list[pygit2.remotes.PushUpdate]) -> None:
        self._progress(0)
        expected = self.pushing
        if expected is None:
            return
        found = str(updates[0].src) if updates else _NO_OBJECT
        if found != (expected.old or _NO_OBJECT):
            raise RefMoved(expected.ref, old=expected.old)

    def push_update_reference(self, refname: str, message: str | None) -> None:
        self._refusal = message

    def raise_refusal(self) -> None:
        """Raise what the remote had against the push; libgit2 itself reports it as a success."""
        if self._refusal is not None and self.pushing is not None:
            raise refused_push(self._refusal, "".join(self._said), self.url, self.pushing)


def _translated(error: pygit2.GitError, callbacks: Transfer) -> Exception:
    """Return what a failure of libgit2 during a transfer means."""
    text, url = str(error), callbacks.url
    if isinstance(error, pygit2.errors.AuthError):
        return refused_credentials(url)
    if match := _STATUS.search(text):
        return for_status(int(match[1]), url)
    if isinstance(error, pygit2.errors.CertificateError):
        text = f"certificate: {text}"
    failure = failure_of(text, url, pushing=callbacks.pushing)
    if getattr(error, "error_class", None) in _NETWORK_CLASSES and isinstance(failure, DamagedRepository):
        return TransientGitError(f"the connection to {url} was lost, or it did not answer in time")
    return failure


def _location(callbacks: Transfer) -> str:
    """Return where the host redirects the transfer to; empty where it does not."""
    parts = urlsplit(request_address(callbacks.url))
    service = "git-receive-pack" if callbacks.pushing else "git-upload-pack"
    headers = {}
    if callbacks.secret is not None:
        pair = f"{callbacks.secret.username}:{callbacks.secret.password}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    connection: http.client.HTTPConnection
    if parts.scheme == "http":
        connection = http.client.HTTPConnection(parts.netloc, timeout=_CONNECT_TIMEOUT / 1000)
    else:
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.netloc, timeout=_CONNECT_TIMEOUT / 1000, context=context)
    try:
        connection.request("GET", f"{parts.path}?service={service}", headers=headers)
        answer = connection.getresponse()
        return (answer.headers.get("Location") or "") if 300 <= answer.status < 400 else ""
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
