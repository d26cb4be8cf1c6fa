"""Decode YAML as the real server does: version 1.1, of which only the first document counts.

Three things differ from what PyYAML would do by itself: the words `y` and `n` are booleans, a date is a string, and so
is `22:22`, which PyYAML takes for an integer to the base of sixty.

A small text can describe a large document. Aliases are counted before they are followed, with the length of what they
stand for: shared parts cost nothing until they are written out. The depth is known from the events of the parser, which
need no stack; the composer of libyaml calls itself, and ends the process when it does so too often.

A key that stands twice in a mapping is reported with its line, as the real server does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from kardinal_local.plane.errors import MalformedYaml

__all__ = ["decode_yaml", "encode_yaml"]

NODES_LIMIT = 400_000
TEXT_LIMIT = 3 * 1024 * 1024
"""Characters of all scalars, once aliases are followed; as much as a body in JSON may have."""
DEPTH_LIMIT = 250
"""Levels that are read; an object of more than some two hundred is refused in any case."""
_BOOLEAN = "tag:yaml.org,2002:bool"


class _Loader(yaml.CSafeLoader):
    """The resolvers of Go's YAML 1.1."""

    def whole(self, node: yaml.ScalarNode) -> Any:
        return node.value if ":" in node.value else self.construct_yaml_int(node)

    def fraction(self, node: yaml.ScalarNode) -> Any:
        return node.value if ":" in node.value else self.construct_yaml_float(node)


class _Dumper(yaml.CSafeDumper):
    """The same, for knowing what has to be quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
for _resolver in (_Loader, _Dumper):
    _resolver.add_implicit_resolver(_BOOLEAN, re.compile("[yYnN]$"), list("yYnN"))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.fraction)
_Loader.bool_values = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}


def decode_yaml(body: bytes) -> tuple[Any, str]:
    """The first document, and what is to be said of its duplicate keys."""
    try:
        _check_size(body)
        loader = _Loader(body)
        try:
            loader.check_node()
            node = loader.get_node()
            if node is None:
                return None, ""
            _measure(node, {})
            told = "".join(f"\n  {line}" for line in _duplicates(node, set()))
            document = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise MalformedYaml(f"yaml: {_place(error)}{error.problem}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise MalformedYaml(f"yaml: {error}") from None
    return _with_text_keys(document), f"yaml: unmarshal errors:{told}" if told else ""


def _place(error: yaml.MarkedYAMLError) -> str:
    """The line as Go's parser tells it: where the context begins, if it says; the scanner counts from one."""
    lines = [mark.line for mark in (error.context_mark, error.problem_mark) if mark is not None]
    line = next(filter(None, lines), 0)
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    return f"line {line}: " if line else ""


def _check_size(body: bytes) -> None:
    """Refuse a first document that is nested too deeply, or has too many nodes before any alias is followed."""
    depth = 0
    for number, event in enumerate(yaml.parse(body, Loader=_Loader)):
        if number > 2 * NODES_LIMIT:
            raise MalformedYaml("yaml: document contains excessive aliasing")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_LIMIT:
                # In the words of the real server, which reads more levels.
                raise MalformedYaml("yaml: exceeded max depth of 10000")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentEndEvent):
            return


def _measure(node: yaml.Node, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The nodes and the characters that the document has once its aliases are followed."""
    if id(node) in known:
        return known[id(node)]
    if isinstance(node, yaml.ScalarNode):
        return 1, len(node.value)
    known[id(node)] = NODES_LIMIT, 0  # a node within itself has no end
    nodes, text = 1, 0
    for part in node.value:
        for child in part if isinstance(node, yaml.MappingNode) else (part,):
            more, longer = _measure(child, known)
            nodes, text = nodes + more, text + longer
    if nodes > NODES_LIMIT or text > TEXT_LIMIT:
        raise MalformedYaml("yaml: document contains excessive aliasing")
    known[id(node)] = nodes, text
    return nodes, text


def _duplicates(node: yaml.Node, seen: set[int]) -> Iterator[str]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _duplicates(item, seen)
    elif isinstance(node, yaml.MappingNode):
        keys = set()
        for key, item in node.value:
            yield from _duplicates(item, seen)
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)
            if name in keys:
                yield f'line {item.start_mark.line + 1}: key "{key.value}" already set in map'
            keys.add(name)


def _with_text_keys(value: Any) -> Any:
    """JSON has no other keys; those of YAML may be numbers and booleans."""
    if isinstance(value, dict):
        return {_text(key): _with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_text_keys(item) for item in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    raise MalformedYaml(f"yaml: a {type(value).__name__} has no place in JSON")


def _text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def encode_yaml(document: Any) -> bytes:
    """A document as the real server writes it: keys in their order, blocks, and quotes where a word is more."""
    text: bytes = yaml.dump(document, Dumper=_Dumper, sort_keys=True, encoding="utf-8", allow_unicode=True)
    return text
