"""Find the lines in which two texts differ, within a limit on the work.

libgit2 takes many seconds to compare 1 MiB of short lines with 4 MiB of other lines, and holds the GIL meanwhile:
probes fail, and the pod is killed. So texts of contributors are compared here, by the greedy algorithm of Myers (1986).
Its work grows with the number of differences, and it is given up beyond a limit. Lines that only one text has are
removed first, because nothing can match them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kardinal.bounded import ForeignBytes

__all__ = ["LINES_LIMIT", "STEPS", "Effort", "Hunk", "TooDifferent", "hunks", "is_binary", "split_lines"]

LINES_LIMIT = 100_000
"""The most lines of a text that is compared."""
STEPS = 1_000_000
"""The most comparisons of two lines for all texts of one operation; they take some tenths of a second."""
_DIFFERENCES = 1_000
"""The most differences between lines that both texts contain."""
_BINARY = 8_000
"""The number of bytes at the start of a file that are searched for a zero byte, as in Git."""


class TooDifferent(Exception):
    """Texts that are not compared, because that would be too much work."""


class Hunk(NamedTuple):
    """The lines from `start` to `end` of one text, which the other text replaces by its own."""

    start: int
    end: int
    other_start: int
    other_end: int


@dataclass(slots=True)
class Effort:
    """The number of comparisons that are left."""

    left: int = STEPS

    def take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooDifferent


def is_binary(content: bytes) -> bool:
    """Return whether a file is binary, so that it is not compared by lines."""
    return b"\0" in content[:_BINARY]


def split_lines(content: bytes) -> list[bytes]:
    """Return the lines of a text with their ends; raises `TooDifferent` if there are too many."""
    if content.count(b"\n") > LINES_LIMIT:
        raise TooDifferent
    *lines, rest = content.split(b"\n")
    return [*(line + b"\n" for line in lines), *((rest,) if rest else ())]


def hunks(one: Sequence[bytes], other: Sequence[bytes], effort: Effort) -> Iterator[Hunk]:
    """Yield the differences of two texts in order; raises `TooDifferent` before the first one."""
    begin = 0
    shorter = min(len(one), len(other))
    while begin < shorter and one[begin] == other[begin]:
        begin += 1
    tail = 0
    while tail < shorter - begin and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    ends = len(one) - tail, len(other) - tail
    in_both = set(one[begin : ends[0]]) & set(other[begin : ends[1]])
    left = [at for at in range(begin, ends[0]) if one[at] in in_both]
    right = [at for at in range(begin, ends[1]) if other[at] in in_both]
    matches = _matches([one[at] for at in left], [other[at] for at in right], effort)
    pairs = [(left[x], right[y]) for x, y in matches]
    x = begin
    y = begin
    for next_x, next_y in (*pairs, ends):
        if (x, y) != (next_x, next_y):
            yield Hunk(x, next_x, y, next_y)
        x = next_x + 1
        y = next_y + 1


def _matches(one: Sequence[bytes], other: Sequence[bytes], effort: Effort) -> list[tuple[int, int]]:
    """Return the pairs of lines of a longest common subsequence."""
    most = min(len(one) + len(other), _DIFFERENCES)
    # The furthest point on each diagonal of the square of both texts; diagonal -1 is at the end of the list.
    furthest = [0] * (2 * most + 3)
    trace = list[_Round]()
    for number in range(most + 1):
        trace.append(_Round(furthest, number))
        effort.take(number + 1)
        for diagonal in range(-number, number + 1, 2):
            before = _before(furthest, diagonal, number)
            x = furthest[before] + (before < diagonal)
            y = x - diagonal
            begun = x
            while x < len(one) and y < len(other) and one[x] == other[y]:
                x += 1
                y += 1
            effort.take(x - begun)
            furthest[diagonal] = x
            if x >= len(one) and y >= len(other):
                return _traced(trace, len(one), len(other))
    raise TooDifferent


def _before(furthest: Sequence[int] | _Round, diagonal: int, number: int) -> int:
    """Return the diagonal from which `diagonal` is entered: by a line of the second text, or by one of the first."""
    if diagonal == -number or (diagonal != number and furthest[diagonal - 1] < furthest[diagonal + 1]):
        return diagonal + 1
    return diagonal - 1


class _Round:
    """The furthest points on the diagonals before a round."""

    def __init__(self, furthest: Sequence[int], number: int) -> None:
        self._lowest = -number - 1
        self._furthest = array("i", (furthest[at] for at in range(self._lowest, number + 2)))

    def __getitem__(self, diagonal: int) -> int:
        return self._furthest[diagonal - self._lowest]


def _traced(trace: Sequence[_Round], x: int, y: int) -> list[tuple[int, int]]:
    """Return the pairs on the path to the end of both texts, by following it backwards."""
    pairs = list[tuple[int, int]]()
    for number in range(len(trace) - 1, -1, -1):
        furthest = trace[number]
        before = _before(furthest, x - y, number)
        to_x = furthest[before]
        to_y = to_x - before
        while x > to_x and y > to_y and x > 0 and y > 0:
            x -= 1
            y -= 1
            pairs.append((x, y))
        x = to_x
        y = to_y
    pairs.reverse()
    return pairs


FOREIGN = ForeignBytes(
    "texts that are compared and merged",
    of="Git writer",
    size="1 MiB each to merge; 4 MiB and 1 MiB to show a diff",
    unpacked="as the objects that they come from",
    structure=f"{LINES_LIMIT:,} lines each",
    time=f"{STEPS:,} comparisons of lines for all texts of a diff or a merge; {_DIFFERENCES:,} differences of one text",
    held="two texts of an operation, three of a merge",
    decoded="thread, and never by libgit2",
    tests=(
        "attacks/test_git_texts.py::test_a_diff_of_very_many_lines_is_not_shown",
        "attacks/test_git_texts.py::test_diffs_of_lines_that_repeat_themselves_end_together",
        "attacks/test_git_texts.py::test_a_merge_of_texts_that_are_costly_to_compare_is_a_conflict",
    ),
)
