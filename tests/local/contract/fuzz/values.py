"""Values for a schema: mostly right, sometimes nearly.

Few names and few values, so that managers meet on the same fields. What is wrong with a value is what clients get
wrong: a type, an unknown field, a null, a missing key, an element twice.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.local.contract.fuzz.steps import JsonObject

__all__ = ["Values"]

_LETTERS = "abc"


class Values:
    """A source of values; `mischief` is the chance that a node is wrong."""

    def __init__(self, rng: Random, *, mischief: float = 0.0, nulls: float = 0.0) -> None:
        self._rng = rng
        self._mischief = mischief
        self._nulls = nulls

    def of(self, schema: JsonObject) -> Any:
        if self._nulls and self._rng.random() < self._nulls:
            return None
        if self._mischief and self._rng.random() < self._mischief:
            return self._wrong()
        if schema.get("x-kubernetes-embedded-resource"):
            return self._embedded()
        match schema.get("type"):
            case "string":
                return self._rng.choice(schema.get("enum", _LETTERS))
            case "integer":
                return self._rng.randint(0, 2)
            case "number":
                return self._rng.choice([0, 1, 1.5])
            case "boolean":
                return self._rng.random() < 0.5
            case "array":
                return self._list(schema)
            case "object":
                return self._object(schema)
        if schema.get("x-kubernetes-int-or-string"):
            return self._rng.choice([1, 2, "a", "50%"])
        return self._anything()

    def _object(self, schema: JsonObject) -> Any:
        chance = self._rng.random
        properties, extra = schema.get("properties", {}), schema.get("additionalProperties")
        needed = schema.get("required", ())
        if chance() < 0.06:
            return {}
        value = {
            name: self.of(child)
            for name, child in properties.items()
            if (chance() < 0.97 if name in needed else chance() < 0.55)
        }
        if extra:
            value.update({name: self.of(extra) for name in _LETTERS if chance() < 0.45})
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            value.update({name: self._anything() for name in "xyz" if chance() < 0.45})
        if self._mischief and chance() < self._mischief:
            value["unknown"] = 1
        return value

    def _list(self, schema: JsonObject) -> Any:
        items = schema["items"]
        if self._rng.random() < 0.06:
            return []
        value = [self.of(items) for _ in range(self._rng.randint(1, 3))]
        keys = schema.get("x-kubernetes-list-map-keys")
        if schema.get("x-kubernetes-list-type", "atomic") == "atomic" or self._duplicates():
            return value
        unique: dict[str, Any] = {}
        for item in value:
            identity = item
            if keys and isinstance(item, dict):
                identity = [item.get(key, items["properties"][key].get("default")) for key in keys]
            unique.setdefault(repr(identity), item)
        return list(unique.values())

    def _duplicates(self) -> bool:
        return bool(self._mischief) and self._rng.random() < 4 * self._mischief

    def _embedded(self) -> JsonObject:
        metadata: JsonObject = {"name": self._rng.choice(_LETTERS)}
        if self._rng.random() < 0.5:
            metadata["labels"] = {"l": self._rng.choice(_LETTERS)}
        value: JsonObject = {"apiVersion": "v1", "kind": "Part", "metadata": metadata}
        if self._rng.random() < 0.7:
            value["spec"] = self._anything()
        return value

    def _anything(self, depth: int = 0) -> Any:
        chance = self._rng.random()
        if chance < 0.5 or depth > 1:
            return self._rng.choice([1, "a", True, "b", 1.5])
        if chance < 0.75:
            return {name: self._anything(depth + 1) for name in _LETTERS if self._rng.random() < 0.5}
        return [self._anything(depth + 1) for _ in range(self._rng.randint(0, 2))]

    def _wrong(self) -> Any:
        return self._rng.choice([None, "wrong", 7, True, {}, [], {"wrong": 1}, ["wrong"], 2.5])
