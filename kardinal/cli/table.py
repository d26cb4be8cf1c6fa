"""Lay out a table for a given width (pure).

People copy names, states and versions, so their cells are never truncated: columns that do not fit continue on an
indented line below their row. Columns of prose, such as MESSAGE, are wrapped between words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from unicodedata import combining, east_asian_width

from kardinal.cli.styles import without_styles

__all__ = ["GAP", "INDENT", "laid_out", "text_width", "wrapped"]

GAP = "   "
INDENT = "    "
_LEAST_PROSE = 24
"""The width in columns below which a column of prose gets its own line."""

Row = Sequence[str]


def laid_out(headers: Row, rows: Sequence[Row], *, width: int | None, prose: Collection[str] = ()) -> list[str]:
    """Return the lines of a table.

    `width` is in columns; None means no limit. `prose` names the columns that may be wrapped; defaults to none.
    """
    table = [tuple(headers), *map(tuple, rows)]
    wide = [max(map(_cell_width, column)) for column in zip(*table, strict=True)]
    flexible = [index for index, header in enumerate(headers) if without_styles(header) in prose]
    groups = [list(range(len(headers)))]
    if width is not None and _total(wide) > width and not _share(wide, flexible, table, width):
        groups = list(_groups(wide, flexible, width))
    blocks = [_block(table, group, wide, indent=INDENT if number else "") for number, group in enumerate(groups)]
    return [line for lines in zip(*blocks, strict=True) for block in lines for line in block]


def wrapped(text: str, width: int | None) -> list[str]:
    """Wrap a text between words into lines of at most `width` columns; None means no limit.

    A word that is longer than `width` gets its own line.
    """
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        if width is None or text_width(paragraph) <= width:
            lines.append(paragraph)
            continue
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}" if line else word
            if line and text_width(longer) > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


def text_width(text: str) -> int:
    """Return the width of a line on a terminal in columns: wide East Asian characters take two."""
    plain = without_styles(text)
    if plain.isascii():
        return len(plain)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in plain)


def _share(wide: list[int], flexible: Sequence[int], table: Sequence[Row], width: int) -> bool:
    """Narrow the columns of prose, in `wide`, so that all columns fit side by side.

    Return False, and leave `wide` unchanged, if a column of prose would be narrower than `_LEAST_PROSE` or its longest
    word, or if no column is prose.
    """
    room = width - _total([columns for index, columns in enumerate(wide) if index not in flexible])
    room -= len(GAP) * len(flexible)
    narrow = {}
    # The narrowest column comes first, so that the columns it does not need go to the others.
    for taken, index in enumerate(sorted(flexible, key=lambda column: wide[column])):
        columns = min(wide[index], room // (len(flexible) - taken))
        longest = max((text_width(word) for row in table for word in row[index].split()), default=0)
        if columns < min(wide[index], max(_LEAST_PROSE, longest)):
            return False
        narrow[index] = columns
        room -= columns
    for index, columns in narrow.items():
        wide[index] = columns
    return bool(narrow)


def _groups(wide: list[int], flexible: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the columns of each line of a row: of the first line, then of each indented line.

    Columns of prose get their own lines; their width in `wide` is reduced to the width of such a line.
    """
    group: list[int] = []
    room = width
    for index in (index for index in range(len(wide)) if index not in flexible):
        if group and _total([wide[each] for each in (*group, index)]) > room:
            yield group
            group = []
            room = width - len(INDENT)
        group.append(index)
    if group:
        yield group
    for index in flexible:
        wide[index] = min(wide[index], width - len(INDENT))
        yield [index]


def _block(table: Sequence[Row], group: Sequence[int], wide: Sequence[int], *, indent: str) -> list[list[str]]:
    """Return the lines of a group of columns for each row; empty indented lines are omitted."""
    block = []
    for row in table:
        cells = [wrapped(row[index], wide[index]) for index in group]
        lines = [
            (indent + GAP.join(map(_padded, line, (wide[index] for index in group)))).rstrip()
            for line in zip_longest(*cells, fillvalue="")
        ]
        block.append([line for line in lines if line] if indent else lines)
    if indent and not any(block[1:]):
        block[0] = []
    return block


def _padded(cell: str, columns: int) -> str:
    return cell + " " * (columns - text_width(cell))


def _total(wide: Sequence[int]) -> int:
    return sum(wide) + len(GAP) * (len(wide) - 1)


def _cell_width(cell: str) -> int:
    return max(map(text_width, cell.splitlines()), default=0)
