"""Git without a work tree: mirrors, edits in the object database, one writer per branch.

A module is imported when a name of its is first used: the process that makes one transfer loads no more than that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal.git.bare import create_bare_repository
    from kardinal.git.cache import CACHE_SIZE
    from kardinal.git.child import TransferLimits
    from kardinal.git.credentials import Credentials
    from kardinal.git.errors import (
        AuthenticationFailed,
        BranchLocked,
        BranchNotFound,
        CommitNotFound,
        DamagedRepository,
        GitError,
        InvalidBranchName,
        MergeConflict,
        ObjectsMissing,
        PushRejected,
        RefMoved,
        RepositoryUnreachable,
        TagNotFound,
        TransferStopped,
        TransientGitError,
    )
    from kardinal.git.history import FIND_DEPTH
    from kardinal.git.references import HeldRecord, References
    from kardinal.git.repositories import Repositories
    from kardinal.git.repository import NO_COMMIT, Repository
    from kardinal.git.runner import BlockingCallOnLoop, GitRunner
    from kardinal.git.tree import TreeView
    from kardinal.git.values import Change, Commit, Head, Landed, Observer, Plan, Subscription

__all__ = [
    "CACHE_SIZE",
    "FIND_DEPTH",
    "NO_COMMIT",
    "AuthenticationFailed",
    "BlockingCallOnLoop",
    "BranchLocked",
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
    "ObjectsMissing",
    "Observer",
    "Plan",
    "PushRejected",
    "RefMoved",
    "References",
    "Repositories",
    "Repository",
    "RepositoryUnreachable",
    "Subscription",
    "TagNotFound",
    "TransferLimits",
    "TransferStopped",
    "TransientGitError",
    "TreeView",
    "create_bare_repository",
]

_MODULES = {
    "bare": "create_bare_repository",
    "cache": "CACHE_SIZE",
    "child": "TransferLimits",
    "credentials": "Credentials",
    "errors": (
        "AuthenticationFailed BranchLocked BranchNotFound CommitNotFound DamagedRepository GitError "
        "InvalidBranchName MergeConflict ObjectsMissing PushRejected RefMoved RepositoryUnreachable TagNotFound "
        "TransferStopped TransientGitError"
    ),
    "history": "FIND_DEPTH",
    "references": "HeldRecord References",
    "repositories": "Repositories",
    "repository": "NO_COMMIT Repository",
    "runner": "BlockingCallOnLoop GitRunner",
    "tree": "TreeView",
    "values": "Change Commit Head Landed Observer Plan Subscription",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
