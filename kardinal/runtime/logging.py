"""Log lines: JSON for machines, coloured columns for a person at a terminal.

Whoever handles a request or a reconcile binds what it is about to context variables once; every line written
meanwhile carries it, also those of libraries. Values, not sentences, hold the facts, and secrets are never among
them.

A traceback names files, lines and functions but quotes no source: reading it would block the event loop at the very
moment something is wrong.

structlog is imported by the first who logs: with what it brings along it takes as long as starting a server.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

import orjson

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

__all__ = ["configure", "describe", "get_logger"]

LEVELS = ("debug", "info", "warning", "error")


def configure(*, level: str = "info", stream: TextIO | None = None, json: bool | None = None) -> None:
    """Set up the log of this process; `json` is decided by whether the stream is a terminal unless given."""
    import structlog  # noqa: PLC0415

    if level not in LEVELS:
        raise ValueError(f"{level!r} is no log level: use one of {', '.join(LEVELS)}")
    target = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    as_json = not target.isatty() if json is None else json
    shared: Sequence[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _describe_exception,
    ]
    rendered: list[Processor] = (
        [structlog.processors.JSONRenderer(serializer=_dumps)]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=target.isatty())]
    )
    structlog.configure(
        processors=[*shared, structlog.processors.StackInfoRenderer(), *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    # Libraries say little that helps below a warning.
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)


def get_logger(name: str | None = None) -> FilteringBoundLogger:
    """A logger that carries the context of its task."""
    import structlog  # noqa: PLC0415

    logger: FilteringBoundLogger = structlog.get_logger(name)
    return logger


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as fields of a log line."""
    frames = [
        f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return {"error": f"{type(error).__name__}: {error}", "traceback": frames}


def _describe_exception(_: object, __: str, event: EventDict) -> EventDict:
    """Take the place of `exc_info`, which libraries and the standard library pass."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = info[1] if isinstance(info, tuple) else info
    return {**event, **describe(error)} if isinstance(error, BaseException) else event


def _dumps(event: dict[str, Any], **_: object) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
