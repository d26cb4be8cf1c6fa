from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause

__all__ = ["problems"]


def problems(group: str, kind: str, document: JsonObject, *, old: JsonObject | None) -> list[Cause]:
    return []
