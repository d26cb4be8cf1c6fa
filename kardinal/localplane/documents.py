"""JSON documents and the two ways Kubernetes writes a moment.

Objects on this server are plain dictionaries, as decoded from a request. Those held by the store are shared between
readers: whoever wants to change one works on a copy.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

__all__ = ["JsonObject", "micro_timestamp", "timestamp"]

JsonObject = dict[str, Any]


def timestamp(moment: datetime) -> str:
    """`metav1.Time`: whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """`metav1.MicroTime`: microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
