"""The errors of endpoints. No message holds a path, a query or a value of a Secret."""

from __future__ import annotations

from kardinal_agent.errors import AgentError

__all__ = ["EndpointFailed", "EndpointUnavailable", "HostRefused"]


class HostRefused(AgentError):
    """A host that must not be contacted; says which flag decides."""


class EndpointFailed(AgentError):
    """An answer that another attempt would not change."""


class EndpointUnavailable(AgentError):
    """No answer, or one that asks for another attempt."""

    transient = True

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
