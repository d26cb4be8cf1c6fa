"""The capabilities of providers: what a Pipeline may ask of the host of its repository."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Capabilities", "MergeMethod"]

MergeMethod = Literal["merge", "squash", "rebase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of a provider.

    `local`: it keeps pull requests in a repository on this machine. `merge_methods`: those that a Pipeline may choose
    between. `statuses`: it shows commit statuses, which branches may require. `compares_branches`: it lists the files
    in which a commit differs from any branch, not only from the one its pull request goes to. `webhooks`: it sends
    deliveries.
    """

    pull_requests: bool
    local: bool = False
    statuses: bool = False
    compares_branches: bool = False
    webhooks: bool = False
    merge_methods: frozenset[MergeMethod] = field(default_factory=frozenset)
