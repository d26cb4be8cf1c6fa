"""The answers of an API server besides objects: pages of a list and lines of a watch; and the types of a patch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kardinal.objects import JsonObject

__all__ = ["ObjectList", "PatchType", "WatchEvent"]


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a collection, or the whole collection if `continue_token` is None."""

    items: list[JsonObject]
    resource_version: str
    continue_token: str | None


class WatchEvent(NamedTuple):
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK. An ERROR line is raised as an exception instead."""

    type: str
    object: JsonObject


class PatchType(StrEnum):
    """The media type of a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
