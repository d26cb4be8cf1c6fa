"""The root of every error that kardinal reports.

Callers decide by the attributes of an error, so that none of them keeps a list of error types:

    transient      another attempt may succeed without a change of the resources
    field          the field its author has to change, such as `git.url`; empty where no field is at fault
    remedy         an instruction for the reader, such as "create the branch"
    retry_after    seconds that the other side asked to wait
    attempts       the most attempts at a transient error; None leaves the number to the caller
    blocked        transient, but only a person can mend the cause, outside of the resources, such as in a Secret

The trees below it: `kardinal.kube.errors`, `kardinal.processes.errors`, `kardinal.git.errors`, `kardinal.scm.errors`,
`kardinal.runtime.errors`, `kardinal.promotion.translation.errors`, `kardinal.promotion.views.missing`,
`kardinal_agent.errors`, `kardinal.tree.repository_url`.
"""

from __future__ import annotations

__all__ = ["KardinalError"]


class KardinalError(Exception):
    """A failure, with a remedy for its reader."""

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
