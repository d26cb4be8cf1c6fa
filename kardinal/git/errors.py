"""The errors of Git, each with a remedy.

    GitError
    ├── InvalidBranchName        the branch is not a name Git accepts
    ├── RepositoryUnreachable    no answer, or there is no such repository
    ├── AddressRefused           the host has an address at which no Git host is contacted
    ├── AuthenticationFailed     the credentials are missing or refused
    ├── BranchNotFound           the repository has no such branch
    ├── TagNotFound              the repository has no such tag
    ├── PushRejected             the repository refuses the change, and will refuse it again
    ├── MergeConflict            both sides changed the same lines
    ├── CommitNotFound           the repository has no such commit
    ├── DamagedRepository        objects or references that can not be read
    │   ├── MirrorBusy           a mirror whose branch is held or was moved by another writer
    │   ├── MirrorReplaced       a mirror that was made anew meanwhile
    │   └── ObjectsMissing       files that a mirror has not fetched yet
    ├── TransferStopped          a transfer that was killed, by a limit or because the program ends
    │   └── CacheFull            what is in use of the cache leaves no room for it
    └── TransientGitError        worth another attempt: lock races, resets, 5xx, timeouts
        └── BranchLocked         the host has a lock file that no push gives up

`transient` decides between retrying with back-off and giving up at once; it is a property of the error, so that no
caller keeps a list. A repository or a branch that does not exist may be made at any time, and is looked for again;
what was refused will be refused again.

Texts are kardinal's own: libgit2's may carry paths of the cache or pieces of a URL.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects.errors import KardinalError

__all__ = [
    "AddressRefused",
    "AuthenticationFailed",
    "BranchLocked",
    "BranchNotFound",
    "CacheFull",
    "CommitNotFound",
    "DamagedRepository",
    "GitError",
    "InvalidBranchName",
    "MemoryExceeded",
    "MergeConflict",
    "MirrorBusy",
    "MirrorReplaced",
    "ObjectsMissing",
    "PushRejected",
    "RefMoved",
    "RepositoryUnreachable",
    "TagNotFound",
    "TransferStopped",
    "TransientGitError",
]


class GitError(KardinalError):
    """A failed Git operation: what happened, and what the user can do about it."""


class InvalidBranchName(GitError):
    """A branch name that Git's own rules refuse."""

    field = "git.branch"


class RepositoryUnreachable(GitError):
    """No answer from the host, or no repository at that place."""

    field = "git.url"


class AddressRefused(GitError):
    """A host with an address at which no Git host is contacted: DNS, or the URL, has to be put right."""

    field = "git.url"
    transient = True
    blocked = True


class AuthenticationFailed(GitError):
    """Credentials that are missing, wrong or not sufficient: those of a Secret can be put right at any time."""

    field = "git.secretRef"
    transient = True
    blocked = True


class BranchNotFound(GitError):
    """A branch that is not in the repository; it is looked for again."""

    field = "git.branch"
    transient = True


class TagNotFound(GitError):
    """A tag that is not in the repository, or that is none of a commit."""


class CommitNotFound(GitError):
    """A commit that is not in the repository."""


class DamagedRepository(GitError):
    """Objects or references that can not be read; a mirror is made anew, a user's repository is not ours to mend."""

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="Check the repository with `git fsck`", transient=True)


class MirrorBusy(DamagedRepository):
    """A branch of a mirror that another writer holds or has moved: a push of ours, or a process that was killed."""


class MirrorReplaced(DamagedRepository):
    """A mirror that was made anew during an operation, which begins again in the one that is there now."""


class ObjectsMissing(DamagedRepository):
    """Files that a mirror without contents has to fetch before they can be read."""

    def __init__(self, ids: frozenset[str]) -> None:
        super().__init__(f"object {min(ids)} can not be read")
        self.ids = ids


class PushRejected(GitError):
    """A change that the repository refuses by its own rules: protection, a hook, a checked-out branch."""


class MergeConflict(GitError):
    """Two changes to the same content."""

    def __init__(self, paths: Sequence[str], *, remedy: str = "") -> None:
        super().__init__(f"conflicting changes in {', '.join(paths)}", remedy=remedy)
        self.paths = tuple(paths)


class TransientGitError(GitError):
    """A failure that another attempt may not meet."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy, transient=True)


class BranchLocked(TransientGitError):
    """A branch whose lock file at the host stays there: mostly that of a push that was killed.

    `said`: the host's own words. `lock`: the path of the file, as the host names it.
    """

    def __init__(self, branch: str, *, said: str, lock: str) -> None:
        super().__init__(
            f"{branch} can not be moved, and nothing else moves it; the host says: {said}",
            remedy=f"If no push is under way there, one that was killed has left {lock}: remove it at the host, "
            f"and HEAD.lock and refs/heads/{branch}.lock of the repository where they are there",
        )


class TransferStopped(GitError):
    """A transfer that was killed: what it wrote into a mirror may be half done."""

    transient = True


class MemoryExceeded(TransferStopped):
    """A child that was killed for the memory that it held, which another attempt needs again unless others ran, too."""

    def __init__(self, name: str, limit: int, *, beside_others: bool = False) -> None:
        super().__init__(
            f"{name} needs more than the {limit >> 20} MiB of memory that there are for it",
            remedy="Raise the memory limit of the container",
            transient=beside_others,
        )


class CacheFull(TransferStopped):
    """A transfer for which the cache of mirrors has no room, as long as others are in use."""


class RefMoved(Exception):
    """A reference no longer has the value a change was built on; the caller reads again and rebuilds.

    `lock`: the lock file that the host found in the way, which may be that of another push or of a killed one. `said`:
    the host's words about it.
    """

    def __init__(self, name: str, *, old: str | None, lock: str = "", said: str = "") -> None:
        super().__init__(name)
        self.name = name
        self.old = old
        self.lock = lock
        self.said = said
