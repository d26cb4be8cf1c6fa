"""Translate Events between their two API groups, which share one storage.

`v1` and `events.k8s.io/v1` are two spellings of the same object: what a controller records through one is what
`kubectl describe` reads through the other. They are kept in the core spelling and translated at the edge.
"""

from __future__ import annotations

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import View

__all__ = ["EVENTS_VIEW"]

# events.k8s.io name -> core name, where they differ.
_CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENTS_NAMES = {core: name for name, core in _CORE_NAMES.items()}


# What the core group always says, and events.k8s.io when there is something to say.
_ALWAYS = ("reportingComponent", "reportingInstance")


def _inward(document: JsonObject) -> JsonObject:
    core = {_CORE_NAMES.get(key, key): value for key, value in document.items()}
    return {"apiVersion": "v1", "kind": "Event", **dict.fromkeys(_ALWAYS, ""), **core} | {"apiVersion": "v1"}


def _outward(document: JsonObject) -> JsonObject:
    said = {key: value for key, value in document.items() if value or key not in _ALWAYS}
    return {_EVENTS_NAMES.get(key, key): value for key, value in said.items()} | {"apiVersion": "events.k8s.io/v1"}


EVENTS_VIEW = View(version="v1", inward=_inward, outward=_outward)
