"""Errors of the agent, and what any error means for the promotion it happened to.

    AgentError
    ├── StepFailed      a step cannot be done; ends the promotion
    ├── SecretNotFound       the agent's own cluster does not have a Secret; looked for again
    ├── SecretUnreadable     the agent's own cluster does not let it read a Secret; looked at again
    └── ConfigurationError   the program was started with options that do not fit together

`classified` decides between retrying and giving up by what the error itself carries. An exception that is no error of
kardinal's is retried as well, because a bug in one version must not end promotions that the next version could finish;
its text goes to the log alone, because it may hold secrets.
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
    """Anything the agent itself reports."""


class StepFailed(AgentError):
    """A step that cannot be done: `reason` for machines and metrics, the message with field and remedy for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def name(self) -> str:
        return self.reason


class SecretNotFound(AgentError):
    """A Secret that does not exist: it can be made at any time, so it is looked for again."""

    transient = True
    blocked = True


class SecretUnreadable(AgentError):
    """A Secret that the agent may not read: an administrator can permit it at any time, so it is tried again."""

    transient = True
    blocked = True


class ConfigurationError(AgentError):
    """The program cannot start with these options; says which one to change."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt. `known` is False for an error that is none of kardinal's: the log has all of it.

    `attempts` is how often such a failure is met before it ends the promotion; None for always. `blocked`: it is met
    until a person has put something right, such as a Secret.
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
        """Return whether it may pass by itself."""
        return self.transient and not self.blocked


def classified(error: Exception) -> Failure:
    """Return what `error` means for the promotion it happened to."""
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
