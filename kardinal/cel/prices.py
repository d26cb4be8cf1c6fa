"""The prices of the functions whose work grows with their operands, paid before they run.

A price accepts operands of any types: a call without a matching overload fails anyway, at a negligible cost. Where the
cost depends on the size of the result, the price computes that size first, and pays for the computation. The figures
are two to four times the worst measured cost, including texts that are made to be slow to search.
`tests/cel/test_prices.py` lists the functions without a price.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized

from kardinal.cel.budget import Budget
from kardinal.cel.text import FOUND_LIMIT, program_size

__all__ = ["PRICES", "Price"]

Price = Callable[..., None]
"""Called with the budget and the operands."""

_TEXT_MEMORY = 64
"""Bytes of a string beside its characters."""

_BACKTRACKING = 2_500
_TWO_WAY = 30_000
"""The length of a text, in characters, from which CPython searches in linear time."""
_SHORT_NEEDLE = 100

ENTRY = 15
"""The steps of one entry that is put into a map."""

ENTRY_MEMORY = 104
"""The bytes of one entry of a map."""

_FOUND = 80
"""The steps of one part that `findAll` finds."""

_REPETITION = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_COMPILED = 25_000
"""Steps to compile any pattern within the memory that RE2 is given."""


def pay_sort(budget: Budget, items: list[object]) -> None:
    """Pay for sorting items of one type; texts are compared up to the length of the longest."""
    budget.spend(2 * len(items), 8 * len(items))
    longest = max((len(item) for item in items if isinstance(item, str | bytes)), default=0)
    budget.spend(len(items) * len(items).bit_length() * (1 + (longest >> 6)))


def _width(*texts: str) -> int:
    """Return the most bytes that a character of `texts` takes in CPython."""
    return 1 if all(map(str.isascii, texts)) else 4


def _build(budget: Budget, size: int, width: int) -> None:
    """Pay for one string of `size` characters."""
    budget.spend(8 + (size * width >> 7), _TEXT_MEMORY + size * width)


def _search(text: int, part: int) -> int:
    """Return the steps to search a text of one length for a part of another."""
    steps = text >> 4
    if text < _TWO_WAY:
        tried = part if text < _BACKTRACKING else min(part, _SHORT_NEEDLE)
        steps += max(0, text - part + 1) * tried >> 8
    return steps


def _find(budget: Budget, text: object, part: object, *_: object) -> None:
    if isinstance(text, str) and isinstance(part, str):
        budget.spend(_search(len(text), len(part)))


def _find_last(budget: Budget, text: object, part: object, *_: object) -> None:
    if isinstance(text, str) and isinstance(part, str):
        # CPython searches backwards without the algorithm that makes the other direction linear.
        budget.spend((len(text) >> 4) + (max(0, len(text) - len(part) + 1) * len(part) >> 8))


def _prefix(budget: Budget, text: object, part: object) -> None:
    if isinstance(part, str):
        budget.spend(len(part) >> 8)


def _replace(budget: Budget, text: object, old: object, new: object, limit: object = -1) -> None:
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str) and isinstance(limit, int)):
        return
    budget.spend(4 * _search(len(text), len(old)))
    found = text.count(old)
    if limit >= 0:
        found = min(found, limit)
    budget.spend(found >> 2)
    _build(budget, max(len(text), len(text) + found * (len(new) - len(old))), _width(text, new))


def _split(budget: Budget, text: object, separator: object, limit: object = -1) -> None:
    if not (isinstance(text, str) and isinstance(separator, str) and isinstance(limit, int)):
        return
    budget.spend(2 * _search(len(text), len(separator)))
    parts = text.count(separator) + 1
    if limit >= 0:
        parts = min(parts, limit)
    width = _width(text)
    budget.spend(parts + (len(text) * width >> 7), parts * (_TEXT_MEMORY + 8) + len(text) * width)


def _join(budget: Budget, items: object, separator: object = "") -> None:
    if not (isinstance(items, list) and isinstance(separator, str)):
        return
    budget.spend(2 * len(items), 8 * len(items))
    texts = [item for item in items if isinstance(item, str)]
    size = sum(map(len, texts)) + len(separator) * len(items)
    _build(budget, size, _width(separator, *texts))


def _cased(budget: Budget, text: object) -> None:
    if isinstance(text, str):
        budget.spend(len(text) >> 7 if text.isascii() else len(text))
        _build(budget, len(text), _width(text))


def _copied(budget: Budget, value: object, *_: object) -> None:
    match value:
        case str():
            _build(budget, len(value), _width(value))
        case list():
            budget.spend(len(value) >> 3, 8 * len(value))


def _looked_through(budget: Budget, value: object, *_: object) -> None:
    if isinstance(value, list):
        budget.spend(2 * len(value))


def _sorted(budget: Budget, items: object) -> None:
    if isinstance(items, list):
        pay_sort(budget, items)


def _compared(budget: Budget, items: object) -> None:
    """Pay for one comparison of each item with the next one, or with the largest so far."""
    if isinstance(items, list):
        budget.spend(4 * len(items))
        budget.spend(sum(len(item) >> 6 for item in items if isinstance(item, str | bytes)))


def _found(budget: Budget, container: object, item: object, *rest: object) -> None:
    if isinstance(container, list):
        _contained(budget, item, container)
    else:
        _find(budget, container, item, *rest)


def _found_last(budget: Budget, container: object, item: object, *_: object) -> None:
    if isinstance(container, list):
        _contained(budget, item, container)
    else:
        _find_last(budget, container, item)


def _whole(budget: Budget, *values: object) -> None:
    """Pay for a walk through values, which makes something of each: a key, or a text."""
    for value in values:
        match value:
            case str() | bytes():
                budget.spend(5 + (len(value) >> 4), 50 + 6 * len(value))
            case list():
                budget.spend(10 * len(value), 100 * len(value))
                _whole(budget, *value)
            case dict():
                budget.spend(30 * len(value), 250 * len(value))
                _whole(budget, *value.keys())
                _whole(budget, *value.values())
            case _:
                budget.spend(5, 50)


def _range(budget: Budget, size: object) -> None:
    if isinstance(size, int) and size > 0:
        budget.spend(size >> 1, 40 * size)


def _flatten(budget: Budget, items: object, depth: object = 1) -> None:
    if isinstance(items, list) and isinstance(depth, int):
        # A call in a deep recursion may take many times as long, because Python allocates memory for its frames.
        budget.spend(60 + len(items), 8 * len(items))
        if depth > 0:
            for item in items:
                if isinstance(item, list):
                    _flatten(budget, item, depth - 1)


def _merged(budget: Budget, first: object, second: object) -> None:
    if isinstance(first, dict) and isinstance(second, dict):
        size = len(first) + len(second)
        budget.spend(size, ENTRY_MEMORY * size)


def _format(budget: Budget, pattern: object, arguments: object) -> None:
    if isinstance(pattern, str) and isinstance(arguments, list):
        clauses = pattern.count("%")
        budget.spend(len(pattern) + 60 * clauses + 200 * pattern.count("%."), 4 * len(pattern) + 500 * clauses)
        _whole(budget, *arguments)


def _encoded(budget: Budget, data: object) -> None:
    if isinstance(data, str | bytes):
        budget.spend(10 + (len(data) >> 3), _TEXT_MEMORY + 4 * len(data))


def _text_of(budget: Budget, value: object) -> None:
    if isinstance(value, bytes):
        _encoded(budget, value)


def _unmarshal(budget: Budget, text: object) -> None:
    if isinstance(text, str):
        budget.spend(10 + len(text), 48 * len(text))


def _parsed(budget: Budget, text: object, *_: object) -> None:
    if isinstance(text, str):
        # A longer text is refused unread.
        budget.spend(200 + min(len(text), 256))


def _exact(budget: Budget, *_: object) -> None:
    budget.spend(80)


def _variadic(budget: Budget, *arguments: object) -> None:
    numbers = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
    budget.spend(2 * len(numbers))


def _matches(budget: Budget, text: object, pattern: object) -> None:
    if not (isinstance(text, str) and isinstance(pattern, str)):
        return
    repeated = 1
    for least, most in _REPETITION.findall(pattern):
        repeated *= max(1, int((most or least)[:5]))
        if repeated > _COMPILED:
            break
    properties = pattern.count("\\p") + pattern.count("\\P")
    budget.spend(200 + 20 * len(pattern) + 1200 * properties + min(_COMPILED, (repeated - 1) * len(pattern) * 8))
    length = len(text) * _width(text)
    budget.spend((length >> 1) + (length * program_size(pattern) >> 4), length)


def _find_all(budget: Budget, text: object, pattern: object, limit: object = -1) -> None:
    if isinstance(text, str) and isinstance(pattern, str) and isinstance(limit, int):
        _matches(budget, text, pattern)
        most = min(len(text), FOUND_LIMIT) + 1
        parts = most if limit < 0 else min(most, limit)
        budget.spend(_FOUND * parts, 2 * len(text) * _width(text) + _TEXT_MEMORY * parts)


def _add(budget: Budget, left: object, right: object) -> None:
    if isinstance(left, str) and isinstance(right, str):
        _build(budget, len(left) + len(right), _width(left, right))
    elif isinstance(left, bytes) and isinstance(right, bytes):
        _build(budget, len(left) + len(right), 1)
    elif isinstance(left, list) and isinstance(right, list):
        size = len(left) + len(right)
        budget.spend(size >> 3, 8 * size)


def _order(budget: Budget, left: object, right: object) -> None:
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        budget.spend(min(len(left), len(right)) >> 6)


def _equal(budget: Budget, left: object, right: object) -> None:
    """Pay for every value that a comparison may look at, as if no difference ended it early."""
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        budget.spend(min(len(left), len(right)) >> 8)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        budget.spend(10 * len(left))
        for mine, other in zip(left, right, strict=True):
            _equal(budget, mine, other)
    elif isinstance(left, dict) and isinstance(right, dict) and len(left) == len(right):
        budget.spend(15 * len(left))
        for key, mine in left.items():
            _hash(budget, key)
            if key in right:
                _equal(budget, mine, right[key])


def _contained(budget: Budget, item: object, container: object) -> None:
    if isinstance(container, dict):
        pay_key(budget, item, container)
    elif isinstance(container, list):
        budget.spend(6 * len(container))
        if isinstance(item, str | bytes):
            budget.spend((len(item) >> 8) * len(container))
        elif isinstance(item, list | dict):
            for other in container:
                _equal(budget, item, other)


def pay_key(budget: Budget, key: object, container: Sized) -> None:
    """Pay for looking up a key of a map: a text is hashed, and for 0 and 1 every key is looked at."""
    if isinstance(key, str):
        budget.spend(len(key) >> 6)
    elif key in (0, 1):
        budget.spend(len(container))


def _hash(budget: Budget, key: object, *_: object) -> None:
    if isinstance(key, str):
        budget.spend(len(key) >> 6)


def _zoned(budget: Budget, moment: object, zone: object = "") -> None:
    _hash(budget, zone)
    budget.spend(20)


def _number(budget: Budget, value: object) -> None:
    if isinstance(value, str):
        budget.spend(10 + (len(value) >> 1))


def _duration(budget: Budget, value: object) -> None:
    if isinstance(value, str):
        budget.spend(20 + 8 * len(value), 16 * len(value))


PRICES: Mapping[str, Price] = {
    "+": _add,
    "==": _equal,
    "!=": _equal,
    **dict.fromkeys(("<", "<=", ">", ">="), _order),
    "in": _contained,
    "contains": _find,
    "indexOf": _found,
    "lastIndexOf": _found_last,
    **dict.fromkeys(("startsWith", "endsWith"), _prefix),
    **dict.fromkeys(("matches", "find"), _matches),
    "findAll": _find_all,
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("lowerAscii", "upperAscii"), _cased),
    **dict.fromkeys(("trim", "substring", "charAt", "reverse", "slice"), _copied),
    "strings.quote": _cased,
    "format": _format,
    **dict.fromkeys(("int", "uint", "double", "bool"), _number),
    "string": _text_of,
    **dict.fromkeys(("bytes", "base64.encode", "base64.decode"), _encoded),
    "json.marshal": _whole,
    "json.unmarshal": _unmarshal,
    "sort": _sorted,
    **dict.fromkeys(("min", "max", "isSorted"), _compared),
    **dict.fromkeys(("sum", "unwrapOpt", "optional.unwrap"), _looked_through),
    **dict.fromkeys(("distinct", "sets.contains", "sets.equivalent", "sets.intersects"), _whole),
    "flatten": _flatten,
    "lists.range": _range,
    **dict.fromkeys(("merge", "maps.merge"), _merged),
    **dict.fromkeys(("math.greatest", "math.least"), _variadic),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _parsed),
    **dict.fromkeys(("add", "sub", "compareTo", "isLessThan", "isGreaterThan"), _exact),
    **dict.fromkeys(("asInteger", "isInteger", "asApproximateFloat"), _exact),
    "timestamp": _number,
    "duration": _duration,
    **dict.fromkeys(
        (
            *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
            *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
        ),
        _zoned,
    ),
}
