"""Git without a work tree: mirrors, edits in the object database, one writer per branch."""

from kardinal.git.bare import create_bare_repository
from kardinal.git.credentials import Credentials
from kardinal.git.errors import (
    AuthenticationFailed,
    BranchNotFound,
    CommitNotFound,
    DamagedRepository,
    GitError,
    InvalidBranchName,
    MergeConflict,
    PushRejected,
    RefMoved,
    RepositoryUnreachable,
    TransientGitError,
)
from kardinal.git.history import FIND_DEPTH
from kardinal.git.references import HeldRecord, References
from kardinal.git.repositories import Repositories
from kardinal.git.repository import Repository
from kardinal.git.runner import BlockingCallOnLoop, GitRunner
from kardinal.git.tree import TreeView
from kardinal.git.values import Change, Commit, Head, Landed, Observer, Plan, Subscription

__all__ = [
    "FIND_DEPTH",
    "AuthenticationFailed",
    "BlockingCallOnLoop",
    "BranchNotFound",
    "Change",
    "Commit",
    "CommitNotFound",
    "Credentials",
    "DamagedRepository",
    "GitError",
    "GitRunner",
    "Head",
    "HeldRecord",
    "InvalidBranchName",
    "Landed",
    "MergeConflict",
    "Observer",
    "Plan",
    "PushRejected",
    "RefMoved",
    "References",
    "Repositories",
    "Repository",
    "RepositoryUnreachable",
    "Subscription",
    "TransientGitError",
    "TreeView",
    "create_bare_repository",
]
