"""What the server knows about one kind: its names, its scope, its schema.

A built-in kind and one that a CRD brought are the same thing to the rest of the server; nothing below asks where a kind
came from, except `custom`, on which the real server's rules differ (a PUT of a custom object needs a resourceVersion,
strategic merge patch does not exist for it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from kardinal.localplane.documents import JsonObject

if TYPE_CHECKING:
    from kardinal.localplane.columns import Column

__all__ = ["Kind"]


@dataclass(frozen=True)
class Kind:
    """One kind in one version of its group; `group` is empty for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    custom: bool = False
    schema: JsonObject | None = field(default=None, compare=False, repr=False)
    columns: tuple[Column, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """`plural.group`, as messages name a resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
