"""Convert the failures of a transfer to errors.

Only this module recognises them, by the HTTP status and by the messages of Git and curl; messages of ssh are in `ssh`.
Users read kardinal's own texts. Only the remote's message about a refused push is quoted, because it names the rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
from kardinal.git.names import branch_of

__all__ = ["Expected", "failure_of", "for_status", "no_credentials", "refused_credentials", "refused_push"]

_EXPLANATION = 200
"""The maximum length of a quoted message of a remote, in characters."""

_LOST_RACE = re.compile(
    r"non-fast-?forward|fetch first|stale info|already exists"
    r"|cannot lock ref|failed to (lock|update ref)|incorrect old value|remote ref (updated|has changed)",
    re.I,
)
_LOCK = re.compile(r"Unable to create '([^'\n]{1,200}\.lock)': File exists", re.I)
"""Git's message about an existing lock file, of another push or of one that was killed."""
_NETWORK_WORDS = re.compile(
    r"SSL error|socket|timed out|connect|resolve|unexpected EOF|early EOF|hung up|RPC failed|Empty reply|Recv failure"
    r"|Send failure|transfer closed|reset|GnuTLS|TLS|HTTP/2|remote failure",
    re.I,
)
_SAID_BY_REMOTE = re.compile(r"^remote: .*$", re.M)
_UNREACHABLE = re.compile(r"resolve|failed to connect|could ?n[o']t connect", re.I)
_NO_MEMORY = re.compile(r"out of memory|cannot allocate memory|mmap failed|failed to (allocate|mmap|map segment)", re.I)
_DAMAGED = re.compile(
    r"not a git repository: |could not read|unable to (read|create|write|parse)|bad object|inflate|corrupt"
    r"|revision walk|packfile|pack signature|missing (blob|tree|commit)|loose object|index-pack failed"
    r"|not a valid object|all necessary objects",
    re.I,
)
_TOO_LARGE = re.compile(r"signal 25|file too large|file size limit", re.I)
_NOT_GIT = re.compile(
    r"protocol error|bad line length|is this a git repository|invalid server response|expected flush|expected packet"
    r"|invalid (pkt|packet|content-type)|unexpected (content|pkt)",
    re.I,
)
_CUT_SHORT = re.compile(r"transfer closed|Recv failure|bytes? of body are still expected", re.I)
"""Messages about an answer that was cut short; checked before those about an answer that is not Git's."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The precondition of a push: the reference and its commit; None if the reference must not exist."""

    ref: str
    old: str | None


def failure_of(text: str, url: str, *, pushing: Expected | None = None) -> Exception:
    """Return the error for a transfer that failed without an HTTP status, from the text of Git."""
    text = _SAID_BY_REMOTE.sub("", text)
    if pushing is not None and _LOST_RACE.search(text):
        return RefMoved(pushing.ref, old=pushing.old)
    if "certificate" in text:
        return RepositoryUnreachable(
            f"the TLS certificate of {url} is not trusted",
            remedy="Put its authority into ca.crt of the Secret that git.secretRef names, or trust it by SSL_CERT_FILE",
        )
    if _UNREACHABLE.search(text):
        return RepositoryUnreachable(
            f"{url} can not be reached", remedy="Check the host name and the network", transient=True
        )
    if _NO_MEMORY.search(text):
        return GitError(
            f"the transfer with {url} needs more memory than one is given", remedy="Use a smaller repository"
        )
    if _TOO_LARGE.search(text):
        return TransferStopped(
            f"{url} is larger than the mirror of a repository may be",
            remedy="Keep what is deployed in a repository of its own",
            transient=False,
        )
    if "No space left" in text:
        return TransientGitError(f"there is no space for the mirror of {url}", remedy="Enlarge the volume of the cache")
    if "cannot lock ref" in text or ".lock'" in text:
        return MirrorBusy(f"the mirror of {url} is locked")
    if "too slow" in text:
        return TransientGitError(f"{url} sends too little, or did not answer in time")
    if _NOT_GIT.search(text) and not _CUT_SHORT.search(text):
        return RepositoryUnreachable(
            f"{url} does not answer as a Git repository does", remedy="Check that git.url names one"
        )
    if not _DAMAGED.search(text) and _NETWORK_WORDS.search(text):
        return TransientGitError(f"the connection to {url} was lost, or it did not answer in time")
    return DamagedRepository(f"the mirror of {url} can not be used")


def refused_push(refusal: str, said: str, url: str, pushing: Expected, *, quoted: bool = True) -> Exception:
    """Return the error for a push that the remote refused with `refusal`; `said` is its message to the user.

    `quoted`: the message may be quoted.
    """
    if quoted and (lock := _LOCK.search(said)):
        return RefMoved(pushing.ref, old=pushing.old, lock=_plain(lock[1]), said=_plain(said))
    if _LOST_RACE.search(refusal) or _LOST_RACE.search(said):
        return RefMoved(pushing.ref, old=pushing.old)
    return PushRejected(
        f"{url} refuses the push to {branch_of(pushing.ref)}" + (f": {_plain(f'{refusal}. {said}')}" if quoted else ""),
        remedy="Allow this user to push to the branch, or use approval: pr-review",
    )


def _plain(words: str) -> str:
    """Return a message of a remote as one line of printable text with limited length."""
    printable = "".join(character if character.isprintable() else " " for character in words)
    return " ".join(printable.split())[:_EXPLANATION].strip(" .")


def for_status(status: int, url: str) -> GitError:
    """Return the error for a transfer that failed with this HTTP status."""
    if status == 401:
        return refused_credentials(url)
    if status == 403:
        return AuthenticationFailed(
            f"{url} does not allow this (403)", remedy="Give the user of git.secretRef read and write access"
        )
    if status == 404:
        return RepositoryUnreachable(
            f"{url} does not exist, or is not visible with these credentials (404)",
            remedy="Correct the URL, or name a Secret with access in secretRef",
            transient=True,
        )
    if status in (408, 425, 429) or status >= 500:
        return TransientGitError(f"{url} answered {status}")
    return RepositoryUnreachable(f"{url} answered {status}", remedy="Check that git.url names a Git repository")


def no_credentials(url: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{url} asks for credentials",
        remedy="Put username and password, or a token, into a Secret and name it in secretRef",
        transient=False,
    )


def refused_credentials(url: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{url} refuses the credentials", remedy="Correct the Secret that git.secretRef names: it may have expired"
    )
