"""The log of a test: plain lines, and none that tells of a bug."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

__all__ = ["BUG", "logged_bugs"]

BUG = "by a bug"
"""The words in the log about an error that was not foreseen."""


@pytest.fixture(autouse=True)
def logged_bugs() -> Iterator[list[str]]:
    """Log lines as text, and yield the bugs among them; a test that causes some takes them out of the list.

    structlog's own default decorates a traceback, which reads files on the event loop.
    """
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
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )
    yield found
    assert found == [], "a bug was logged"
