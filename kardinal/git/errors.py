"""The errors of Git, each with a remedy.

    GitError
    ├── InvalidBranchName        Git does not accept the name of the branch
    ├── RepositoryUnreachable    no answer, or there is no such repository
    ├── AddressRefused           the host has an address at which no Git host is contacted
    ├── ProgramMissing           this machine has no git, or no ssh, for transfers
    ├── AuthenticationFailed     the credentials are missing or refused
    ├── BranchNotFound           the repository has no such branch
    ├── TagNotFound              the repository has no such tag
    ├── PushRejected             the repository refuses the change, and will refuse it again
    ├── MergeConflict            both sides changed the same lines
    ├── CommitNotFound           the repository has no such commit
    ├── DamagedRepository        objects or references cannot be read
    │   ├── MirrorBusy           a branch of a mirror is locked or was moved by another writer
    │   ├── MirrorReplaced       the mirror was cloned again meanwhile
    │   └── ObjectsMissing       files that a mirror has not fetched yet
    ├── TransferStopped          the transfer was killed, by a limit or because the program ends
    │   ├── MemoryExceeded       the transfer used more memory than there is for transfers
    │   └── CacheFull            the mirrors in use leave no room for the transfer
    └── TransientGitError        worth another attempt: lock races, resets, 5xx, timeouts
        └── BranchLocked         the host has a lock file that does not disappear

`transient` decides between retrying with back-off and giving up at once. It is a property of the error, so that no
caller needs a list. A repository or a branch that does not exist may be created at any time, so its error is retried; a
refused change would be refused again.

The messages are written here, because those of libgit2 may contain paths of the cache or parts of a URL.
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
    "ProgramMissing",
    "PushRejected",
    "RefMoved",
    "RepositoryUnreachable",
    "TagNotFound",
    "TransferStopped",
    "TransientGitError",
]


class GitError(KardinalError):
    """A failed Git operation: the problem, and the remedy."""


class InvalidBranchName(GitError):
    """A branch name that Git's own rules refuse."""

    field = "git.branch"


class RepositoryUnreachable(GitError):
    """No answer from the host, or no repository at that URL."""

    field = "git.url"


class AddressRefused(GitError):
    """A host with an address at which no Git host is contacted. DNS, or the URL, has to be corrected."""

    field = "git.url"
    transient = True
    blocked = True


class ProgramMissing(GitError):
    """A program for transfers that this machine does not have. The operator has to install it."""

    field = "git.url"
    transient = True
    blocked = True


class AuthenticationFailed(GitError):
    """Credentials that are missing, wrong or not sufficient.

    Retried, because the Secret can be corrected at any time.
    """

    field = "git.secretRef"
    transient = True
    blocked = True


class BranchNotFound(GitError):
    """A branch that is not in the repository. Retried, because it can be created at any time."""

    field = "git.branch"
    transient = True


class TagNotFound(GitError):
    """A tag that is not in the repository, or that does not point to a commit."""


class CommitNotFound(GitError):
    """A commit that is not in the repository."""


class DamagedRepository(GitError):
    """Objects or references that can not be read. A mirror is cloned again; a user's own repository is left alone."""

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="Check the repository with `git fsck`", transient=True)


class MirrorBusy(DamagedRepository):
    """A branch of a mirror that is locked or was moved: by a push of this process, or by a killed process."""


class MirrorReplaced(DamagedRepository):
    """A mirror that was cloned again during an operation; the operation starts again in the new mirror."""


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
    """A failure that may not happen again."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy, transient=True)


class BranchLocked(TransientGitError):
    """A branch whose lock file stays at the host, mostly because a push was killed.

    `said`: the message of the host. `lock`: the path of the lock file in that message.
    """

    def __init__(self, branch: str, *, said: str, lock: str) -> None:
        super().__init__(
            f"{branch} can not be moved, and nothing else moves it; the host says: {said}",
            remedy=f"If no push is under way there, one that was killed has left {lock}: remove it at the host, "
            f"and HEAD.lock and refs/heads/{branch}.lock of the repository where they are there",
        )


class TransferStopped(GitError):
    """A transfer that was killed; the mirror may contain unfinished files."""

    transient = True


class MemoryExceeded(TransferStopped):
    """A transfer that was killed because it used too much memory."""


class CacheFull(TransferStopped):
    """A transfer for which the cache has no room while other mirrors are in use."""


class RefMoved(Exception):
    """A reference is no longer at the commit on which a change was built; the caller reads it again and rebuilds.

    `lock`: the lock file that the host reported, which may belong to another push or to a killed one. `said`: the
    message of the host about it.
    """

    def __init__(self, name: str, *, old: str | None, lock: str = "", said: str = "") -> None:
        super().__init__(name)
        self.name = name
        self.old = old
        self.lock = lock
        self.said = said
