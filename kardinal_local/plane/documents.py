"""The type of JSON documents, and the two formats of Kubernetes timestamps.

Objects on this server are plain dictionaries, as decoded from a request. Those held by the store are shared between
readers: code that changes one works on a copy.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

__all__ = ["JSON_NAMES", "JsonObject", "micro_timestamp", "timestamp"]

JsonObject = dict[str, Any]
_SECONDS = len("2006-01-02T15:04:05")

JSON_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
"""What the real server calls a value of each type where another one belongs."""


def timestamp(moment: datetime) -> str:
    """`metav1.Time`: whole seconds."""
    return f"{moment.isoformat(timespec='seconds')[:_SECONDS]}Z"


def micro_timestamp(moment: datetime) -> str:
    """`metav1.MicroTime`: microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
