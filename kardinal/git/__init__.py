"""Git without a work tree: mirrors, edits in the object database, one writer per branch.

    repository = repositories.open("https://github.com/acme/deploy", credentials, owner="team-a")
    landed = await repository.land("main", edit, message)
repositories, repository       the entry points: all repositories of a process, and the operations on one
backend, local, mirror         a repository on this machine, and a mirror of a remote one
transfers, program, ssh, redirects, meaning   fetches and pushes by `git`, and their errors
landing, proposing, merging, discarding, base_merges, writer, turns   changes of branches
objects, stored, tree, inputs  reading and building Git objects within limits
revisions, trees               the commits that names stand for, and trees as directories
history, ancestry, differences, diff, lines, merging_trees   comparing commits and texts
refs, references, lockfile, watcher, file_events   the references of a local repository
credentials, secret_credentials, secret_hosts, signing   Secrets, the hosts they are for, signatures

A module is imported when one of its names is first used: the command line loads `options` without libgit2.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal.git.bare import create_bare_repository
    from kardinal.git.cache import CACHE_SIZE
    from kardinal.git.credentials import GitCredentials
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
    from kardinal.git.runner import GitRunner
    from kardinal.git.transfers import TransferLimits
    from kardinal.git.tree import TreeView
    from kardinal.git.values import BranchSubscription, ChangedFile, Commit, EditPlan, Head, Landed, Observer

__all__ = [
    "CACHE_SIZE",
    "FIND_DEPTH",
    "NO_COMMIT",
    "AuthenticationFailed",
    "BranchLocked",
    "BranchNotFound",
    "BranchSubscription",
    "ChangedFile",
    "Commit",
    "CommitNotFound",
    "DamagedRepository",
    "EditPlan",
    "GitCredentials",
    "GitError",
    "GitRunner",
    "Head",
    "HeldRecord",
    "InvalidBranchName",
    "Landed",
    "MergeConflict",
    "ObjectsMissing",
    "Observer",
    "PushRejected",
    "RefMoved",
    "References",
    "Repositories",
    "Repository",
    "RepositoryUnreachable",
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
    "credentials": "GitCredentials",
    "errors": (
        "AuthenticationFailed BranchLocked BranchNotFound CommitNotFound DamagedRepository GitError "
        "InvalidBranchName MergeConflict ObjectsMissing PushRejected RefMoved RepositoryUnreachable TagNotFound "
        "TransferStopped TransientGitError"
    ),
    "history": "FIND_DEPTH",
    "references": "HeldRecord References",
    "repositories": "Repositories",
    "repository": "NO_COMMIT Repository",
    "runner": "GitRunner",
    "transfers": "TransferLimits",
    "tree": "TreeView",
    "values": "ChangedFile Commit Head Landed Observer EditPlan BranchSubscription",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
