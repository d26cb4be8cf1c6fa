"""Apply a JSON patch (RFC 6902), as the real server does.

What a caller can rely on: the object that is patched is never changed, because the live object is shared with the
store and its readers; the result may share subtrees with it. Where the RFC and the real server differ, clients have met
the server: `replace` and `copy` of a field that is not there work on null, an index may count from the end, and `test`
takes null and absent for the same.

The traps are in the codes: a patch that cannot be read is 400, and one that does not apply - a test that fails, a
path that is not there, an unknown operation - is 422, never 409, with words that say nothing. The same goes for a patch
that copies more than `MAX_COPIED_BYTES` in all: forty copies of a document into itself would fill any memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import PatchError
from kardinal_local.plane.patches.generic import unreadable

__all__ = ["json_patch"]

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""What all copies of one patch may add to the document, counted as JSON: the real server's JSONPatchMaxCopyBytes."""

_STRINGS: Final = ("op", "path", "from")


class _Inapplicable(Exception):
    """The patch does not fit the object; the real server does not say where."""


def json_patch(obj: JsonObject, operations: Any) -> Any:
    """Apply the operations in order, all or none; what comes out need not be an object."""
    _require_readable(operations)
    result: Any = copy.deepcopy(obj)
    copied = 0
    try:
        for operation in operations or ():
            if operation.get("op") == "copy":
                copied += _copied_bytes(result, operation)
                if copied > MAX_COPIED_BYTES:
                    raise _Inapplicable
            result = _apply(result, operation)
    except (_Inapplicable, LookupError, ValueError):
        message = "the server rejected our request due to an error in our request"
        raise PatchError(422, "Invalid", message) from None
    return result


def _require_readable(operations: Any) -> None:
    if operations is None:
        return
    if not isinstance(operations, list):
        raise unreadable(operations, "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict):
            raise unreadable(operation, "value of type handlers.jsonPatchOp")
        for name in _STRINGS:
            value = operation.get(name, "")
            if value is not None and not isinstance(value, str):
                raise unreadable(value, f"struct field jsonPatchOp.{name} of type string")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            f"Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}",
        )


def _apply(document: Any, operation: JsonObject) -> Any:
    act = _ACTIONS.get(operation.get("op") or "")
    path = operation.get("path")
    if act is None or path is None:
        raise _Inapplicable
    if path == "" and operation["op"] == "replace":
        value = operation.get("value")
        if not isinstance(value, dict | list):
            raise _Inapplicable
        return value
    act(document, path, operation)
    return document


def _add(document: Any, path: str, operation: JsonObject) -> None:
    _put(*_find(document, path), operation.get("value"))


def _remove(document: Any, path: str, operation: JsonObject) -> None:
    holder, key = _find(document, path)
    del holder[key if isinstance(holder, dict) else _index(key, len(holder))]


def _replace(document: Any, path: str, operation: JsonObject) -> None:
    holder, key = _find(document, path)
    holder[key if isinstance(holder, dict) else _index(key, len(holder))] = operation.get("value")


def _move(document: Any, path: str, operation: JsonObject) -> None:
    source = _source(operation)
    value = _get(document, source)
    _remove(document, source, operation)
    _put(*_find(document, path), value)


def _copy(document: Any, path: str, operation: JsonObject) -> None:
    _put(*_find(document, path), copy.deepcopy(_get(document, _source(operation))))


def _copied_bytes(document: Any, operation: JsonObject) -> int:
    """How much one copy adds; nothing where there is nothing to copy."""
    value = _get(document, _source(operation))
    return 0 if value is None else len(orjson.dumps(value))


def _test(document: Any, path: str, operation: JsonObject) -> None:
    value = _get(document, path) if path else document
    if not _equal(value, operation.get("value")):
        raise _Inapplicable


_ACTIONS: Final[dict[str, Callable[[Any, str, JsonObject], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _source(operation: JsonObject) -> str:
    source = operation.get("from")
    if source is None:
        raise _Inapplicable
    return str(source)


def _find(document: Any, path: str) -> tuple[Any, str]:
    """The container that a path leads to, and the key in it."""
    _, *parts = path.split("/")
    if not parts:
        raise _Inapplicable
    *way, key = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    for part in way:
        document = document.get(part) if isinstance(document, dict) else document[_index(part, len(document))]
        if not isinstance(document, dict | list):
            raise _Inapplicable
    return document, key


def _get(document: Any, path: str) -> Any:
    holder, key = _find(document, path)
    return holder.get(key) if isinstance(holder, dict) else holder[_index(key, len(holder))]


def _put(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    elif key == "-":
        holder.append(value)
    else:
        holder.insert(_index(key, len(holder) + 1), value)


def _index(text: str, length: int) -> int:
    """A position, which may count from the end; `length` is one more where something is put in."""
    index = int(text)
    if not -length <= index < length:
        raise _Inapplicable
    return index + length if index < 0 else index


def _equal(left: Any, right: Any) -> bool:
    option = orjson.OPT_SORT_KEYS
    return orjson.dumps(left, option=option) == orjson.dumps(right, option=option)
