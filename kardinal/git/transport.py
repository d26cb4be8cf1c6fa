"""Talking to a remote: what libgit2 asks during a transfer, and what its failures mean.

The credentials callback answers once. A server that asks again has refused them, and answering for ever is how
clients hang. What a push found at the remote is compared before anything is sent, so a branch that has moved costs
one request.

A transfer is given up when nothing arrives for a while, and at an outer deadline. Slow is not stalled: a large
clone that makes progress is left alone for a long time.

Failures are recognised here and nowhere else, by libgit2's class and by status code. What they say to users is
kardinal's own text; only what the remote itself wrote about a refusal is passed on, because it names the rule.
`Retry-After` is not visible through libgit2: 429 is transient and left to the caller's back-off.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import pygit2

from kardinal.git.credentials import Credentials
from kardinal.git.errors import (
    AuthenticationFailed,
    DamagedRepository,
    GitError,
    PushRejected,
    RefMoved,
    RepositoryUnreachable,
    TransientGitError,
)
from kardinal.git.names import branch_of

__all__ = ["Expected", "Transfer", "limit_waiting", "translated"]

_CONNECT_TIMEOUT = 10_000
_SILENCE_TIMEOUT = 30_000
"""Milliseconds without a byte after which a server counts as stalled."""

_DEADLINE = 900.0
"""Seconds for one transfer, however much it moves."""

_EXPLANATION = 300
"""Characters of a remote's own words that are passed on."""

_NETWORK_CLASSES = frozenset({12, 16, 34})
"""GIT_ERROR_NET, GIT_ERROR_SSL and GIT_ERROR_HTTP."""

_NETWORK_WORDS = re.compile(r"SSL error|socket|timed out|connect|resolve|unexpected EOF|early EOF|disconnected", re.I)
_STATUS = re.compile(r"unexpected http status code: (\d{3})")
_LOST_RACE = re.compile(
    r"non-fast-?forward|not present locally|fetch first|stale info|already exists"
    r"|cannot lock ref|failed to (lock|update ref)|incorrect old value|remote ref (updated|has changed)",
    re.I,
)
_NO_OBJECT = "0" * 40


def limit_waiting() -> None:
    """Make libgit2 give up on servers that do not answer; the limits hold for the whole process."""
    pygit2.settings.server_connect_timeout = _CONNECT_TIMEOUT
    pygit2.settings.server_timeout = _SILENCE_TIMEOUT


@dataclass(frozen=True, slots=True)
class Expected:
    """The precondition of a push: the reference and its commit, None where it must not exist."""

    ref: str
    old: str | None


class Transfer(pygit2.RemoteCallbacks):
    """One fetch or push."""

    def __init__(
        self, url: str, credentials: Credentials | None, *, stopping: threading.Event, pushing: Expected | None = None
    ) -> None:
        super().__init__()
        self._url = url
        self._secret = credentials
        self._stopping = stopping
        self._pushing = pushing
        # HTTP deadlines are real time.
        self._deadline = time.monotonic() + _DEADLINE
        self._asked = False
        self._said: list[str] = []
        self._refusal: str | None = None

    def credentials(self, url: str, username_from_url: str | None, allowed_types: object) -> pygit2.UserPass:
        if self._secret is None:
            raise AuthenticationFailed(
                f"{self._url} asks for credentials",
                remedy="Put username and password, or a token, into a Secret and name it in git.secretRef",
            )
        if urlsplit(url)[:2] != urlsplit(self._url)[:2]:
            raise AuthenticationFailed(
                f"{self._url} redirects to another host, which is not given the credentials",
                remedy="Put the final address into git.url",
            )
        if self._asked:
            raise _refused_credentials(self._url)
        self._asked = True
        return pygit2.UserPass(self._secret.username, self._secret.password)

    def transfer_progress(self, stats: object) -> None:
        self._check()

    def push_transfer_progress(self, objects_pushed: int, total_objects: int, bytes_pushed: int) -> None:
        self._check()

    def sideband_progress(self, string: str) -> None:
        self._check()
        self._said.append(string)

    def push_negotiation(self, updates: list[pygit2.remotes.PushUpdate]) -> None:
        expected = self._pushing
        if expected is None:
            return
        found = str(updates[0].src) if updates else _NO_OBJECT
        if found != (expected.old or _NO_OBJECT):
            raise RefMoved(expected.ref, old=expected.old)

    def push_update_reference(self, refname: str, message: str | None) -> None:
        self._refusal = message

    def raise_refusal(self) -> None:
        """Raise what the remote had against the push; libgit2 itself reports it as a success."""
        if self._refusal is None or self._pushing is None:
            return
        said = "".join(self._said)
        if _LOST_RACE.search(self._refusal) or _LOST_RACE.search(said):
            raise RefMoved(self._pushing.ref, old=self._pushing.old)
        words = " ".join(f"{self._refusal}. {said}".split())[:_EXPLANATION].strip(" .")
        raise PushRejected(
            f"{self._url} refuses the push to {branch_of(self._pushing.ref)}: {words}",
            remedy="Allow this user to push to the branch, or use approval: pr-review",
        )

    def _check(self) -> None:
        if self._stopping.is_set():
            raise TransientGitError(f"the transfer with {self._url} was stopped")
        if time.monotonic() > self._deadline:
            raise TransientGitError(f"the transfer with {self._url} took longer than {_DEADLINE:.0f} s")


def translated(error: pygit2.GitError, url: str, *, pushing: Expected | None = None) -> Exception:
    """Return what a failure of libgit2 during a transfer means."""
    text = str(error)
    if pushing is not None and _LOST_RACE.search(text):
        return RefMoved(pushing.ref, old=pushing.old)
    if isinstance(error, pygit2.errors.AuthError):
        return _refused_credentials(url)
    if match := _STATUS.search(text):
        return _for_status(int(match[1]), url)
    if isinstance(error, pygit2.errors.CertificateError) or "certificate" in text:
        return RepositoryUnreachable(
            f"the TLS certificate of {url} is not trusted",
            remedy="Add its authority to the trusted ones, for example by SSL_CERT_FILE",
        )
    if re.search(r"resolve|failed to connect", text, re.I):
        return RepositoryUnreachable(
            f"{url} can not be reached", remedy="Check the host name and the network", transient=True
        )
    if getattr(error, "error_class", None) in _NETWORK_CLASSES or _NETWORK_WORDS.search(text):
        return TransientGitError(f"the connection to {url} was lost, or it did not answer in time")
    return DamagedRepository(f"the mirror of {url} can not be used")


def _for_status(status: int, url: str) -> GitError:
    if status == 401:
        return _refused_credentials(url)
    if status == 403:
        return AuthenticationFailed(
            f"{url} does not allow this (403)", remedy="Give the user of git.secretRef read and write access"
        )
    if status == 404:
        return RepositoryUnreachable(
            f"{url} does not exist, or is not visible with these credentials (404)",
            remedy="Correct git.url, or name a Secret with access in git.secretRef",
        )
    if status in (408, 425, 429) or status >= 500:
        return TransientGitError(f"{url} answered {status}")
    return RepositoryUnreachable(f"{url} answered {status}", remedy="Check that git.url names a Git repository")


def _refused_credentials(url: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{url} refuses the credentials", remedy="Correct the Secret that git.secretRef names: it may have expired"
    )
