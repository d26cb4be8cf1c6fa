"""Functions on lists and maps: order, sets, parts, merging.

Values are compared as `==` compares them. Where every value is compared with every other one, equal values get equal
keys (`_key`), so that a thousand of them cost a thousand look-ups and not a million comparisons.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime, timedelta
from functools import reduce
from itertools import pairwise
from typing import Any, Final

from kardinal.cel.errors import Fault
from kardinal.cel.overloads import Function
from kardinal.cel.values import INT_MAX, INT_MIN, NOTHING, UINT_MAX, Optional, Uint, equal, type_name

__all__ = ["COLLECTION_FUNCTIONS", "check_order"]

RANGE_LIMIT: Final = 1_000_000
"""The most numbers of `lists.range`."""

_NUMBERS: Final = frozenset({int, float, Uint})
_ORDERED: Final = frozenset({str, bool, bytes, datetime, timedelta})


def check_order(items: Iterable[object], function: str) -> None:
    """Raise Fault unless the items can be ordered: all numbers, or all of one type that has an order."""
    kinds = set(map(type, items))
    if not kinds <= _NUMBERS and (len(kinds) > 1 or not kinds <= _ORDERED):
        raise Fault("type", f"{function}() needs items of one type that has an order")


def _key(value: object) -> Hashable:
    """Return a key that is equal for equal values."""
    match value:
        case bool():
            return bool, value
        case list():
            return list, tuple(map(_key, value))
        case dict():
            return dict, frozenset((_key(key), _key(item)) for key, item in value.items())
        case float() if value != value:  # noqa: PLR0124 - not a number equals nothing
            return object()
        case int() | float() | str() | bytes() | None:
            return value
        case datetime() | timedelta():
            return type(value), value
    return value if isinstance(value, Hashable) else object()


def _keys(items: list[object]) -> set[Hashable]:
    return set(map(_key, items))


def _extreme(choose: Callable[[list[Any]], Any], name: str) -> Function:
    def chosen(items: list[Any]) -> Any:
        if not items:
            raise Fault("type", f"{name}() of an empty list")
        check_order(items, name)
        return choose(items)

    return Function({(list,): chosen})


def _sum(items: list[Any]) -> Any:
    if not items:
        return 0
    kinds = set(map(type, items))
    if len(kinds) > 1 or not kinds <= _NUMBERS | {timedelta}:
        raise Fault("type", "sum() needs numbers or durations of one type")
    total = reduce(operator.add, items)
    if isinstance(total, timedelta | float):
        return total
    unsigned = isinstance(items[0], Uint)
    if not (0 <= total <= UINT_MAX if unsigned else INT_MIN <= total <= INT_MAX):
        raise Fault("arithmetic", "the number does not fit into 64 bits")
    return Uint(total) if unsigned else total


def _is_sorted(items: list[Any]) -> bool:
    check_order(items, "isSorted")
    return all(left <= right for left, right in pairwise(items))


def _sort(items: list[Any]) -> list[Any]:
    check_order(items, "sort")
    return sorted(items)


def _distinct(items: list[object]) -> list[object]:
    seen = set[Hashable]()
    kept = list[object]()
    for item in items:
        key = _key(item)
        if key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def _listed(items: object, name: str) -> list[object]:
    if not isinstance(items, list):
        raise Fault("type", f"{name}() needs a list or a string, not {type_name(items)}")
    return items


def _position(items: object, item: object) -> int:
    found = (index for index, one in enumerate(_listed(items, "indexOf")) if equal(one, item))
    return next(found, -1)


def _last_position(items: object, item: object) -> int:
    listed = _listed(items, "lastIndexOf")
    return next((index for index in range(len(listed) - 1, -1, -1) if equal(listed[index], item)), -1)


def _slice(items: list[object], start: int, end: int) -> list[object]:
    if not 0 <= start <= end <= len(items):
        raise Fault("conversion", "slice() was asked for a range outside the list")
    return items[start:end]


def _flatten(items: list[object], depth: int = 1) -> list[object]:
    if depth < 0:
        raise Fault("type", "flatten() needs a depth that is not negative")
    flat = list[object]()
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _range(size: int) -> list[int]:
    if not 0 <= size <= RANGE_LIMIT:
        raise Fault("limit", f"lists.range() makes at most {RANGE_LIMIT} numbers")
    return list(range(size))


def _merge(first: dict[object, object], second: dict[object, object]) -> dict[object, object]:
    return second | first


def _unwrap(items: list[object]) -> list[object]:
    if not all(isinstance(item, Optional) for item in items):
        raise Fault("type", "unwrapOpt() needs a list of optionals")
    return [item.value for item in items if isinstance(item, Optional) and item.present]


COLLECTION_FUNCTIONS: dict[str, Function] = {
    "min": _extreme(min, "min"),
    "max": _extreme(max, "max"),
    "sum": Function({(list,): _sum}),
    "isSorted": Function({(list,): _is_sorted}),
    "sort": Function({(list,): _sort}),
    "indexOf": Function(generic={2: _position}),
    "lastIndexOf": Function(generic={2: _last_position}),
    "slice": Function({(list, int, int): _slice}),
    "flatten": Function({(list,): _flatten, (list, int): _flatten}),
    "distinct": Function({(list,): _distinct}),
    "reverse": Function({(list,): lambda items: items[::-1]}),
    "first": Function({(list,): lambda items: Optional(items[0]) if items else NOTHING}),
    "last": Function({(list,): lambda items: Optional(items[-1]) if items else NOTHING}),
    "lists.range": Function({(int,): _range}),
    "sets.contains": Function({(list, list): lambda items, wanted: _keys(wanted) <= _keys(items)}),
    "sets.equivalent": Function({(list, list): lambda left, right: _keys(left) == _keys(right)}),
    "sets.intersects": Function({(list, list): lambda left, right: not _keys(left).isdisjoint(_keys(right))}),
    "merge": Function({(dict, dict): _merge}),
    "maps.merge": Function({(dict, dict): _merge}),
    "optional.unwrap": Function({(list,): _unwrap}),
    "unwrapOpt": Function({(list,): _unwrap}),
}
