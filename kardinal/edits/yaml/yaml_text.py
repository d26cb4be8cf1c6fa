"""Edit YAML as text, changing only the necessary characters.

A YAML library that loads and dumps a file loses comments, quotes, order and line endings, and a reviewer must search
for the one line that matters. Here the document is composed into nodes that know their position in the text, and every
change is a `Splice` of the text. Block and flow style, CRLF, a missing final newline and odd indentation are kept
because they are never touched.

JSON is edited in the same way, because it is YAML in flow style except for its escapes.

The trap: a node reached through an alias has the position of its anchor, and a splice there changes other places.
`same` compares two documents node by node, so that the caller can refuse an edit that changed more than intended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import yaml

from kardinal.edits.yaml.yaml_scalar import Scalar, holds, written
from kardinal.objects.errors import KardinalError

__all__ = [
    "DocumentDifference",
    "Splice",
    "YamlSyntaxError",
    "add_keys",
    "append_item",
    "append_key",
    "apply_all",
    "children",
    "compose",
    "compose_all",
    "described",
    "drop_key",
    "fill_empty_list",
    "replace_scalar",
    "same",
    "set_key",
    "value_of",
]

Pairs = Sequence[tuple[str, str]]

_MAX_DEPTH = 100
"""The maximum depth of nesting; a kustomization has a handful of levels."""
_MAX_EVENTS = 10_000
"""The most values, keys and collections of a document; each costs about 2 µs and 1 KB per parse."""
_MAX_EVENTS_OF_A_FILE = 50_000
"""The same limit for a file of several documents, or of Helm values, which is parsed twice."""
_MAX_ALIASES = 1_000

_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)*")
"""An anchor and a tag before a value."""
_SURROGATE = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""One half of a surrogate pair, which JSON needs for a character that YAML escapes at once."""
_BARE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows unescaped, while YAML refuses them or treats them as line ends."""


class YamlSyntaxError(KardinalError):
    """The text is not one YAML document; the message has the place and the problem."""


@dataclass(frozen=True, slots=True)
class Splice:
    """The replacement of the characters from `start` to `end` by `text`."""

    start: int
    end: int
    text: str

    def apply(self, document: str) -> str:
        return document[: self.start] + self.text + document[self.end :]


def apply_all(document: str, splices: Sequence[Splice]) -> str:
    """Apply splices that refer to the same text and do not overlap."""
    for splice in sorted(splices, key=lambda splice: splice.start, reverse=True):
        document = splice.apply(document)
    return document


def compose(text: str) -> yaml.Node | None:
    """Return the root node of the only document in `text`; None if it is empty."""
    with _syntax_errors():
        check_bounds(text, _MAX_EVENTS)
        return yaml.compose(text, Loader=yaml.CSafeLoader)


def compose_all(text: str, *, json: bool) -> list[yaml.Node]:
    """Return the root node of each document in `text`, which is JSON or YAML."""
    # Unreadable characters are replaced by as many others, so that positions stay right.
    readable = _BARE_IN_JSON.sub("_", _SURROGATE.sub(r"\1\\u0020", text)) if json else text
    with _syntax_errors():
        check_bounds(readable, _MAX_EVENTS_OF_A_FILE)
        return list(yaml.compose_all(readable, Loader=yaml.CSafeLoader))


@contextmanager
def _syntax_errors() -> Iterator[None]:
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise YamlSyntaxError(f"{place}{error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise YamlSyntaxError("a character that YAML does not allow") from error


def check_bounds(text: str, most: int) -> None:
    """Raise `YamlSyntaxError` for a document that is expensive to compose; the events are counted first.

    The C composer recurses without a limit, so 100,000 brackets would crash the process. Each value becomes an object,
    so a few megabytes of `[a,a,…]` would take a gigabyte of memory.
    """
    depth = aliases = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if count > most:
            raise YamlSyntaxError(f"more than {most:,} values")
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


@dataclass(frozen=True, slots=True)
class DocumentDifference:
    """The differences that two documents may have. The keys are the `id` of nodes of the first document."""

    values: Mapping[int, Scalar] = field(default_factory=dict)
    """Scalars, with their value in the second document."""
    added: Mapping[int, Sequence[tuple[str, Scalar]]] = field(default_factory=dict)
    """Mappings, with the pairs that the second document has in addition, at the end."""


def same(
    one: yaml.Node,
    other: yaml.Node,
    *,
    but: DocumentDifference = DocumentDifference(),
    seen: set[tuple[int, int]] | None = None,
) -> bool:
    """Return whether two nodes are equal except for `but`.

    Shared and circular parts are compared once, whatever aliases there are.
    """
    seen = set() if seen is None else seen
    if (id(one), id(other)) in seen:
        return True
    seen.add((id(one), id(other)))
    if id(one) in but.values:
        return holds(other, but.values[id(one)])
    if type(one) is not type(other) or one.tag != other.tag:
        return False
    if isinstance(one, yaml.ScalarNode):
        return bool(one.value == other.value)
    parts = children(one)
    others = children(other)
    added = but.added.get(id(one), ())
    if len(others) != len(parts) + 2 * len(added):
        return False
    expected = [value for pair in added for value in pair]
    return all(map(holds, others[len(parts) :], expected)) and all(
        same(child, twin, but=but, seen=seen) for child, twin in zip(parts, others, strict=False)
    )


def children(node: yaml.Node) -> list[yaml.Node]:
    """Return the nodes directly inside a mapping or a list, including keys."""
    if isinstance(node, yaml.ScalarNode):
        return []
    return [child for item in node.value for child in (item if isinstance(item, tuple) else (item,))]


def described(node: yaml.Node) -> str:
    """Return a description of a node for a message, such as `a list`."""
    if isinstance(node, yaml.ScalarNode):
        return "nothing" if node.tag == "tag:yaml.org,2002:null" else f"the value {node.value[:60]!r}"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def value_of(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    return next((value for name, value in mapping.value if name.value == key), None)


def set_key(text: str, mapping: yaml.MappingNode, key: str, value: str, *, after: Sequence[str]) -> Splice:
    """Return the splice that sets `key`; a missing key comes after the last existing one of the keys in `after`."""
    present = value_of(mapping, key)
    if isinstance(present, yaml.ScalarNode):
        return replace_scalar(text, present, written(value, style=present.style))
    anchor = [node for name, node in mapping.value if name.value in after][-1]
    return _pairs_after(text, mapping, anchor, [f"{key}: {written(value)}"])


def replace_scalar(text: str, node: yaml.ScalarNode, replacement: str) -> Splice:
    """Return the splice that replaces a value by `replacement`; an anchor or a tag before the value is kept."""
    start = node.start_mark.index
    end = _content_end(node, text)
    found = _PROPERTIES.match(text, start, end)
    start = found.end() if found else start
    gap = " " if text[start - 1 : start] in (":", "-") and start == end else ""
    return Splice(start, end, gap + replacement)


def add_keys(text: str, mapping: yaml.MappingNode, pairs: Sequence[tuple[str, Scalar]], *, json: bool) -> Splice:
    """Return the splice that adds keys after the last key of a mapping."""
    lines = [f"{written(key, json=json)}: {written(value, json=json)}" for key, value in pairs]
    if not mapping.value:
        end = mapping.end_mark.index - 1
        return Splice(end, end, ", ".join(lines))
    return _pairs_after(text, mapping, mapping.value[-1][1], lines)


def _pairs_after(text: str, mapping: yaml.MappingNode, last: yaml.Node, lines: Sequence[str]) -> Splice:
    if mapping.flow_style:
        end = _content_end(last, text)
        before = text.rfind("\n", 0, mapping.value[-1][0].start_mark.index) + 1
        lead = text[before : mapping.value[-1][0].start_mark.index]
        # One pair per line, which is the usual layout of JSON.
        between = f",{_newline(text, before - 1)}{lead}" if before and not lead.strip() else ", "
        return Splice(end, end, "".join(between + line for line in lines))
    end = _line_end(text, _content_end(last, text))
    start = _newline(text, end) + " " * mapping.value[0][0].start_mark.column
    return Splice(end, end, "".join(start + line for line in lines))


def drop_key(text: str, mapping: yaml.MappingNode, key: str) -> Splice:
    """Return the splice that removes `key` with its value; in block style, its line."""
    names = [name.value for name, _ in mapping.value]
    index = names.index(key)
    name, value = mapping.value[index]
    end = _content_end(value, text)
    if index == 0:
        # The text before the first key (a dash, a brace) belongs to the whole mapping.
        following = mapping.value[1][0].start_mark.index if len(mapping.value) > 1 else end
        return Splice(name.start_mark.index, following, "")
    before = mapping.value[index - 1][1]
    if mapping.flow_style:
        return Splice(before.end_mark.index, end, "")
    start = _line_start(text, name.start_mark.index)
    stop = _next_line(text, end)
    if stop == len(text) and not text.endswith("\n"):
        # The last line of a text without a final newline is removed together with the line ending before it.
        start = _line_end(text, _line_start(text, start - 1))
    return Splice(start, stop, "")


def append_item(text: str, sequence: yaml.SequenceNode, pairs: Pairs) -> Splice:
    """Return the splice that adds a mapping at the end of a list that has items, in the style of the list."""
    last = sequence.value[-1]
    if sequence.flow_style:
        return Splice(last.end_mark.index, last.end_mark.index, f", {_flow_mapping(pairs)}")
    column = sequence.start_mark.column
    end = _line_end(text, _content_end(last, text))
    newline = _newline(text, end)
    lines = _block_item(pairs, column=column, gap=max(last.start_mark.column - column - 1, 1))
    return Splice(end, end, "".join(newline + line for line in lines))


def fill_empty_list(text: str, value: yaml.Node, pairs: Pairs, *, indent: int | None) -> Splice:
    """Return the splice that adds the first item to a list that is written as `[]`, `null` or nothing.

    `indent` is the column of its dash; None if the list is inside braces.
    """
    start = value.start_mark.index
    end = value.end_mark.index
    while text[start - 1] == " ":
        start -= 1
    if indent is None:
        return Splice(start, end, f" [{_flow_mapping(pairs)}]")
    rest = text[end : _line_end(text, end)]
    lines = [rest, *_block_item(pairs, column=indent, gap=1)]
    return Splice(start, end + len(rest), _newline(text, end + len(rest)).join(lines))


def append_key(text: str, root: yaml.MappingNode | None, key: str, pairs: Pairs, *, indent: int) -> Splice:
    """Return the splice that adds `key`, with a list of one mapping, at the end of the document."""
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
    """Return the end of the last character of `node`.

    In YAML's own marks, a block collection ends at the next token.
    """
    while isinstance(node, (yaml.MappingNode, yaml.SequenceNode)) and not node.flow_style and node.value:
        last = node.value[-1]
        child = last[1] if isinstance(last, tuple) else last
        if child.start_mark.index <= node.start_mark.index:
            # An alias: its position is that of its anchor, before this node or around it.
            return len(text[: node.end_mark.index].rstrip())
        node = child
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return len(text[:end].rstrip())
    return end


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    """Return the end of the line that contains `index`, before its line ending."""
    end = text.find("\n", index)
    if end < 0:
        return len(text)
    return end - 1 if end > index and text[end - 1] == "\r" else end


def _next_line(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def _newline(text: str, index: int) -> str:
    """Return the line ending used at `index`, or else the first one in the text."""
    for start in (index, 0):
        end = text.find("\n", start)
        if end >= 0:
            return "\r\n" if text[end - 1 : end] == "\r" else "\n"
    return "\n"


def _block_item(pairs: Pairs, *, column: int, gap: int) -> list[str]:
    first = f"{' ' * column}-{' ' * gap}"
    rest = " " * (column + 1 + gap)
    return [f"{rest if index else first}{key}: {written(value)}" for index, (key, value) in enumerate(pairs)]


def _flow_mapping(pairs: Pairs) -> str:
    return "{" + ", ".join(f"{key}: {written(value)}" for key, value in pairs) + "}"
