"""Editing YAML as text: only the characters that must change do.

A YAML library that loads and dumps loses comments, quotes, order and line endings, and a reviewer then searches for the
one line that matters. Here the document is composed into nodes that know where in the text they stand, and every change
is a `Splice` of that text. Block and flow style, CRLF, a missing final newline and odd indentation survive because they
are never touched.

The trap: a node reached through an alias stands where its anchor does, and a splice there changes what it should not.
`same` compares two documents node by node, so that a caller can refuse an edit that reached further than it meant to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from kardinal.objects.errors import KardinalError

__all__ = [
    "Splice",
    "YamlSyntaxError",
    "append_item",
    "append_key",
    "compose",
    "drop_key",
    "fill_empty_list",
    "same",
    "set_key",
    "value_of",
]

Pairs = Sequence[tuple[str, str]]

_MAX_DEPTH = 100
"""Levels of nesting that are read; a kustomization has a handful."""
_MAX_EVENTS = 10_000
"""Values, keys and collections that are read: each costs some 2 µs and 1 KB at every look."""
_MAX_ALIASES = 1_000

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*")
_NUMBER_SOMEWHERE = re.compile(
    r"[-+]?(?:0x[0-9a-fA-F_]+|0o?[0-7_]+|0b[01_]+|(?:[0-9][0-9_]*)?\.?[0-9_]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|nan))",
    re.IGNORECASE,
)
_ONCE_BOOLEAN = frozenset(["y", "Y", "n", "N"])


class YamlSyntaxError(KardinalError):
    """The text is not one YAML document; says where and what was found."""


@dataclass(frozen=True, slots=True)
class Splice:
    """`text` in place of the characters from `start` to `end`."""

    start: int
    end: int
    text: str

    def apply(self, document: str) -> str:
        return document[: self.start] + self.text + document[self.end :]


def compose(text: str) -> yaml.Node | None:
    """Return the root node of the only document in `text`; None when there is nothing in it."""
    try:
        _check_bounds(text)
        return yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise YamlSyntaxError(f"{place}{error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise YamlSyntaxError("a character that YAML does not allow") from error


def _check_bounds(text: str) -> None:
    """Refuse what is costly to compose, event by event.

    The C composer recurses without a limit: 100,000 brackets would end the process. Each value becomes an object, so a
    few megabytes of `[a,a,…]` would take a gigabyte.
    """
    depth = aliases = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if count > _MAX_EVENTS:
            raise YamlSyntaxError(f"more than {_MAX_EVENTS:,} values")
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
            if aliases > _MAX_ALIASES:
                raise YamlSyntaxError(f"more than {_MAX_ALIASES:,} aliases")
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise YamlSyntaxError(f"more than {_MAX_DEPTH} levels of nesting")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def same(one: yaml.Node, other: yaml.Node, *, seen: set[tuple[int, int]] | None = None) -> bool:
    """Return whether two nodes mean the same; shared and circular parts are walked once, whatever aliases there are."""
    seen = set() if seen is None else seen
    if (id(one), id(other)) in seen:
        return True
    seen.add((id(one), id(other)))
    if type(one) is not type(other) or one.tag != other.tag:
        return False
    if isinstance(one, yaml.ScalarNode):
        return bool(one.value == other.value)
    children, others = (
        [child for item in node.value for child in (item if isinstance(item, tuple) else (item,))]
        for node in (one, other)
    )
    return len(children) == len(others) and all(
        same(child, twin, seen=seen) for child, twin in zip(children, others, strict=True)
    )


def value_of(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in mapping.value if name.value == key), None)


def set_key(text: str, mapping: yaml.MappingNode, key: str, value: str, *, after: Sequence[str]) -> Splice:
    """Give `key` its new value; a key that is missing follows the last of the keys `after` that is there."""
    present = value_of(mapping, key)
    if isinstance(present, yaml.ScalarNode):
        gap = "" if text[present.start_mark.index - 1 : present.start_mark.index] != ":" else " "
        return Splice(present.start_mark.index, _content_end(present, text), gap + _scalar(value, style=present.style))
    anchor = [node for name, node in mapping.value if name.value in after][-1]
    if mapping.flow_style:
        end = anchor.end_mark.index
        return Splice(end, end, f", {key}: {_scalar(value)}")
    end = _line_end(text, _content_end(anchor, text))
    indent = " " * mapping.value[0][0].start_mark.column
    return Splice(end, end, f"{_newline(text, end)}{indent}{key}: {_scalar(value)}")


def drop_key(text: str, mapping: yaml.MappingNode, key: str) -> Splice:
    """Remove `key` with its value, and in block style its line."""
    names = [name.value for name, _ in mapping.value]
    index = names.index(key)
    name, value = mapping.value[index]
    end = _content_end(value, text)
    if index == 0:
        # What stands before the first key (a dash, a brace) belongs to the whole mapping.
        following = mapping.value[1][0].start_mark.index if len(mapping.value) > 1 else end
        return Splice(name.start_mark.index, following, "")
    before = mapping.value[index - 1][1]
    if mapping.flow_style:
        return Splice(before.end_mark.index, end, "")
    start, stop = _line_start(text, name.start_mark.index), _next_line(text, end)
    if stop == len(text) and not text.endswith("\n"):
        # The last line of a text without a final newline takes the line ending before it along.
        start = _line_end(text, _line_start(text, start - 1))
    return Splice(start, stop, "")


def append_item(text: str, sequence: yaml.SequenceNode, pairs: Pairs) -> Splice:
    """Add a mapping at the end of a list that has items, in the style of the list."""
    last = sequence.value[-1]
    if sequence.flow_style:
        return Splice(last.end_mark.index, last.end_mark.index, f", {_flow_mapping(pairs)}")
    column = sequence.start_mark.column
    end = _line_end(text, _content_end(last, text))
    newline = _newline(text, end)
    lines = _block_item(pairs, column=column, gap=max(last.start_mark.column - column - 1, 1))
    return Splice(end, end, "".join(newline + line for line in lines))


def fill_empty_list(text: str, value: yaml.Node, pairs: Pairs, *, indent: int | None) -> Splice:
    """Add the first item of a list that is written as `[]`, `null` or nothing.

    `indent` is the column of its dash; None where the list stands inside braces.
    """
    start, end = value.start_mark.index, value.end_mark.index
    while text[start - 1] == " ":
        start -= 1
    if indent is None:
        return Splice(start, end, f" [{_flow_mapping(pairs)}]")
    rest = text[end : _line_end(text, end)]
    lines = [rest, *_block_item(pairs, column=indent, gap=1)]
    return Splice(start, end + len(rest), _newline(text, end + len(rest)).join(lines))


def append_key(text: str, root: yaml.MappingNode | None, key: str, pairs: Pairs, *, indent: int) -> Splice:
    """Add `key` with a list of one mapping at the end of the document."""
    if root is not None and root.flow_style:
        end = _content_end(root.value[-1][1], text) if root.value else root.end_mark.index - 1
        comma = ", " if root.value else ""
        return Splice(end, end, f"{comma}{key}: [{_flow_mapping(pairs)}]")
    column = root.start_mark.column if root is not None else 0
    at = root.end_mark.index if root is not None else len(text)
    newline = _newline(text, at)
    lines = [f"{' ' * column}{key}:", *_block_item(pairs, column=column + indent, gap=1)]
    if at and text[at - 1] != "\n":
        return Splice(at, at, "".join(newline + line for line in lines))
    return Splice(at, at, "".join(line + newline for line in lines))


def _content_end(node: yaml.Node, text: str) -> int:
    """Return the end of the last character of `node`: for YAML, a block collection ends where the next token begins."""
    while isinstance(node, (yaml.MappingNode, yaml.SequenceNode)) and not node.flow_style and node.value:
        last = node.value[-1]
        child = last[1] if isinstance(last, tuple) else last
        if child.start_mark.index <= node.start_mark.index:
            # An alias: it stands where its anchor does, before this node or around it.
            return len(text[: node.end_mark.index].rstrip())
        node = child
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return len(text[:end].rstrip())
    return end


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    """Return the end of the line that holds `index`, before its line ending."""
    end = text.find("\n", index)
    if end < 0:
        return len(text)
    return end - 1 if end > index and text[end - 1] == "\r" else end


def _next_line(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def _newline(text: str, index: int) -> str:
    """Return the line ending in use at `index`, else the first one of the text."""
    for start in (index, 0):
        end = text.find("\n", start)
        if end >= 0:
            return "\r\n" if text[end - 1 : end] == "\r" else "\n"
    return "\n"


def _block_item(pairs: Pairs, *, column: int, gap: int) -> list[str]:
    first = f"{' ' * column}-{' ' * gap}"
    rest = " " * (column + 1 + gap)
    return [f"{rest if index else first}{key}: {_scalar(value)}" for index, (key, value) in enumerate(pairs)]


def _flow_mapping(pairs: Pairs) -> str:
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in pairs) + "}"


def _scalar(value: str, *, style: str | None = None) -> str:
    """Return `value` in its old quotes, else plain where every YAML reader takes it for text, else double-quoted."""
    if style == "'":
        return f"'{value}'"
    if style != '"' and _is_plain(value):
        return value
    return f'"{value}"'


def _is_plain(value: str) -> bool:
    # Readers disagree on what is a number: `1e5` and `0o7` are text for one and a number for the next.
    return (
        _PLAIN.fullmatch(value) is not None
        and _NUMBER_SOMEWHERE.fullmatch(value) is None
        and value not in _ONCE_BOOLEAN
        and getattr(yaml.compose(value, Loader=yaml.CSafeLoader), "tag", None) == "tag:yaml.org,2002:str"
    )
