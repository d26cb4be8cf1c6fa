"""Merge two changes of one text, line by line.

Lines are aligned by those that stand once on either side (patience diff), so the work is that of sorting: a file of a
million equal lines costs what any other file of its size does. Where that finds no alignment, the part counts as
changed as a whole: two changes of it are a conflict that another program might have told apart, and never a wrong text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

__all__ = ["merge_text"]

_DEPTH = 32
"""Levels of parts within parts that are aligned."""


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return `ours` with the changes from `base` to `theirs`; None where both change the same lines in two ways."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if b"\0" in base + ours + theirs:
        return None
    merged = _merged(base.splitlines(True), ours.splitlines(True), theirs.splitlines(True))
    return b"".join(merged) if merged is not None else None


def _merged(base: list[bytes], ours: list[bytes], theirs: list[bytes]) -> list[bytes] | None:
    """Go from one line that all three have to the next, and take what lies between from the side that changed it."""
    in_ours, in_theirs = _alignment(base, ours), _alignment(base, theirs)
    anchors = [(line, in_ours[line], in_theirs[line]) for line in sorted(in_ours.keys() & in_theirs.keys())]
    merged: list[bytes] = []
    before = (-1, -1, -1)
    for anchor in [*anchors, (len(base), len(ours), len(theirs))]:
        parts = (text[start + 1 : end] for text, start, end in zip((base, ours, theirs), before, anchor, strict=True))
        chosen = _chosen(*parts)
        if chosen is None:
            return None
        merged += [*chosen, *base[anchor[0] : anchor[0] + 1]]
        before = anchor
    return merged


def _chosen(base: list[bytes], ours: list[bytes], theirs: list[bytes]) -> list[bytes] | None:
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else None


def _alignment(base: list[bytes], text: list[bytes]) -> dict[int, int]:
    """Return which line of `text` each line of `base` has become.

    Where equal lines leave a choice, what was taken out or put in is the last of them, so that two sides that make the
    same change are seen to.
    """
    found = _slid(dict(_aligned(base, text)), base)
    turned = _slid({there: here for here, there in found.items()}, text)
    return {here: there for there, here in turned.items()}


def _slid(pairs: dict[int, int], lines: list[bytes]) -> dict[int, int]:
    """Return `pairs` with every run of lines without a partner moved down as far as equal lines allow."""
    start = len(lines)
    while start:
        end = start
        start -= 1
        if start in pairs:
            continue
        while start and start - 1 not in pairs:
            start -= 1
        first = start
        while end in pairs and lines[first] == lines[end] and pairs[end] == pairs.get(first - 1, -1) + 1:
            pairs[first] = pairs.pop(end)
            first, end = first + 1, end + 1
    return pairs


def _aligned(one: Sequence[bytes], other: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield pairs of positions of equal lines; both positions rise from pair to pair."""
    pending = [(0, len(one), 0, len(other), 0)]
    while pending:
        start, end, first, last, depth = pending.pop()
        while start < end and first < last and one[start] == other[first]:
            yield start, first
            start, first = start + 1, first + 1
        while start < end and first < last and one[end - 1] == other[last - 1]:
            end, last = end - 1, last - 1
            yield end, last
        if start == end or first == last or depth == _DEPTH:
            continue
        pairs = _rising(_unique_pairs(one, other, range(start, end), range(first, last)))
        yield from pairs
        if pairs:
            edges = [(start - 1, first - 1), *pairs, (end, last)]
            pending += [(left[0] + 1, right[0], left[1] + 1, right[1], depth + 1) for left, right in pairwise(edges)]


def _unique_pairs(
    one: Sequence[bytes], other: Sequence[bytes], part: range, other_part: range
) -> list[tuple[int, int]]:
    """Return where the lines stand that each part has once, in the order of the first part."""
    here, there = Counter(one[index] for index in part), Counter(other[index] for index in other_part)
    places = {other[index]: index for index in other_part if there[other[index]] == 1}
    return [(index, places[one[index]]) for index in part if here[one[index]] == 1 and one[index] in places]


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of `pairs` in which the second positions rise, too."""
    ends: list[int] = []
    tops: list[int] = []
    before: list[int | None] = []
    for index, (_, position) in enumerate(pairs):
        pile = bisect_left(ends, position)
        before.append(tops[pile - 1] if pile else None)
        if pile == len(ends):
            ends.append(position)
            tops.append(index)
        else:
            ends[pile], tops[pile] = position, index
    found: list[tuple[int, int]] = []
    at = tops[-1] if tops else None
    while at is not None:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]
