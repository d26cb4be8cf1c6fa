"""Find the regular expressions whose work grows faster than the text that they are compared with.

`re` tries every way in which a text can be divided between two repetitions, and holds the interpreter meanwhile. Two
repetitions that take the same characters, with nothing between them that tells where one ends, cost the square of the
length of a text that does not match; so does one repetition of a pattern that is looked for from every place. The
analysis is of the pattern alone: it may find too much, and a possessive repetition (`*+`, `++`) ends what it finds.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from re import _constants as kinds
from re import _parser as parser
from typing import Any

__all__ = ["ambiguous"]

_ALL = frozenset(range(257))
"""The characters of Latin-1, and one that stands for all others."""
_CATEGORIES = {
    kinds.CATEGORY_DIGIT: frozenset(map(ord, string.digits)),
    kinds.CATEGORY_SPACE: frozenset(map(ord, string.whitespace)),
    kinds.CATEGORY_WORD: frozenset(map(ord, f"{string.ascii_letters}{string.digits}_")) | {256},
}
_NEGATED = {
    kinds.CATEGORY_NOT_DIGIT: kinds.CATEGORY_DIGIT,
    kinds.CATEGORY_NOT_SPACE: kinds.CATEGORY_SPACE,
    kinds.CATEGORY_NOT_WORD: kinds.CATEGORY_WORD,
}
_MANY = 4_096
"""Characters up to which a repetition counts as bounded: all that it does twice is done sixteen million times."""
_WAYS = 256
"""Combinations of alternatives that are looked at."""


@dataclass(frozen=True, slots=True)
class _Element:
    """One part of a pattern: the characters that it takes, whether it can take none, and whether it has no end."""

    taken: frozenset[int]
    optional: bool = False
    endless: bool = False
    gives_back: bool = True
    """Whether a repetition tries to take less where what follows does not match."""


def ambiguous(pattern: str | bytes, flags: int, *, searched: bool, whole: bool) -> bool:
    """Return whether a text can make the pattern take time that grows with the square of its length or faster.

    `searched`: it is looked for at every place of a text. `whole`: it has to match up to the end.
    """
    tree = parser.parse(pattern, flags)
    flags = tree.state.flags
    for way in islice(_ways(tree.data, flags), _WAYS):
        elements = list(way)
        if searched:
            elements.insert(0, _Element(_ALL, optional=True, endless=True))
        if _costly(elements, whole=whole or _ends_at_the_end(tree.data)):
            return True
    return any(_nested(body, flags) for body in _bodies(tree.data))


def _costly(elements: Sequence[_Element], *, whole: bool) -> bool:
    for first, left in enumerate(elements):
        if not (left.endless and left.gives_back):
            continue
        for second, right in enumerate(elements[first + 1 :], first + 1):
            both = left.taken & right.taken
            between = [each for each in elements[first + 1 : second] if not each.optional]
            can_fail = whole or any(not each.optional for each in elements[second + 1 :])
            if right.endless and both and can_fail and all(each.taken & both for each in between):
                return True
    return False


def _nested(body: Sequence[Any], flags: int) -> bool:
    """Return whether a body that is repeated without an end holds a repetition that the next round can continue."""
    return any(_costly([*way, *way], whole=True) for way in map(list, islice(_ways(body, flags), _WAYS)))


def _bodies(nodes: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for kind, value in nodes:
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT) and value[1] > _MANY and len(value[2]) > 0:
            yield value[2].data
        for inner in _inside(kind, value):
            yield from _bodies(inner)


def _inside(kind: Any, value: Any) -> Iterator[Sequence[Any]]:
    match kind:
        case kinds.MAX_REPEAT | kinds.MIN_REPEAT | kinds.POSSESSIVE_REPEAT:
            yield value[2].data
        case kinds.SUBPATTERN:
            yield value[3].data
        case kinds.ATOMIC_GROUP:
            yield value.data
        case kinds.BRANCH:
            yield from (each.data for each in value[1])
        case _:
            return


def _ways(nodes: Sequence[Any], flags: int) -> Iterator[tuple[_Element, ...]]:
    """Yield the pattern once for each combination of its alternatives."""
    if not nodes:
        yield ()
        return
    (kind, value) = nodes[0]
    rest = nodes[1:]
    for one in _ways_of(kind, value, flags):
        for others in _ways(rest, flags):
            yield (*one, *others)


def _ways_of(kind: Any, value: Any, flags: int) -> Iterator[tuple[_Element, ...]]:
    match kind:
        case kinds.SUBPATTERN:
            yield from _ways(value[3].data, flags)
        case kinds.ATOMIC_GROUP:
            yield from (tuple(replace(each, gives_back=False) for each in way) for way in _ways(value.data, flags))
        case kinds.BRANCH:
            for each in value[1]:
                yield from _ways(each.data, flags)
        case kinds.MAX_REPEAT | kinds.MIN_REPEAT | kinds.POSSESSIVE_REPEAT:
            yield from _repeated(kind, value, flags)
        case kinds.AT if value in (kinds.AT_BEGINNING, kinds.AT_BEGINNING_STRING):
            many = value is kinds.AT_BEGINNING and flags & re.MULTILINE
            yield (_Element(frozenset({ord("\n")}) if many else frozenset()),)
        case kinds.ASSERT_NOT if value[0] < 0:
            # `(?<![a-z])[a-z]+`: a word begins in one place.
            yield (_Element(frozenset()),)
        case kinds.AT | kinds.ASSERT | kinds.ASSERT_NOT | kinds.GROUPREF:
            yield ()
        case _:
            yield (_Element(_characters(kind, value, flags)),)


def _repeated(kind: Any, value: Any, flags: int) -> Iterator[tuple[_Element, ...]]:
    least, most, body = value
    ways = list(islice(_ways(body.data, flags), _WAYS))
    if most > _MANY and all(len(way) == 1 for way in ways):
        taken = frozenset[int]().union(*(each.taken for way in ways for each in way))
        gives_back = kind is not kinds.POSSESSIVE_REPEAT
        yield (_Element(taken, optional=least == 0, endless=True, gives_back=gives_back),)
        return
    if least == 0:
        yield ()
    for way in ways:
        # Two rounds show what the end of one and the beginning of the next have in common.
        yield way if most == 1 else (*way, *way)


def _characters(kind: Any, value: Any, flags: int) -> frozenset[int]:
    match kind:
        case kinds.LITERAL:
            return _cased({min(value, 256)}, flags)
        case kinds.NOT_LITERAL:
            return _ALL - {value}
        case kinds.ANY:
            return _ALL if flags & re.DOTALL else _ALL - {ord("\n")}
        case kinds.RANGE:
            return _cased({min(each, 256) for each in (*range(value[0], min(value[1], 256) + 1), value[1])}, flags)
        case kinds.CATEGORY:
            return _ALL - _CATEGORIES[_NEGATED[value]] if value in _NEGATED else _CATEGORIES[value]
        case kinds.IN:
            taken = frozenset[int]().union(
                *(_characters(one, each, flags) for one, each in value if one != kinds.NEGATE)
            )
            return _ALL - taken if value[0][0] == kinds.NEGATE else taken
        case _:
            raise AssertionError(f"teach the analysis {kind}")


def _cased(taken: set[int], flags: int) -> frozenset[int]:
    if not flags & re.IGNORECASE:
        return frozenset(taken)
    return frozenset(taken | {ord(chr(each).swapcase()) for each in taken if each < 128})


def _ends_at_the_end(nodes: Sequence[Any]) -> bool:
    return bool(nodes) and nodes[-1][0] is kinds.AT
