"""Log lines for machines and for people."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import orjson
import pytest
import structlog
from structlog.contextvars import bound_contextvars

from kardinal.runtime.logging import configure, describe, get_logger


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.level = level


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_time_level_and_context() -> None:
    stream = io.StringIO()
    configure(stream=stream)
    with bound_contextvars(controller="c"):
        get_logger().info("hello", count=3)
    (line,) = lines(stream)
    assert line.pop("timestamp")
    assert line == {"event": "hello", "level": "info", "controller": "c", "count": 3}


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure(stream=stream, level="warning")
    get_logger().info("hello")
    get_logger().warning("watch out")
    assert [line["event"] for line in lines(stream)] == ["watch out"]


def test_a_terminal_gets_columns_and_not_json() -> None:
    stream = Terminal()
    configure(stream=stream)
    get_logger().info("hello", count=3)
    assert "hello" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_foreign_text_in_a_log_is_escaped_for_terminals() -> None:
    stream = Terminal()
    configure(stream=stream)
    get_logger().warning("refused", reason="\x1b[2J\x9b2J\u202eab", seen=["\x1b[8m"])
    logging.getLogger("library").warning("said \x1b]0;title\x07")
    shown = stream.getvalue()
    assert "\\x1b[2J\\x9b2J\\u202eab" in shown
    assert "\\x1b[8m" in shown
    assert "said \\x1b]0;title\\x07" in shown
    raw = ("\x1b[2J", "\x1b]", "\x1b[8m", "\x9b", "\u202e", "\x07")
    assert [each for each in raw if each in shown] == []


def test_libraries_speak_the_same_language() -> None:
    stream = io.StringIO()
    configure(stream=stream)
    logging.getLogger("aiohttp").warning("slow %s", "peer")
    logging.getLogger("aiohttp").info("nobody asked")
    (line,) = lines(stream)
    assert (line["event"], line["level"]) == ("slow peer", "warning")


def boom() -> None:
    raise ValueError("no good")


def test_a_traceback_names_places_and_reads_no_source() -> None:
    stream = io.StringIO()
    configure(stream=stream)
    try:
        boom()
    except ValueError as error:
        logging.getLogger("aiohttp").exception("failed")
        get_logger().error("failed", exc_info=True)
        get_logger().error("failed", **describe(error))
    for line in lines(stream):
        assert line["error"] == "ValueError: no good"
        traceback = line["traceback"]
        assert isinstance(traceback, list)
        assert [entry.rpartition(" ")[2] for entry in traceback][-1] == "boom"
        assert "raise ValueError" not in str(line)


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="debug, info, warning, error"):
        configure(level="loud")
