"""What can keep a promotion from going on, and whether another attempt may help.

    AgentError
    ├── StepFailed      a step cannot be done; ends the promotion
    └── ConfigurationError   the program was started with options that do not fit together

`classified` is the one place that decides between retrying and giving up. Failures of Git say so themselves; of an API
server, what is not the caller's fault is retried. What is not known at all is retried as well, because a bug in one
version must not end promotions that the next version could finish; its text stays in the log, where secrets it may
hold are not shown to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.git import (
    AuthenticationFailed,
    BranchNotFound,
    GitError,
    InvalidBranchName,
    InvalidRepositoryURL,
    LocalRepositoryRefused,
    RepositoryUnreachable,
)
from kardinal.kube import ApiError, ConnectionFailed, DeadlineExceeded, KubeError, ServerError, TooManyRequests
from kardinal.scm import PullRequestError

__all__ = ["AgentError", "ConfigurationError", "Failure", "StepFailed", "classified"]

_FIELDS: dict[type[GitError], str] = {
    AuthenticationFailed: "git.secretRef",
    BranchNotFound: "git.branch",
    InvalidBranchName: "git.branch",
    InvalidRepositoryURL: "git.url",
    LocalRepositoryRefused: "git.url",
    RepositoryUnreachable: "git.url",
}
"""The field of the PromotionStep's spec that a failure of Git speaks of."""


class AgentError(Exception):
    """Anything the agent itself reports."""


class StepFailed(AgentError):
    """A step that cannot be done: `reason` for machines and metrics, the message with field and remedy for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ConfigurationError(AgentError):
    """The program cannot start as it was told to; says which option to change."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt. `known` is False for what nobody foresaw and the log must tell in full."""

    reason: str
    message: str
    transient: bool
    retry_after: float | None = None
    known: bool = True


def classified(error: Exception) -> Failure:
    """What `error` means for the promotion it happened to."""
    if isinstance(error, StepFailed):
        return Failure(error.reason, str(error), transient=False)
    if isinstance(error, GitError):
        field = _FIELDS.get(type(error))
        return Failure(type(error).__name__, f"{field}: {error}" if field else str(error), transient=error.transient)
    if isinstance(error, PullRequestError):
        return Failure(type(error).__name__, str(error), transient=False)
    if isinstance(error, KubeError):
        passing = isinstance(error, (ConnectionFailed, DeadlineExceeded, ServerError, TooManyRequests))
        retry_after = error.retry_after if isinstance(error, ApiError) else None
        return Failure(type(error).__name__, str(error), transient=passing, retry_after=retry_after)
    if isinstance(error, TimeoutError):
        return Failure("Timeout", "no answer in time", transient=True)
    name = type(error).__name__
    return Failure(name, f"unexpected {name}; the agent's log has the details", transient=True, known=False)
