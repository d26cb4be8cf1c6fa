"""`x-kubernetes-validations`: the CEL rules of a schema, run over an object.

Rules hang anywhere in a schema; only the paths that lead to one are compiled, so an object without rules costs
nothing and one with rules costs its rules. On an update each value is paired with its old self: fields by name,
elements of a keyed list by key, elements of other lists not at all. A value that the update leaves alone is asked its
transition rules only, so a CRD may gain a rule without locking out writes to older objects, as on the real server.
Design: local-plane.md 2.3 (CRDs), 4 (CEL).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause, InvalidSchema
from kardinal.localplane.schemas.causes import Path
from kardinal.localplane.schemas.rule import Rule, compile_rule
from kardinal.localplane.schemas.values import View, view

__all__ = ["Rules", "compile_rules"]

_RULES = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class _Node:
    """A schema node with rules, or on the way to some."""

    rules: tuple[Rule, ...]
    fields: Mapping[str, _Node]
    additional: _Node | None
    items: _Node | None
    keys: tuple[str, ...]
    view: View | None
    transitions: bool

    def validate(self, value: Any, old: Any, path: Path, causes: list[Cause]) -> None:
        if value is None:
            return
        unchanged = old is not None and value == old
        if unchanged and not self.transitions:
            return
        if self.rules:
            self._judge(value, old, path, causes, unchanged=unchanged)
        if value.__class__ is dict:
            before = old if old.__class__ is dict else {}
            for key, item in value.items():
                node = self.fields.get(key, self.additional)
                if node is not None:
                    node.validate(item, before.get(key), (path, key), causes)
        elif value.__class__ is list and self.items is not None:
            known = self._by_key(old)
            for index, item in enumerate(value):
                self.items.validate(item, known.get(self._key(item)), (path, index), causes)

    def _judge(self, value: Any, old: Any, path: Path, causes: list[Cause], *, unchanged: bool) -> None:
        scope = {"self": value if self.view is None else self.view(value)}
        if old is not None:
            scope["oldSelf"] = old if self.view is None else self.view(old)
        for rule in self.rules:
            if (old is None) if rule.transition else unchanged:
                continue
            cause = rule.judge(value, scope, path)
            if cause is not None:
                causes.append(cause)

    def _by_key(self, items: Any) -> dict[tuple[Any, ...] | None, Any]:
        if not self.keys or items.__class__ is not list:
            return {}
        return {self._key(item): item for item in items}

    def _key(self, item: Any) -> tuple[Any, ...] | None:
        if not self.keys or item.__class__ is not dict:
            return None
        return tuple(item.get(key) for key in self.keys)


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of one kind; false when there are none."""

    root: _Node | None

    def __bool__(self) -> bool:
        return self.root is not None

    def validate(self, obj: JsonObject, *, old: JsonObject | None) -> tuple[Cause, ...]:
        """Why the object may not be stored. The schema has been checked before: rules rely on its types."""
        if self.root is None:
            return ()
        causes: list[Cause] = []
        self.root.validate(obj, old, None, causes)
        return tuple(causes)


def compile_rules(source: JsonObject, *, field: str) -> Rules:
    """The rules ready for use; refuses the schema when one of them cannot be."""
    causes: list[Cause] = []
    root = _compile(source, field, correlatable=True, causes=causes)
    if causes:
        raise InvalidSchema(causes)
    return Rules(root)


def _compile(schema: JsonObject, at: str, *, correlatable: bool, causes: list[Cause]) -> _Node | None:
    """The node of a schema; None when there is no rule in it or below."""
    rules = [
        compile_rule(rule, f"{at}.{_RULES}[{index}]", schema=schema, correlatable=correlatable, causes=causes)
        for index, rule in enumerate(schema.get(_RULES) or ())
    ]
    fields: dict[str, _Node] = {}
    for name, child in schema.get("properties", {}).items():
        node = _compile(child, f"{at}.properties[{name}]", correlatable=correlatable, causes=causes)
        if node is not None:
            fields[name] = node
    extra = schema.get("additionalProperties")
    additional = None
    if isinstance(extra, dict):
        additional = _compile(extra, f"{at}.additionalProperties", correlatable=correlatable, causes=causes)
    keyed = schema.get("x-kubernetes-list-type") == "map"
    items = None
    if isinstance(schema.get("items"), dict):
        items = _compile(schema["items"], f"{at}.items", correlatable=correlatable and keyed, causes=causes)
    if not rules and not fields and additional is None and items is None:
        return None
    compiled = tuple(rule for rule in rules if rule is not None)
    below = [*fields.values(), *(node for node in (additional, items) if node is not None)]
    return _Node(
        rules=compiled,
        fields=fields,
        additional=additional,
        items=items,
        keys=tuple(schema.get("x-kubernetes-list-map-keys", ())) if keyed else (),
        view=view(schema) if compiled else None,
        transitions=any(rule.transition for rule in compiled) or any(node.transitions for node in below),
    )
