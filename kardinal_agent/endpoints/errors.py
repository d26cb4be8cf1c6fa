"""The errors of endpoints. No message contains the path or query of a URL, or a value of a Secret."""

from __future__ import annotations

from kardinal_agent.errors import AgentError

__all__ = ["EndpointFailed", "EndpointUnavailable", "HostRefused"]


class HostRefused(AgentError):
    """A forbidden host; the message names the flag that permits it."""


class EndpointFailed(AgentError):
    """A final failure: another attempt would get the same answer."""


class EndpointUnavailable(AgentError):
    """No answer, or an answer (429, 5xx) after which the request is tried again."""

    transient = True

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
