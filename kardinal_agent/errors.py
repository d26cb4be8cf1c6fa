"""Errors of the agent, and the consequence of any error for its promotion.

    AgentError
    ├── StepFailed      a step cannot be done; ends the promotion
    ├── SecretNotFound       the agent's own cluster does not have a Secret; looked for again
    ├── SecretUnreadable     the agent's own cluster does not let it read a Secret; looked at again
    └── ConfigurationError   the program was started with options that do not fit together

`classified` decides between a retry and the end by the attributes of the error. An exception that is not a
`KardinalError` is retried as well, because a bug in one version must not end promotions that the next version could
finish; its text is written to the log only, because it may contain secrets.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.objects.errors import KardinalError

__all__ = [
    "AgentError",
    "ConfigurationError",
    "Failure",
    "SecretNotFound",
    "SecretUnreadable",
    "StepFailed",
    "classified",
]


class AgentError(KardinalError):
    """An error of the agent itself."""


class StepFailed(AgentError):
    """A step that cannot be done: `reason` is for metrics, the message with field and remedy for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def name(self) -> str:
        return self.reason


class SecretNotFound(AgentError):
    """A Secret that does not exist. It may be created at any time, so it is looked for again."""

    transient = True
    blocked = True


class SecretUnreadable(AgentError):
    """A Secret that the agent has no right to read. An administrator may grant it at any time, so it is tried again."""

    transient = True
    blocked = True


class ConfigurationError(AgentError):
    """The program cannot start with its options; the message names the option to change."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed try. `known` is False for an exception that is not a `KardinalError`; the log has its traceback.

    `attempts` is the number of such failures that ends the promotion; None for no end. `blocked`: the failure repeats
    until a person mends its cause, such as a Secret.
    """

    reason: str
    message: str
    transient: bool
    retry_after: float | None = None
    attempts: int | None = None
    blocked: bool = False
    known: bool = True

    @property
    def passing(self) -> bool:
        """Return whether the failure may pass without a person."""
        return self.transient and not self.blocked


def classified(error: Exception) -> Failure:
    """Return the failure of a promotion in which `error` was raised."""
    if isinstance(error, KardinalError):
        message = f"{error.field}: {error}" if error.field else str(error)
        return Failure(
            error.name,
            message,
            transient=error.transient,
            retry_after=error.retry_after,
            attempts=error.attempts,
            blocked=error.transient and error.blocked,
        )
    if isinstance(error, TimeoutError):
        return Failure("Timeout", "no answer in time", transient=True)
    name = type(error).__name__
    return Failure(name, f"unexpected {name}; the agent's log has the details", transient=True, known=False)
