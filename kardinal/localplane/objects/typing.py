"""From a document to an object of its kind, and what is said of fields that the kind does not have.

A built-in kind is a type: what does not fit it cannot be read, and is refused before anything else is looked at. How it
is refused depends on where the document came from: as a bad request when it is the body, as an invalid patch when it
is what a patch made of the object. A custom kind is judged later, by its schema; here only what its body repeats.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from kardinal.localplane import statuses
from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause, StatusError, Unreadable
from kardinal.localplane.kinds import Kind

__all__ = ["judge_strictly", "read_body", "read_patched"]


def read_body(
    kind: Kind, document: JsonObject, *, validation: str, faults: Iterable[str]
) -> tuple[JsonObject, tuple[str, ...]]:
    """The object that a request body stands for, and warnings; `faults` are what its decoder found."""
    if kind.typed is None:
        return document, ()
    try:
        decoded, unknown = kind.typed.decode(document)
    except Unreadable as error:
        raise statuses.bad_request(f"{_title(kind)}: {error}") from None
    return decoded, judge_strictly(kind, [*_described(unknown), *faults], validation=validation)


def read_patched(
    kind: Kind, document: JsonObject, *, shown: str | None, validation: str
) -> tuple[JsonObject, tuple[str, ...]]:
    """The object that a patch made, and warnings; a refusal shows the patch, or what it made."""
    if kind.typed is None:
        return document, ()
    try:
        decoded, unknown = kind.typed.decode(document)
    except Unreadable as error:
        raise _invalid_patch(document if shown is None else shown, str(error)) from None
    described = _described(unknown)
    if described and validation == "Strict":
        raise _invalid_patch(document if shown is None else shown, f"strict decoding error: {', '.join(described)}")
    return decoded, () if validation == "Ignore" else tuple(described)


def judge_strictly(kind: Kind, faults: Iterable[str], *, validation: str) -> tuple[str, ...]:
    """What to warn of for fields that were dropped or repeated; refuses them when asked to be strict."""
    found = tuple(faults)
    if not found or validation == "Ignore":
        return ()
    if validation == "Strict":
        raise statuses.bad_request(f"{_title(kind)}: strict decoding error: {', '.join(found)}")
    return found


def _described(unknown: Iterable[str]) -> list[str]:
    return [f'unknown field "{path}"' for path in unknown]


def _title(kind: Kind) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'


def _invalid_patch(value: JsonObject | str, detail: str) -> StatusError:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    shown = orjson.dumps(text).decode()
    return statuses.invalid_request(Cause("FieldValueInvalid", "patch", f"Invalid value: {shown}: {detail}"))
