"""Branch and reference names, validated by Git's rules before they become paths.

A branch name comes from a Pipeline, and so from outside, and becomes a path below `refs/heads` of a local repository.
The rules are those of `git check-ref-format`, so no valid name can leave `refs/`.
"""

from __future__ import annotations

import re

from kardinal.git.errors import InvalidBranchName

__all__ = ["HEADS", "branch_of", "branch_ref", "check_ref", "tag_ref"]

HEADS = "refs/heads/"
_TAGS = "refs/tags/"

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.$|/$|^/")
_MAX_LENGTH = 200


def branch_ref(branch: str) -> str:
    """Return the full name of a branch: `refs/heads/main` for `main`. Raises `InvalidBranchName`."""
    if branch.startswith("-") or branch == "HEAD":
        raise _invalid(branch)
    return check_ref(HEADS + branch)


def tag_ref(tag: str) -> str:
    """Return the full name of a tag: `refs/tags/v1` for `v1`. Raises `InvalidBranchName`."""
    if tag.startswith("-"):
        raise _invalid(tag)
    return check_ref(_TAGS + tag)


def branch_of(ref: str) -> str:
    """Return the short name of a branch: `main` for `refs/heads/main`."""
    return ref.removeprefix(HEADS)


def check_ref(ref: str) -> str:
    """Return `ref` if Git accepts it as the full name of a reference; raises `InvalidBranchName`."""
    segments = ref.split("/")
    well_formed = (
        ref.startswith("refs/")
        and len(ref) <= _MAX_LENGTH + len(HEADS)
        and not _FORBIDDEN.search(ref)
        and all(segment and not segment.startswith(".") and not segment.endswith(".lock") for segment in segments)
    )
    if not well_formed:
        raise _invalid(branch_of(ref))
    return ref


def _invalid(name: str) -> InvalidBranchName:
    return InvalidBranchName(
        f"{name[:80]!r} is not a branch name", remedy="Use a name that `git check-ref-format --branch` accepts"
    )
