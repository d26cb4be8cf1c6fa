"""JSON of others: counted in its bytes, then decoded.

Decoding takes many times the size of a document: `[[],[],…` takes 30 bytes of memory for each byte, and a string with
one emoji takes four bytes for each letter. The bytes are therefore counted first. They are split at quotes, which needs
no decoding: a backslash has a meaning inside strings only, and without the escaped ones every quote begins or ends a
string. In invalid JSON, the count is wrong only after the position at which the decoder fails.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import orjson

from kardinal.bounded.holding import Held, Holding
from kardinal.bounded.limits import JsonLimits
from kardinal.objects.errors import KardinalError

__all__ = ["NotJson", "OverLimit", "decode", "decode_first", "decode_held", "measure"]

_BRACKETS = re.compile(rb"[\[{\]}]")
_OPENING = b"[{"
_FIRST = json.JSONDecoder()
_LARGE = 64 << 10
"""The size in bytes from which a document is decoded on a thread; smaller ones take less than a millisecond."""
_LEAST = 128
_PIECE = 64
_CONTAINER = 256
_WIDE = 4
"""The most bytes of memory for a document, a value, a list or object, and a letter of a string that is not ASCII."""


class OverLimit(KardinalError):
    """A document beyond the limits of size, nesting or number of values."""


class NotJson(KardinalError):
    """Bytes that are not a JSON document."""


def measure(content: bytes, limits: JsonLimits) -> int:
    """Return the most bytes of memory that a document takes when it is decoded. Raises `OverLimit`."""
    if len(content) > limits.size:
        raise OverLimit(f"it has more than {limits.size:,} bytes")
    wide = not content.isascii() or rb"\u" in content
    text = len(content) * (_WIDE if wide else 1)
    if b"\\" in content:
        content = content.replace(rb"\\", b"").replace(rb"\"", b"")
    strings = (content.count(b'"') + 1) // 2
    if strings > limits.pieces:
        raise OverLimit(f"it has more than {limits.pieces:,} values")
    outside = b'"'.join(content.split(b'"')[::2])
    containers = outside.count(b"[") + outside.count(b"{")
    if containers > limits.containers:
        raise OverLimit(f"it has more than {limits.containers:,} lists and objects")
    pieces = strings + containers + outside.count(b",")
    if pieces > limits.pieces:
        raise OverLimit(f"it has more than {limits.pieces:,} values")
    _check_depth(outside, limits.depth)
    return _LEAST + text + pieces * _PIECE + containers * _CONTAINER


def decode(content: bytes, limits: JsonLimits) -> Any:
    """Return the value of a document. Raises `OverLimit` before decoding, and `NotJson`."""
    measure(content, limits)
    return _decoded(content)


def decode_first(content: bytes, limits: JsonLimits) -> Any:
    """Return the value of the first of several documents; the limits are of all of them together.

    Raises `OverLimit` before decoding, and `NotJson`, also if there is no document.
    """
    measure(content, limits)
    try:
        value, _ = _FIRST.raw_decode(content.decode().lstrip())
    except ValueError:
        raise NotJson("it does not begin with a JSON document") from None
    return value


async def decode_held(content: bytes, limits: JsonLimits, *, holding: Holding, owner: str) -> tuple[Any, Held]:
    """Return the value of a document, and the memory that is reserved for it; large documents are decoded on a thread.

    Raises `OverLimit`, `NotJson`, and `NoRoom` if the namespace `owner` holds too much already.
    """
    large = len(content) >= _LARGE
    memory = await asyncio.to_thread(measure, content, limits) if large else measure(content, limits)
    held = await holding.take(owner, memory)
    try:
        return (await asyncio.to_thread(_decoded, content) if large else _decoded(content)), held
    except BaseException:
        held.release()
        raise


def _decoded(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise NotJson(f"it is not JSON (line {error.lineno}, column {error.colno})") from None


def _check_depth(outside: bytes, most: int) -> None:
    depth = 0
    for bracket in _BRACKETS.finditer(outside):
        depth += 1 if bracket[0] in _OPENING else -1
        if depth > most:
            raise OverLimit(f"it is nested deeper than {most} levels")
