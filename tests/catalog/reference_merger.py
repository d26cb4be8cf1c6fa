"""A small merger of hierarchies, written from the rules on the page about catalogs alone.

It is slow and says little about errors. `test_merge_by_the_rules.py` compares it with what kardinal merges with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from kardinal.catalog.values import Merged, Node

__all__ = ["Refused", "merge_by_the_rules"]


class Refused(Exception):
    """The hierarchy is wrong; the text is the reason in one word.

    `doubtful`: the rules leave it open, because a wrong reference is in a value that a later class replaces, or text
    shows a mapping or list with references.
    """

    doubtful = False


class _Text(str):
    """A string in which nothing is left to resolve."""


class _Appended(list[Any]):
    """A list that was appended to another one."""


class _Missing:
    """A reference leads to nothing."""


_MISSING = _Missing()


@dataclass
class _Map:
    values: dict[str, Any] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    replacing: set[str] = field(default_factory=set)
    """The keys that were written with a tilde."""


@dataclass
class _Layers:
    """Values of one key that cannot be merged before their references are resolved."""

    values: list[Any]


@dataclass
class _Applications:
    names: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def add(self, written: str) -> None:
        name = written.removeprefix("~")
        if written != name:
            if name in self.names:
                self.names.remove(name)
            elif name not in self.removed:
                self.removed.append(name)
        elif name in self.removed:
            self.removed.remove(name)
        elif name not in self.names:
            self.names.append(name)


def merge_by_the_rules(classes: Mapping[str, Mapping[str, Any]], node: Node) -> tuple[Merged, bool]:
    """Return the merge of a node, and whether it is doubtful. `classes` are the documents of the classes by name."""
    merger = _Merger(classes)
    try:
        merger.include(node.classes, "")
        merger.add({"parameters": node.parameters})
        parameters = _plain(merger.resolved(merger.root, ()))
    except Refused as refused:
        refused.doubtful |= merger.doubtful
        raise
    return Merged(tuple(merger.applications), tuple(merger.order), parameters), merger.doubtful


class _Merger:
    def __init__(self, classes: Mapping[str, Mapping[str, Any]]) -> None:
        self._classes = classes
        self.order: list[str] = []
        self._applications = _Applications()
        self.root = _Map()
        self.doubtful = False

    @property
    def applications(self) -> list[str]:
        return self._applications.names

    def include(self, names: Any, includer: str) -> None:
        for written in names:
            name = _absolute(self._text(written, ()), includer)
            if name in self.order:
                continue
            if name not in self._classes:
                raise Refused("class")
            self.include(self._classes[name].get("classes", ()), name)
            self.order.append(name)
            self.add(self._classes[name])

    def add(self, document: Mapping[str, Any]) -> None:
        own = _Applications()
        for written in document.get("applications", ()):
            own.add(written)
        for name in own.removed:
            self._applications.add(f"~{name}")
        for name in own.names:
            self._applications.add(name)
        _merge_into(self.root, document.get("parameters", {}))

    def resolved(self, value: Any, stack: tuple[str, ...]) -> Any:
        match value:
            case _Layers(values=layers):
                return self.resolved(self._folded(layers, stack), stack)
            case _Map():
                resolved = {key: self.resolved(below, stack) for key, below in value.values.items()}
                return _Map(resolved, value.constants, value.replacing)
            case list():
                return [self.resolved(below, stack) for below in value]
            case str() if not isinstance(value, _Text):
                return self._interpolated(value, stack)
        return value

    def _folded(self, layers: list[Any], stack: tuple[str, ...]) -> Any:
        merged: Any = _MISSING
        kept: Any = _MISSING
        failed: Refused | None = None
        for layer in layers:
            try:
                resolved = self.resolved(layer, stack)
            except Refused as refused:
                self.doubtful = True
                failed = failed or refused
                if isinstance(layer, _Map | list):
                    kept = layer if kept is _MISSING else _combined(kept, layer)
                continue
            if failed is not None:
                # A value that cannot be resolved is dropped if one value replaces it.
                if isinstance(resolved, _Map | list):
                    merged = self._kept(merged, kept, failed)
                failed = None
                kept = _MISSING
            # What is merged later into a mapping changes what its references lead to.
            known = layer if isinstance(layer, _Map | list) else resolved
            merged = known if merged is _MISSING else _combined(merged, known, deferred=False)
        return merged if failed is None else self._kept(merged, kept, failed)

    @staticmethod
    def _kept(merged: Any, kept: Any, failed: Refused) -> Any:
        if kept is _MISSING:
            raise failed
        return kept if merged is _MISSING else _combined(merged, kept, deferred=False)

    def _interpolated(self, text: str, stack: tuple[str, ...]) -> Any:
        parts = list(_parts(text))
        if len(parts) == 1 and parts[0][0]:
            return self.resolved(*self._referenced(parts[0][1], stack))
        return _Text("".join(self._inside(part, stack) if is_reference else part for is_reference, part in parts))

    def _inside(self, content: str, stack: tuple[str, ...]) -> str:
        value, stack = self._referenced(content, stack)
        # The references in a mapping or list stay as they are inside text, except in a list of several classes.
        as_it_is = isinstance(value, _Map | list) and not isinstance(value, _Appended)
        self.doubtful |= as_it_is and _has_reference(value)
        return _text_of(value if as_it_is else self.resolved(value, stack))

    def _text(self, text: str, stack: tuple[str, ...]) -> str:
        return _text_of(self._interpolated(text, stack))

    def _referenced(self, content: str, stack: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
        """Return the value of a reference before its own references are resolved, and the paths that led to it."""
        written, has_default, default = content.partition("::")
        path = self._text(written, stack)
        if path in stack:
            raise Refused("loop")
        value: Any = self.root
        for key in path.split(":"):
            if isinstance(value, _Layers):
                value = self._folded(value.values, (*stack, path))
            elif isinstance(value, str):
                value = self.resolved(value, (*stack, path))
            if not isinstance(value, _Map):
                raise Refused("lookup")
            value = value.values.get(key, _MISSING)
            if value is _MISSING:
                break
        if value is not _MISSING:
            return value, (*stack, path)
        if not has_default:
            raise Refused("reference")
        return yaml.safe_load(self._text(default, stack)), stack


def _absolute(name: str, includer: str) -> str:
    if not name.startswith("."):
        return name
    parents = includer.split(".")
    while name.startswith("."):
        name = name[1:]
        parents = parents[:-1]
    return ".".join((*parents, name))


def _merge_into(target: _Map, source: Mapping[str, Any]) -> None:
    for written, value in source.items():
        key = written.lstrip("~=")
        if key in target.constants:
            raise Refused("constant")
        new = _prepared(value)
        replaces = written.startswith("~") or key not in target.values
        target.values[key] = new if replaces else _combined(target.values[key], new)
        if written.startswith("~"):
            target.replacing.add(key)
        if written.startswith("="):
            target.constants.add(key)


def _prepared(value: Any) -> Any:
    if isinstance(value, Mapping):
        prepared = _Map()
        _merge_into(prepared, value)
        return prepared
    if isinstance(value, list):
        return [_prepared(below) for below in value]
    return value


def _combined(old: Any, new: Any, *, deferred: bool = True) -> Any:
    """Return `new` merged over `old`. `deferred`: one value over a mapping or list waits until both are resolved."""
    if _is_open(old) or _is_open(new):
        return _Layers([*_layers(old), *_layers(new)])
    single = not isinstance(new, _Map | list)
    if deferred and single and isinstance(old, _Map | list) and _has_reference(old):
        return _Layers([old, new])
    if old is None or new is None:
        return new
    match old, new:
        case _Map(), _Map():
            merged = _Map(dict(old.values), old.constants | new.constants, old.replacing | new.replacing)
            for key, value in new.values.items():
                if key in old.constants:
                    raise Refused("constant")
                replaces = key in new.replacing or key not in old.values
                merged.values[key] = value if replaces else _combined(old.values[key], value)
            return merged
        case list(), list():
            return _Appended([*old, *new])
        case (_Map() | list(), _) | (_, _Map() | list()):
            refused = Refused("kind")
            refused.doubtful = _has_reference(old) or _has_reference(new)
            raise refused
    return new


def _layers(value: Any) -> list[Any]:
    return value.values if isinstance(value, _Layers) else [value]


def _is_open(value: Any) -> bool:
    if isinstance(value, str) and not isinstance(value, _Text):
        return any(is_reference for is_reference, _ in _parts(value))
    return isinstance(value, _Layers)


def _has_reference(value: Any) -> bool:
    if isinstance(value, _Map):
        return any(map(_has_reference, value.values.values()))
    return any(map(_has_reference, value)) if isinstance(value, list) else _is_open(value)


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the literal texts and the contents of the references of a string."""
    literal = ""
    at = 0
    while at < len(text):
        if text.startswith("\\\\${", at):
            literal += "\\"
            at += 2
        elif text.startswith("\\${", at):
            literal += "${"
            at += 3
        elif text.startswith("${", at):
            if literal:
                yield False, literal
            literal = ""
            ends = _end_of_reference(text, at + 2)
            yield True, text[at + 2 : ends]
            at = ends + 1
        else:
            literal += text[at]
            at += 1
    if literal or not text:
        yield False, literal


def _end_of_reference(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        if text.startswith("${", at):
            depth += 1
            at += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    raise Refused("syntax")


def _text_of(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return "null"
        case _Map() | list():
            return json.dumps(_as_floats(_plain(value)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def _as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_floats(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_as_floats(below) for below in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _plain(value: Any) -> Any:
    if isinstance(value, _Map):
        return {key: _plain(value.values[key]) for key in sorted(value.values)}
    if isinstance(value, _Layers):  # inside text, and doubtful
        return _plain(value.values[-1])
    return [_plain(below) for below in value] if isinstance(value, list) else value
