"""The shapes that travel between us and an API server.

Objects stay plain dictionaries: a store of ten thousand pydantic models costs seconds of event loop and twice the
memory, and most of them are never looked into (runtime.md, measurements). Models are built where a reconciler reads
its own kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

__all__ = ["JsonObject", "ObjectList", "PatchType", "WatchEvent"]

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a collection, or all of it when `continue_token` is None."""

    items: list[JsonObject]
    resource_version: str
    continue_token: str | None


class WatchEvent(NamedTuple):
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK. ERROR lines are raised, never yielded."""

    type: str
    object: JsonObject


class PatchType(StrEnum):
    """The media type of a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
