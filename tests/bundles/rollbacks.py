"""Rollbacks as tests write them by hand."""

from __future__ import annotations

from typing import Any

from kardinal.objects import JsonObject
from tests.support.objects import bundle

__all__ = ["identity", "rollback"]


def identity(stored: JsonObject) -> JsonObject:
    """Return what names one Bundle and no other."""
    return {"name": stored["metadata"]["name"], "uid": stored["metadata"]["uid"]}


def rollback(name: str, *environments: str, of: JsonObject, restores: JsonObject, **fields: Any) -> JsonObject:
    """Return a Bundle that brings back what `restores` has, as `kardinal rollback` makes it; `fields` change it."""
    intent = {
        "rollback": {
            "environments": list(environments),
            "of": identity(of),
            "restores": identity(restores),
            **fields.pop("rollback", {}),
        },
        **fields.pop("intent", {}),
    }
    made = bundle(name, intent=intent)
    made["spec"] |= {"artifacts": restores["spec"]["artifacts"], **fields}
    return made
