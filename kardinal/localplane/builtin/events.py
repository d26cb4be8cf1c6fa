"""Events have two groups and one storage.

`v1` and `events.k8s.io/v1` are two spellings of the same object: what a controller records through one is what
`kubectl describe` reads through the other. They are kept in the core spelling and translated at the edge.
"""

from __future__ import annotations

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.kinds import View

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


def _renamed(document: JsonObject, names: dict[str, str], *, api_version: str) -> JsonObject:
    renamed = {names.get(key, key): value for key, value in document.items()}
    renamed["apiVersion"] = api_version
    return renamed


EVENTS_VIEW = View(
    version="v1",
    inward=lambda document: _renamed(document, _CORE_NAMES, api_version="v1"),
    outward=lambda document: _renamed(document, _EVENTS_NAMES, api_version="events.k8s.io/v1"),
)
