"""Transfers by libgit2 in a Python of its own (`worker`), where there is no recent `git`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from kardinal.git.child import Children, cache_full, private_file
from kardinal.git.credentials import Credentials
from kardinal.git.errors import (
    AuthenticationFailed,
    DamagedRepository,
    GitError,
    MirrorBusy,
    PushRejected,
    RefMoved,
    RepositoryUnreachable,
    TransferStopped,
    TransientGitError,
)
from kardinal.git.meaning import Expected, failure_of
from kardinal.git.redirects import Redirected

__all__ = ["WorkerProgram"]

_PASSED_ON = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
_ERRORS = {
    error.__name__: error for error in (AuthenticationFailed, PushRejected, RepositoryUnreachable, TransferStopped)
}
_OF_MIRRORS = {error.__name__: error for error in (DamagedRepository, MirrorBusy)}


class _Events:
    """The events of one worker."""

    def __init__(self) -> None:
        self.advertised = False
        self.received: int | None = None
        self.result: dict[str, Any] | None = None

    def feed(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        self.advertised = True
        self.received = event.get("received", self.received)
        self.result = event.get("result", self.result)


class WorkerProgram:
    """Makes the transfers of one mirror with libgit2."""

    def __init__(self, mirror: str, credentials: Credentials | None, children: Children) -> None:
        self._mirror = mirror
        self._credentials = credentials
        self._children = children

    def fetch(self, url: str, refs: Sequence[str], *, whole: bool) -> Sequence[str]:
        """Make all branches of the mirror those of `url`: libgit2 can not leave out files."""
        self._run(url, None, None)
        return ()

    def fetch_objects(self, url: str, ids: Sequence[str]) -> None:
        raise DamagedRepository(f"the mirror of {url} lacks object {ids[0]}")

    def push(self, url: str, new: str | None, expected: Expected) -> None:
        """Move a reference of `url` from the expected commit to `new`; None deletes it."""
        self._run(url, new, expected)

    def try_push(self, url: str, expected: Expected) -> None:
        """Find out nothing: libgit2 cannot ask for the right to push without pushing."""

    def _run(self, url: str, new: str | None, expected: Expected | None) -> None:
        secret = self._credentials
        if url.startswith("ssh://") or (secret and secret.authority):
            needs = "a repository by ssh" if url.startswith("ssh://") else "ca.crt in a Secret"
            raise GitError(
                f"{needs} needs the git program, which this machine does not have in version 2.39 or newer",
                remedy="Use kardinal's images, or install git; libgit2 speaks https alone, with SSL_CERT_FILE for all",
            )
        request = {
            "mirror": self._mirror,
            "url": url,
            "credentials": [secret.username, secret.password] if secret and secret.password else None,
            "new": new,
            "expected": [expected.ref, expected.old] if expected else None,
        }
        events = _Events()
        with private_file(json.dumps(request).encode()) as number:
            command = [sys.executable, "-P", "-m", "kardinal.git.worker", f"/dev/fd/{number}"]
            environment = {name: os.environ[name] for name in _environment_names() if name in os.environ}
            environment |= {"HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join(sys.path)}
            ended = self._children.run(
                command, url=url, environment=environment, files=[number], reader=events, pushes=expected is not None
            )
        if events.result is None:
            raise failure_of(ended.text, url, pushing=expected)
        if ended.cramped and events.result.get("error") == TransferStopped.__name__:
            # libgit2 takes back a pack that got too long.
            raise cache_full(url)
        if events.result:
            raise _error(events.result, expected)


def _environment_names() -> list[str]:
    return [*_PASSED_ON, *(name.upper() for name in _PASSED_ON)]


def _error(result: dict[str, Any], expected: Expected | None) -> Exception:
    name = result["error"]
    if name == RefMoved.__name__ and expected is not None:
        return RefMoved(expected.ref, old=expected.old, lock=result["lock"], said=result["said"])
    if name == Redirected.__name__:
        return Redirected(result["location"])
    if name in _OF_MIRRORS:
        return _OF_MIRRORS[name](result["message"])
    if name == TransientGitError.__name__:
        return TransientGitError(result["message"], remedy=result["remedy"])
    kind = _ERRORS.get(name, GitError)
    return kind(result["message"], remedy=result["remedy"], transient=result["transient"])
