"""The functions that a Kubernetes API server adds to CEL.

Each table maps the types of the arguments to an implementation, as in `kardinal.cel`. Rules are checked against
`signatures` before they run, so an implementation may rely on its types.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from kardinal import cel
from kardinal.cel import Fault, Function, Optional
from kardinal_local.plane.schemas.printing import number, quoted
from kardinal_local.plane.schemas.rules.addresses import ADDRESS_FUNCTIONS
from kardinal_local.plane.schemas.rules.namedformats import FORMAT_FUNCTIONS
from kardinal_local.plane.schemas.rules.quantities import QUANTITY_FUNCTIONS
from kardinal_local.plane.schemas.rules.versions import VERSION_FUNCTIONS

__all__ = ["RULES"]

_NONE: Final = Optional(None, present=False)


def _least(items: list[Any]) -> Any:
    return _chosen(items, min, "min")


def _most(items: list[Any]) -> Any:
    return _chosen(items, max, "max")


def _chosen(items: list[Any], choose: Callable[[Iterable[Any]], Any], name: str) -> Any:
    if not items:
        raise Fault("type", f"{name} called on empty list")
    return choose(items)


def _sum(items: list[Any]) -> Any:
    if items and isinstance(items[0], timedelta):
        return sum(items, timedelta())
    return sum(items)


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in pairwise(items))


def _position(items: list[Any], item: object) -> int:
    return next((index for index, one in enumerate(items) if cel.equal(one, item)), -1)


def _last_position(items: list[Any], item: object) -> int:
    found = _position(items[::-1], item)
    return -1 if found < 0 else len(items) - 1 - found


def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(_position(items, item) >= 0 for item in wanted)


def _equivalent(left: list[Any], right: list[Any]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: list[Any], right: list[Any]) -> bool:
    return any(_position(left, item) >= 0 for item in right)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise Fault("type", f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise Fault("type", f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise Fault("type", f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise Fault("type", "level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _distinct(items: list[Any]) -> list[Any]:
    return [item for index, item in enumerate(items) if _position(items, item) == index]


def _first(items: list[Any]) -> Optional:
    return Optional(items[0]) if items else _NONE


def _last(items: list[Any]) -> Optional:
    return Optional(items[-1]) if items else _NONE


def _unwrap(items: list[Any]) -> list[Any]:
    return [item.value for item in items if item.present]


def _non_zero(value: object) -> Optional:
    return Optional(value) if value not in (None, False, 0, "", [], {}, b"") else _NONE


def _searcher(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise Fault("conversion", f"Illegal regex: {pattern}") from None


def _matches(text: str, pattern: str) -> bool:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.search(pattern, text, options=options) is not None
    except re2.error:
        raise Fault("conversion", "matches() needs a valid RE2 pattern") from None


def _find(text: str, pattern: str) -> str:
    match = _searcher(pattern).search(text)
    return "" if match is None else str(match.group(0))


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    found = [str(match.group(0)) for match in _searcher(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Fault("conversion", "invalid UTF-8 in bytes, cannot convert to string") from None


_MOST_DIGITS: Final = 1000
"""Digits after the point of a formatted number; a rule may ask for a gigabyte of them."""
_DIRECTIVE: Final = re.compile(r"%(%|(?:\.(\d+))?([sdfeboxX])|.?)", re.DOTALL)


def _format(pattern: str, arguments: list[Any]) -> str:
    """`%s %d %f %e %b %o %x %X` over a list of arguments."""
    rest = list(arguments)

    def written(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        if not match[3]:
            raise Fault("conversion", f'could not parse formatting clause: unrecognized formatting clause "{match[1]}"')
        if not rest:
            index = len(arguments)
            raise Fault("conversion", f"index {index} out of range")
        digits = match[2] or "6"
        if len(digits) > 4 or int(digits) > _MOST_DIGITS:
            raise Fault("conversion", f"could not parse formatting clause: precision is more than {_MOST_DIGITS}")
        return _clause(rest.pop(0), match[3], int(digits))

    return _DIRECTIVE.sub(written, pattern)


def _clause(value: Any, verb: str, precision: int) -> str:
    if verb == "s":
        return _text(value)
    if verb in "fe" and isinstance(value, int | float):
        return f"{value:.{precision}{verb}}"
    if verb in "xX" and isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return data.hex() if verb == "x" else data.hex().upper()
    if isinstance(value, int) and verb in "dboxX":
        return format(int(value), verb)
    kinds = {"d": "only integers, longs and doubles can be formatted as decimal"}
    raise Fault("conversion", f"error during formatting: {kinds.get(verb, f'no formatting function for %{verb}')}")


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case bytes():
            return _decoded(value)
        case float() | int():
            return number(value)
        case list():
            return f"[{', '.join(_text(item) for item in value)}]"
        case dict():
            return "{" + ", ".join(sorted(f"{_text(key)}: {_text(item)}" for key, item in value.items())) + "}"
        case datetime() | timedelta():
            return str(cel.FUNCTIONS["string"]("string", 0, [value]))
    return str(value)


def _reversed(items: list[Any]) -> list[Any]:
    return items[::-1]


_ADDED: Final[dict[str, Function]] = {
    "min": Function({(list,): _least}),
    "max": Function({(list,): _most}),
    "sum": Function({(list,): _sum}),
    "isSorted": Function({(list,): _is_sorted}),
    "sort": Function({(list,): sorted}),
    "indexOf": Function(generic={2: _position}),
    "lastIndexOf": Function(
        {(str, str, int): lambda text, part, end: text.rfind(part, 0, end + len(part))}, {2: _last_position}
    ),
    "sets.contains": Function({(list, list): _contains}),
    "sets.equivalent": Function({(list, list): _equivalent}),
    "sets.intersects": Function({(list, list): _intersects}),
    "slice": Function({(list, int, int): _slice}),
    "flatten": Function({(list,): _flatten, (list, int): _flatten}),
    "distinct": Function({(list,): _distinct}),
    "reverse": Function({(list,): _reversed}),
    "lists.range": Function({(int,): lambda size: list(range(size))}),
    "first": Function({(list,): _first}),
    "last": Function({(list,): _last}),
    "optional.unwrap": Function({(list,): _unwrap}),
    "unwrapOpt": Function({(list,): _unwrap}),
    "optional.ofNonZeroValue": Function(generic={1: _non_zero}),
    "or": Function({(Optional, Optional): lambda one, other: one if one.present else other}),
    "matches": Function({(str, str): _matches}),
    "find": Function({(str, str): _find}),
    "findAll": Function({(str, str): _find_all, (str, str, int): _find_all}),
    "format": Function({(str, list): _format}),
    "strings.quote": Function({(str,): quoted}),
    "string": Function({(bytes,): _decoded}),
    "bytes": Function({(str,): str.encode, (bytes,): lambda data: data}),
    "size": Function({(bytes,): len}),
    "+": Function({(bytes, bytes): operator.add}),
    "int": Function({(timedelta,): lambda span: int(span.total_seconds())}),
    "uint": Function({(int,): abs, (float,): int, (str,): int}),
    "duration": Function({(int,): lambda seconds: timedelta(seconds=seconds)}),
    "<": Function({(bytes, bytes): operator.lt}),
    "<=": Function({(bytes, bytes): operator.le}),
    ">": Function({(bytes, bytes): operator.gt}),
    ">=": Function({(bytes, bytes): operator.ge}),
}


def _merged(*tables: Mapping[str, Function]) -> dict[str, Function]:
    """One table in which a function has the overloads of all of them."""
    merged: dict[str, Function] = {}
    for table in tables:
        for name, function in table.items():
            known = merged.get(name, Function())
            merged[name] = Function({**known.typed, **function.typed}, {**known.generic, **function.generic})
    return merged


_ANY_VARIABLES: Final = frozenset({2, 3})
_TWO_VARIABLES: Final = frozenset({3, 4})

_LIMITS: Final = cel.Limits(steps=1_000_000, memory=1 << 30)
"""An end to nested comprehensions; what a rule may cost, Kubernetes decides when the CRD is written."""

RULES: Final = cel.Library(
    _merged(cel.FUNCTIONS, _ADDED, QUANTITY_FUNCTIONS, ADDRESS_FUNCTIONS, VERSION_FUNCTIONS, FORMAT_FUNCTIONS),
    {
        **dict.fromkeys(("all", "exists", "exists_one", "map"), _ANY_VARIABLES),
        **dict.fromkeys(("filter", "optMap", "optFlatMap", "sortBy"), frozenset({2})),
        "existsOne": frozenset({3}),
        **dict.fromkeys(("transformList", "transformMap", "transformMapEntry"), _TWO_VARIABLES),
    },
    checked=True,
    limits=_LIMITS,
)
"""What the rules of a CRD may use."""
