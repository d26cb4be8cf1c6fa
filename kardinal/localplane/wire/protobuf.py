"""Reads the protobuf bodies in which typed clients write built-in kinds.

kubectl since 1.32 and every Go controller send protobuf for built-in kinds and do not fall back to JSON when it is
refused, so it must be understood; answers may stay JSON. A body is `k8s\\0` and an envelope with the type and the
message. The decoder walks tables of field numbers and yields what the same object would be in JSON: Go writes every
plain field, set or not, so an empty one is left out unless the table says it is behind a pointer.

A kind that is not in the tables is refused, and a field that is not is refused by number: dropping it silently would
store another object than the client sent. Design: local-plane.md 2.2 (item 1).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import orjson

from kardinal.localplane.documents import JsonObject, micro_timestamp, timestamp
from kardinal.localplane.errors import UnsupportedProtobuf
from kardinal.localplane.wire.protobuf_tables import KINDS, MESSAGES

__all__ = ["decode"]

_MAGIC = b"k8s\0"
_EPOCH = datetime.fromtimestamp(0, UTC)

Read = Callable[[Any], Any]
Table = dict[int, tuple[str, str, Read]]
"""By number: the field's name, whether it is `one` value, a `list` or a `map`, and how a value is read."""


def decode(body: bytes) -> JsonObject:
    """The object of an enveloped body, as it would be in JSON."""
    if not body.startswith(_MAGIC):
        raise UnsupportedProtobuf("the body does not start with the Kubernetes protobuf prefix")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        meta = {number: str(text, "utf-8") for number, text in _fields(envelope.get(1, b""))}
        api_version, kind = meta.get(1, ""), meta.get(2, "")
        name = "DeleteOptions" if kind == "DeleteOptions" else KINDS.get((api_version, kind))
        if name is None:
            raise UnsupportedProtobuf(f"protobuf bodies of {api_version}, Kind={kind} are not supported; send JSON")
        return {"apiVersion": api_version, "kind": kind, **_message(name, envelope.get(2, b""))}
    except (IndexError, TypeError, ValueError, OverflowError):
        # The cause may quote the body, which may be a Secret.
        raise UnsupportedProtobuf("the body is not a well-formed protobuf message") from None


def _message(name: str, data: bytes) -> JsonObject:
    table = _table(name)
    result: JsonObject = {}
    for number, value in _fields(data):
        if number not in table:
            raise UnsupportedProtobuf(f"unknown field {number} of {name} in the protobuf body", unknown_field=True)
        field, shape, read = table[number]
        if shape == "list":
            result.setdefault(field, []).append(read(value))
        elif shape == "map":
            entry = dict(_fields(value))
            result.setdefault(field, {})[str(entry.get(1, b""), "utf-8")] = read(entry.get(2, b""))
        else:
            item = read(value)
            if item is not None:
                result[field] = item
    return result


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The numbered values of one message: integers, or bytes."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield tag >> 3, value
        elif wire == 2:
            length, position = _varint(data, position)
            if position + length > end:
                raise ValueError("a field is longer than its message")
            yield tag >> 3, data[position : position + length]
            position += length
        else:
            raise ValueError("a wire type that Kubernetes does not use")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value - (1 << 64) if value >= 1 << 63 else value), position
        shift += 7
        if shift > 63:
            raise ValueError("an integer is too long")


@cache
def _table(name: str) -> Table:
    table: Table = {}
    for row in MESSAGES[name].split("; "):
        number, field, kind = row.split(" ")
        shape = {"[": "list", "{": "map"}.get(kind[0], "one")
        table[int(number)] = (field, shape, _reader(kind.strip("[]{}"), optional=shape == "one"))
    return table


def _reader(kind: str, *, optional: bool) -> Read:
    """How a value becomes JSON; None stands for a field that is not set."""
    if kind == "FieldsV1":
        return lambda data: _message("FieldsV1", data).get("raw")
    if kind == "ExtraValue":
        return lambda data: _message("ExtraValue", data).get("items", [])
    if kind in MESSAGES:
        return (lambda data: _message(kind, data) or None) if optional else (lambda data: _message(kind, data))
    read = _SCALARS[kind.lower()]
    return (lambda value: read(value) or None) if optional and kind.islower() else read


def _text(data: Any) -> str:
    return str(data, "utf-8")


def _moment(data: bytes) -> datetime | None:
    parts = dict(_fields(data))
    if not parts:
        return None
    return _EPOCH + timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000)


def _time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else timestamp(moment)


def _micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else micro_timestamp(moment)


_SCALARS: dict[str, Read] = {
    "b": bool,
    "i": int,
    "j": orjson.loads,
    "s": _text,
    "t": _time,
    "u": _micro_time,
    "x": lambda data: base64.b64encode(data).decode(),
}
