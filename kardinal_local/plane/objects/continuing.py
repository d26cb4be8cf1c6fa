"""Encode and decode continue tokens, which say where a list that is read in pieces goes on.

A token names the revision of the whole list and the key with which the next piece begins, so the server remembers
nothing between two pieces. Its form is that of the real server, which clients must not look into, and the words for one
that is damaged are those of the parser that the real server uses.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from dataclasses import dataclass
from typing import Any

import orjson

from kardinal_local.plane.documents import JSON_NAMES
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.statuses import bad_request

__all__ = ["LATEST", "Position", "expired"]

LATEST = -1
_VERSION = "meta.k8s.io/v1"
_INCONSISTENT = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Position:
    """From `key` on in the list of `revision`; LATEST stands for the list as it is now, consistent or not."""

    revision: int
    key: str

    def token(self) -> str:
        document = {"v": _VERSION, "rv": self.revision, "start": f"/{self.key}"}
        return base64.urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")

    @classmethod
    def parse(cls, token: str) -> Position:
        document = _decoded(token)
        if document.get("v", "") != _VERSION:
            raise _refusal(f": server does not recognize this encoded version {document.get('v', '')}")
        if not document.get("rv"):
            raise _refusal(f": incorrect encoded start resourceVersion (version {_VERSION})")
        start = document.get("start") or ""
        if not start:
            raise _refusal(f": encoded start key empty (version {_VERSION})")
        key = start if start.startswith("/") else f"/{start}"
        if posixpath.normpath(key) != key or key.startswith("//"):
            raise _refusal(f": {start}")
        return cls(document["rv"], key[1:])


def expired(position: Position) -> StatusError:
    """The rest as it was is gone; the token in the answer gives the rest as it is."""
    later = Position(LATEST, position.key)
    return StatusError(410, "Expired", _INCONSISTENT, metadata={"continue": later.token()})


def _decoded(token: str) -> dict[str, Any]:
    """The fields of a token, each of its type."""
    if unknown := re.search(rb"[^A-Za-z0-9_-]", token.encode()):
        raise _refusal(f": illegal base64 data at input byte {unknown.start()}")
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error:
        raise _refusal(f": illegal base64 data at input byte {len(token) - 1}") from None
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise _refusal(f": {_problem(text)}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _refusal(
            f": json: cannot unmarshal {JSON_NAMES[type(document)]} into Go value of type storage.continueToken"
        )
    for field, wanted, title in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        value = document.get(field)
        if value is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
            told = f"json: cannot unmarshal {JSON_NAMES[type(value)]} into Go struct field continueToken.{field}"
            raise _refusal(f": {told} of type {title}")
    return document


def _problem(text: bytes) -> str:
    """Most damage shows in the first character, or at the end."""
    first = text.decode("latin-1").lstrip()[:1]
    return (
        "unexpected end of JSON input"
        if not first or first in '{["-0123456789'
        else f"invalid character '{first}' looking for beginning of value"
    )


def _refusal(problem: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid{problem}")
