"""Merge two changes of one text, line by line.

Lines are aligned by those that occur exactly once on both sides (patience diff), so the cost is that of sorting: a file
of a million equal lines costs as much as any other file of its size. If no alignment is found, the whole part counts as
changed. Two changes of that part are then a conflict, which another program might have resolved, but the result is
never a wrong text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

__all__ = ["merge_text"]

_DEPTH = 32
"""The maximum depth of nested parts that are aligned."""


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return `ours` with the changes from `base` to `theirs`; None if both change the same lines differently."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if b"\0" in base + ours + theirs:
        return None
    merged = _merged(base.splitlines(True), ours.splitlines(True), theirs.splitlines(True))
    return b"".join(merged) if merged is not None else None


def _merged(base: list[bytes], ours: list[bytes], theirs: list[bytes]) -> list[bytes] | None:
    """Go through the lines that all three texts share, and take the text between them from the side that changed it."""
    in_ours = _alignment(base, ours)
    in_theirs = _alignment(base, theirs)
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
    """Return the line number in `text` for each line of `base` that is unchanged.

    If equal lines leave a choice, the last of them counts as removed or added, so that two sides that make the same
    change also get the same alignment.
    """
    found = _slid(dict(_aligned(base, text)), base)
    turned = _slid({there: here for here, there in found.items()}, text)
    return {here: there for there, here in turned.items()}


def _slid(pairs: dict[int, int], lines: list[bytes]) -> dict[int, int]:
    """Return `pairs`, in which every run of unmatched lines is moved down as far as equal lines allow."""
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
            first = first + 1
            end = end + 1
    return pairs


def _aligned(one: Sequence[bytes], other: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield pairs of positions of equal lines; both positions increase from pair to pair."""
    pending = [(0, len(one), 0, len(other), 0)]
    while pending:
        start, end, first, last, depth = pending.pop()
        while start < end and first < last and one[start] == other[first]:
            yield start, first
            start = start + 1
            first = first + 1
        while start < end and first < last and one[end - 1] == other[last - 1]:
            end = end - 1
            last = last - 1
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
    """Return the positions of the lines that occur exactly once in each part, in the order of the first part."""
    here = Counter(one[index] for index in part)
    there = Counter(other[index] for index in other_part)
    places = {other[index]: index for index in other_part if there[other[index]] == 1}
    return [(index, places[one[index]]) for index in part if here[one[index]] == 1 and one[index] in places]


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of `pairs` in which the second positions increase, too."""
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
            ends[pile] = position
            tops[pile] = index
    found: list[tuple[int, int]] = []
    at = tops[-1] if tops else None
    while at is not None:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]
