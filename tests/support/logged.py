"""The log of a test: plain lines, and none that tells of a bug."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog
from structlog.typing import EventDict, WrappedLogger

__all__ = ["BUG", "logged_bugs"]

BUG = "by a bug"
"""The words in the log about an error that was not foreseen."""


_with_traceback = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
"""structlog's own default decorates a traceback, which reads files on the event loop."""


def _line(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """Return a log line as text: few lines of a run are read, so it is made in the cheapest way that can be read."""
    if event.get("exc_info") or "exception" in event or "stack" in event:
        return _with_traceback(logger, method, event)
    values = " ".join(f"{key}={value}" for key, value in event.items() if key not in _IN_FRONT)
    return f"[{event['level']}] {event['event']} {values}"


_IN_FRONT = frozenset({"level", "event"})


@pytest.fixture(autouse=True)
def logged_bugs() -> Iterator[list[str]]:
    """Log lines as text, and yield the bugs among them; a test that causes some takes them out of the list."""
    found: list[str] = []

    def note(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if BUG in str(event["event"]):
            found.append(str(event))
        return event

    structlog.configure(
        processors=[
            note,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _line,
        ],
        # A command that ran in this process may have set a level for the whole process.
        wrapper_class=structlog.make_filtering_bound_logger(0),
        # A command that runs in this process has standard output for itself.
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    yield found
    assert found == [], "a bug was logged"
