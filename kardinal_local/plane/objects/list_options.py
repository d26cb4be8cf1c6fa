"""Parse and check the query parameters of a list or a watch, as the real server does.

Which of them are allowed together is a matter of meaning: a list at a revision, a list that goes on, a watch that
begins with what is there. What makes no sense is refused with every reason at once.

Booleans are lenient: everything but `0` and `false` is true, the empty value included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from kardinal_local.plane.errors import Cause
from kardinal_local.plane.statuses import bad_request, invalid_options

__all__ = ["EXACT", "ListOptions", "parse_list_options", "truth"]

EXACT = "Exact"
_NOT_OLDER = "NotOlderThan"
_MATCH = "resourceVersionMatch"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """`initial_events` is None where nothing was said of them."""

    watch: bool = False
    limit: int = 0
    token: str = ""
    revision: str = ""
    match: str = ""
    initial_events: bool | None = None
    bookmarks: bool = False
    seconds: int = 0


def parse_list_options(query: Mapping[str, str]) -> ListOptions:
    options = ListOptions(
        watch=bool(truth(query.get("watch"))),
        limit=_integer(query.get("limit")),
        token=query.get("continue", ""),
        revision=query.get("resourceVersion", ""),
        match=query.get(_MATCH, ""),
        initial_events=truth(query.get("sendInitialEvents")),
        bookmarks=bool(truth(query.get("allowWatchBookmarks"))),
        seconds=_integer(query.get("timeoutSeconds")),
    )
    if options.watch and options.initial_events is None and not options.match and options.revision in {"", "0"}:
        # The old way of asking for what is there.
        options = replace(options, initial_events=True, match=_NOT_OLDER)
    if causes := _watch_causes(options) if options.watch else _list_causes(options):
        raise invalid_options("ListOptions", causes)
    return options


def truth(text: str | None) -> bool | None:
    """A boolean of a query; None when it is not there."""
    return None if text is None else text != "0" and text.lower() != "false"


def _integer(text: str | None) -> int:
    if text is None:
        return 0
    problem = "" if _INTEGER.fullmatch(text) else "invalid syntax"
    if not problem and (len(text) > 4000 or int(text) not in _INTEGERS):
        problem = "value out of range"
    if problem:
        raise bad_request(f"strconv.ParseInt: parsing {_quoted(text)}: {problem}")
    return int(text)


def _list_causes(options: ListOptions) -> list[Cause]:
    causes = []
    if options.match:
        if not options.revision:
            causes.append(_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.token:
            causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
        if options.match not in {EXACT, _NOT_OLDER}:
            causes.append(_unsupported(options.match, (EXACT, _NOT_OLDER, "")))
        if options.match == EXACT and options.revision == "0":
            causes.append(_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.initial_events is not None:
        causes.append(_forbidden("sendInitialEvents is forbidden for list", field="sendInitialEvents"))
    return causes


def _watch_causes(options: ListOptions) -> list[Cause]:
    causes = []
    if options.initial_events is not None and options.match != _NOT_OLDER:
        causes.append(_forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if options.match:
        if options.initial_events is None:
            causes.append(
                _forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if options.match != _NOT_OLDER:
            causes.append(_unsupported(options.match, (_NOT_OLDER,)))
        if options.token:
            causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
    return causes


def _forbidden(why: str, *, field: str = _MATCH) -> Cause:
    return Cause("FieldValueForbidden", field, f"Forbidden: {why}")


def _unsupported(value: str, supported: tuple[str, ...]) -> Cause:
    listed = ", ".join(map(_quoted, supported))
    return Cause("FieldValueNotSupported", _MATCH, f"Unsupported value: {_quoted(value)}: supported values: {listed}")


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
