"""The capabilities of providers: the features of its host that a Pipeline may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Capabilities", "MergeMethod", "PullRequestField"]

MergeMethod = Literal["merge", "squash", "rebase"]
PullRequestField = Literal["reviewers", "teamReviewers", "assignees", "labels", "draft"]
"""A field of `git.pullRequest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features that a provider supports.

    `local`: pull requests are kept in a repository on this machine. `merge_methods`: the values of `git.mergeMethod`
    that a Pipeline may choose, for example `squash`. `statuses`: commit statuses, which protected branches may require.
    `compares_branches`: the files in which a commit differs from any branch, not only from the base of its pull
    request. `webhooks`: deliveries to the webhook. `pull_request_fields`: the supported fields of `git.pullRequest`.
    """

    pull_requests: bool
    local: bool = False
    statuses: bool = False
    compares_branches: bool = False
    webhooks: bool = False
    merge_methods: frozenset[MergeMethod] = field(default_factory=frozenset)
    pull_request_fields: frozenset[PullRequestField] = field(default_factory=frozenset)
