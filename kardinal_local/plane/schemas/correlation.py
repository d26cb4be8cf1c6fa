"""Pair the values of an update with their old values, and tell whether two are the same.

Fields and entries of maps belong together by name, elements of a keyed list by their keys; the elements of any other
list have no past. A value that holds fields its schema does not speak of is never the same as before: what is not
described cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.schemas.keywords import LIST_KEYS, LIST_TYPE

__all__ = ["ABSENT", "Correlation", "correlation_of", "key_of"]

ABSENT: Final = object()
"""In place of an old value that does not exist."""


def key_of(item: Any, keys: tuple[str, ...]) -> bytes | None:
    """What identifies an element of a keyed list."""
    if item.__class__ is not dict:
        return None
    return orjson.dumps([item.get(key) for key in keys], option=orjson.OPT_SORT_KEYS)


@dataclass(frozen=True, slots=True)
class Correlation:
    """How the values of one schema node meet their past; `keys` is None for a list without any."""

    fields: Mapping[str, Correlation] = field(default_factory=dict)
    additional: Correlation | None = None
    items: Correlation | None = None
    keys: tuple[str, ...] | None = None

    def of_field(self, name: str) -> Correlation | None:
        return self.fields.get(name, self.additional)

    def matcher(self, old: Any) -> Callable[[Any], Any] | None:
        """The old element of a given new one; None where elements have no past."""
        keys = self.keys
        if keys is None or old.__class__ is not list:
            return None
        known = {identity: item for item in old if (identity := key_of(item, keys)) is not None}

        def match(item: Any) -> Any:
            identity = key_of(item, keys)
            return ABSENT if identity is None else known.get(identity, ABSENT)

        return match

    def equal(self, new: Any, old: Any) -> bool:
        """Whether an update leaves the value alone."""
        if new is None or old is None or new.__class__ is not old.__class__:
            return new is None and old is None
        if new.__class__ is dict:
            return len(new) == len(old) and all(self._equal_entry(key, item, old) for key, item in new.items())
        if new.__class__ is list:
            return self._equal_items(new, old)
        return bool(new == old)

    def _equal_entry(self, key: str, item: Any, old: JsonObject) -> bool:
        child = self.of_field(key)
        return child is not None and key in old and child.equal(item, old[key])

    def _equal_items(self, new: list[Any], old: list[Any]) -> bool:
        if len(new) != len(old):
            return False
        match = self.matcher(old)
        if match is None or self.items is None:
            return new == old and orjson.dumps(new, option=_SORTED) == orjson.dumps(old, option=_SORTED)
        return all((before := match(item)) is not ABSENT and self.items.equal(item, before) for item in new)


_SORTED: Final = orjson.OPT_SORT_KEYS


def correlation_of(schema: JsonObject) -> Correlation:
    extra, items = schema.get("additionalProperties"), schema.get("items")
    keyed = schema.get(LIST_TYPE) == "map"
    return Correlation(
        fields={name: correlation_of(child) for name, child in (schema.get("properties") or {}).items()},
        additional=correlation_of(extra) if isinstance(extra, dict) else None,
        items=correlation_of(items) if isinstance(items, dict) else None,
        keys=tuple(schema.get(LIST_KEYS) or ()) if keyed else None,
    )
