"""Read the streams of the page as the page does."""

from __future__ import annotations

from typing import Any

import orjson

__all__ = ["applied", "parse_events", "read_events"]

Json = dict[str, Any]


def applied(document: Json, patch: Json) -> Json:
    """Return the document after a merge patch, as RFC 7396 writes it."""
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = applied(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result


def parse_events(content: bytes) -> list[dict[str, str]]:
    """Return the events of a stream with their fields, without comments."""
    events = []
    for block in content.decode().split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            events.append({name: value for name, _, value in lines})
    return events


def read_events(content: bytes, document: Json) -> Json:
    """Return the document after the events of a stream."""
    begun = False
    for event in parse_events(content):
        data = orjson.loads(event["data"])
        if event["event"] == "snapshot":
            document = applied(document if begun else {}, data)
            begun = True
        elif event["event"] == "complete":
            begun = False
        elif event["event"] == "patch":
            document = applied(document, data)
    return document
