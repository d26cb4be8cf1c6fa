"""The root of every error that kardinal reports.

What is decided about an error is data that it carries, so that no caller keeps a list of types:

    transient      another attempt may succeed without a change of the resources
    field          the field its author has to change, such as `git.url`; empty where no field is at fault
    remedy         what to do about it
    retry_after    seconds that the other side asked to wait
    attempts       how often it is tried at most where it is transient; None leaves it to the caller
    blocked        where it is transient: only a person can mend it, outside of the resources, such as in a Secret

The trees below it: `kardinal.kube.errors`, `kardinal.git.errors`, `kardinal.scm.errors`, `kardinal.runtime.errors`,
`kardinal.translation.errors`, `kardinal_agent.errors`, `kardinal.api.repository_url`.
"""

from __future__ import annotations

__all__ = ["KardinalError"]


class KardinalError(Exception):
    """A failure with what its reader can do about it."""

    transient: bool = False
    field: str = ""
    remedy: str = ""
    retry_after: float | None = None
    attempts: int | None = None
    blocked: bool = False

    def __init__(self, message: str = "", *, remedy: str = "", transient: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        if remedy:
            self.remedy = remedy
        if transient is not None:
            self.transient = transient

    @property
    def name(self) -> str:
        """The CamelCase word for conditions, Events and metrics."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message
