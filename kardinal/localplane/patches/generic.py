"""The patch types that need no schema: JSON patch (RFC 6902) and merge patch (RFC 7386).

Server-side apply lives in `apply`, strategic merge in `strategic`. What a caller can rely on: arguments are never
changed, because the live object is shared with the store and its readers; the result may share subtrees with both.
The trap is in the codes: the real server answers 400 to a patch it cannot read, and 422 - not 409 - to a JSON patch
whose `test` fails or whose path is missing. Design: local-plane.md 2.3 and the captures of a real server.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
from jsonpointer import JsonPointerException

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import PatchError

__all__ = ["json_patch", "merge_patch"]

MAX_OPERATIONS = 10_000  # the real server's limit for one JSON patch


def json_patch(obj: JsonObject, operations: list[Any]) -> JsonObject:
    """Apply RFC 6902 operations in order, all or none."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise PatchError(400, "BadRequest", "a JSON patch is a list of operations, each an object with op and path")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            f"the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}",
        )
    # No error keeps its cause: the library's words quote the values, which may be secret.
    unreadable = PatchError(
        400, "BadRequest", "the JSON patch has an operation without a valid op, path, from or value"
    )
    try:
        parsed = jsonpatch.JsonPatch(operations)
    except (jsonpatch.JsonPatchException, JsonPointerException, TypeError, AttributeError):
        raise unreadable from None
    try:
        result = parsed.apply(obj)
    except jsonpatch.InvalidJsonPatch:
        raise unreadable from None
    except jsonpatch.JsonPatchTestFailed:
        raise PatchError(422, "Invalid", f"the JSON patch did not apply: {_tested(operations)} failed") from None
    except (jsonpatch.JsonPatchException, JsonPointerException, TypeError, KeyError, IndexError, ValueError):
        raise PatchError(
            422, "Invalid", "the JSON patch did not apply: it names a path that the object does not have"
        ) from None
    if not isinstance(result, dict):
        raise PatchError(422, "Invalid", "the JSON patch did not apply: its result is not an object")
    return result


def merge_patch(obj: JsonObject, patch: JsonObject) -> JsonObject:
    """RFC 7386: null removes a key, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        raise PatchError(400, "BadRequest", "a merge patch is an object")
    return _merge(obj, patch)


def _merge(target: Any, patch: JsonObject) -> JsonObject:
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merge(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def _tested(operations: list[Any]) -> str:
    """The paths under test, without their values: a value may be a secret."""
    paths = [str(operation.get("path")) for operation in operations if operation.get("op") == "test"]
    return "the test of " + " or ".join(paths)
