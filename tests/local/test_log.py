"""The log of the process that a plane runs in."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import orjson
import pytest
import structlog

from kardinal.runtime.logging import configure
from kardinal_local.plane.storage import Change, Committed, make_entry


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.level = level


def test_an_error_of_the_plane_is_a_line_like_those_of_the_programs_and_names_no_content() -> None:
    stream = io.StringIO()
    configure(level="error", stream=stream, json=True)
    heard: list[Change] = []

    def fail(change: Change) -> None:
        raise LookupError("no such thing")

    committed = Committed([], revision=0)
    committed.listen(fail)
    committed.listen(heard.append)
    secret = {"metadata": {"name": "s", "uid": "u", "resourceVersion": "1"}, "data": {"key": "d29yZA=="}}
    change = Change("ADDED", make_entry("secrets", secret), None)
    committed.publish(change)

    (line,) = [orjson.loads(text) for text in stream.getvalue().splitlines()]
    assert (line["event"], line["level"]) == ("a listener failed on a commit of secrets", "error")
    assert line["error"] == "LookupError: no such thing"
    assert line["timestamp"]
    assert "d29yZA==" not in stream.getvalue()
    assert heard == [change]
