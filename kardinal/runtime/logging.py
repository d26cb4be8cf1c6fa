"""Log lines: JSON for machines, coloured columns for a person at a terminal.

The handler of a request or a reconcile binds its subject to context variables once. Every line written during it
contains the subject, including lines of libraries. Facts are in fields, not in sentences, and secrets are never among
them.

A traceback names files, lines and functions but quotes no source, because reading the source would block the event loop
at the moment of a failure.

structlog is imported and configured by the first caller that logs, because importing it takes as long as starting a
server.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

import orjson

from kardinal.objects.text import escaped

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger, Processor

__all__ = ["configure", "describe", "get_logger"]

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class _Form:
    """Format, destination and level of the log."""

    number: int
    stream: TextIO
    as_json: bool

    def shared(self) -> Sequence[Processor]:
        import structlog  # noqa: PLC0415

        return [
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _describe_exception,
        ]

    def rendered(self) -> Sequence[Processor]:
        import structlog  # noqa: PLC0415

        if self.as_json:
            return [structlog.processors.JSONRenderer(serializer=_dumps)]
        return [_escape_text, structlog.dev.ConsoleRenderer(colors=self.stream.isatty())]

    def apply(self) -> None:
        """Configure structlog with this form."""
        import structlog  # noqa: PLC0415

        structlog.configure(
            processors=[*self.shared(), structlog.processors.StackInfoRenderer(), *self.rendered()],
            wrapper_class=structlog.make_filtering_bound_logger(self.number),
            logger_factory=structlog.WriteLoggerFactory(file=self.stream),
            cache_logger_on_first_use=False,
        )


class _LibraryLines(logging.Formatter):
    """Format the lines of libraries in the same form."""

    def __init__(self, form: _Form) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        return self._formatter.format(record)

    @cached_property
    def _formatter(self) -> logging.Formatter:
        import structlog  # noqa: PLC0415

        return structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=self._form.shared(),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *self._form.rendered()],
        )


_waiting: list[_Form] = []
"""The form that was configured before structlog was imported; at most one."""


def configure(*, level: str = "info", stream: TextIO | None = None, json: bool | None = None) -> None:
    """Configure the log of this process. `json` defaults to False on a terminal and to True otherwise."""
    if level not in LEVELS:
        raise ValueError(f"{level!r} is no log level: use one of {', '.join(LEVELS)}")
    target = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    form = _Form(number, target, as_json=not target.isatty() if json is None else json)
    _waiting[:] = [form]
    if "structlog" in sys.modules:
        _apply()
    handler = logging.StreamHandler(target)
    handler.setFormatter(_LibraryLines(form))
    # Lines of libraries below a warning are rarely helpful.
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)


def get_logger(name: str | None = None) -> FilteringBoundLogger:
    """Return a logger that adds the context variables of its task."""
    import structlog  # noqa: PLC0415

    _apply()
    logger: FilteringBoundLogger = structlog.get_logger(name)
    return logger


def _apply() -> None:
    while _waiting:
        _waiting.pop().apply()


def describe(error: BaseException) -> dict[str, Any]:
    """Return an exception as fields of a log line."""
    frames = [
        f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return {"error": f"{type(error).__name__}: {error}", "traceback": frames}


def _escape_text(_: object, __: str, event: EventDict) -> EventDict:
    """Escape control characters in texts from other programs, such as errors of hosts, for the terminal."""
    return {key: escaped(value, kept="\n") if isinstance(value, str) else value for key, value in event.items()}


def _describe_exception(_: object, __: str, event: EventDict) -> EventDict:
    """Replace `exc_info`, which libraries and the standard library pass, by the fields of `describe`."""
    info = event.pop("exc_info", None)
    if info is True:
        info = sys.exc_info()
    error = info[1] if isinstance(info, tuple) else info
    return {**event, **describe(error)} if isinstance(error, BaseException) else event


def _dumps(event: dict[str, Any], **_: object) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
