"""Decode the protobuf bodies in which typed clients write built-in kinds.

kubectl since 1.32 and every Go controller send protobuf for built-in kinds and do not fall back to JSON when it is
refused, so it must be understood; answers may stay JSON. A body is `k8s\\0` and an envelope with the type and the
message. The decoder walks the generated tables of field numbers and yields what the same object would be in JSON. Go
writes every plain field, set or not; which of the empty ones mean nothing is decided where the document is read as its
type, as it is for JSON.

A kind that is not in the tables is refused, and a field that is not is refused by number: dropping it silently would
store another object than the client sent.
"""

from __future__ import annotations

import base64
import struct as binary
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import orjson

from kardinal_local.plane.builtin import META, Field, schema_name, struct
from kardinal_local.plane.documents import JsonObject, micro_timestamp, timestamp
from kardinal_local.plane.errors import UnsupportedProtobuf

__all__ = ["decode"]

_MAGIC: Final = b"k8s\0"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_CRDS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

Read = Callable[[Any], Any]
Table = dict[int, tuple[Field, Read]]


def decode(body: bytes) -> JsonObject:
    """The object of an enveloped body, as it would be in JSON."""
    if not body.startswith(_MAGIC):
        raise UnsupportedProtobuf("the body does not start with the Kubernetes protobuf prefix")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        meta = {number: str(text, "utf-8") for number, text in _fields(envelope.get(1, b""))}
        api_version, kind = meta.get(1, ""), meta.get(2, "")
        message = _message(_type_of(api_version, kind), envelope.get(2, b""))
        return message | {"apiVersion": api_version, "kind": kind}
    except (IndexError, TypeError, ValueError, OverflowError, RecursionError, binary.error):
        # The cause may quote the body, which may be a Secret.
        raise UnsupportedProtobuf("the body is not a well-formed protobuf message") from None


def _type_of(api_version: str, kind: str) -> str:
    """The type of a kind; DeleteOptions exist in every group."""
    group, _, version = api_version.rpartition("/")
    name = f"{META}DeleteOptions" if kind == "DeleteOptions" else schema_name(group, version, kind)
    try:
        struct(name)
    except KeyError:
        raise UnsupportedProtobuf(
            f"protobuf bodies of {api_version}, Kind={kind} are not supported; send JSON"
        ) from None
    return name


def _message(name: str, data: bytes) -> JsonObject:
    table = _table(name)
    result: JsonObject = {}
    for number, value in _fields(data):
        if number not in table:
            short = name.rpartition(".")[2]
            raise UnsupportedProtobuf(f"unknown field {number} of {short} in the protobuf body", unknown_field=True)
        field, read = table[number]
        if field.empty == "~":
            result |= read(value)
        elif field.many == "[":
            result.setdefault(field.name, []).append(read(value))
        elif field.many == "{":
            entry = dict(_fields(value))
            result.setdefault(field.name, {})[str(entry.get(1, b""), "utf-8")] = read(entry.get(2, b""))
        else:
            result[field.name] = read(value)
    return result


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The numbered values of one message: integers, or bytes."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                value, position = _varint(data, position)
                yield tag >> 3, value
            case 1:
                (value,) = binary.unpack_from("<d", data, position)
                yield tag >> 3, value
                position += 8
            case 2:
                length, position = _varint(data, position)
                if length < 0 or position + length > end:
                    raise ValueError("a field is longer than its message")
                yield tag >> 3, data[position : position + length]
                position += length
            case _:
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
    return {number: (field, _reader(field.type)) for number, field in struct(name).by_number.items()}


def _reader(type_: str) -> Read:
    if type_ in _READERS:
        return _READERS[type_]
    return lambda data: _message(type_, data)


def _text(data: Any) -> str:
    return str(data, "utf-8")


def _encoded(data: Any) -> str:
    return base64.b64encode(data).decode()


def _moment(spell: Callable[[datetime], str]) -> Read:
    def read(data: bytes) -> str | None:
        parts = dict(_fields(data))
        if not parts:
            return None
        return spell(_EPOCH + timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000))

    return read


def _first(read: Read, *, otherwise: Any) -> Read:
    """A message whose only field is the value."""
    return lambda data: next((read(value) for number, value in _fields(data) if number == 1), otherwise)


def _int_or_string(data: bytes) -> int | str:
    parts = dict(_fields(data))
    return _text(parts.get(3, b"")) if parts.get(1) else int(parts.get(2, 0))


def _texts(data: bytes) -> list[str]:
    return [_text(value) for _, value in _fields(data)]


def _one_of(name: str, *, plain: str) -> Read:
    """A schema, or something simpler, which JSON writes in its place."""

    def read(data: bytes) -> Any:
        message = _message(name, data)
        return message["schema"] if "schema" in message else message.get(plain)

    return read


_READERS: Final[dict[str, Read]] = {
    "string": _text,
    "bool": bool,
    "int32": int,
    "int64": int,
    "double": float,
    "bytes": _encoded,
    f"{META}Time": _moment(timestamp),
    f"{META}MicroTime": _moment(micro_timestamp),
    f"{META}FieldsV1": _first(orjson.loads, otherwise=None),
    "io.k8s.api.authentication.v1.ExtraValue": _texts,
    "io.k8s.api.authorization.v1.ExtraValue": _texts,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _first(_text, otherwise="0"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _first(orjson.loads, otherwise=None),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    f"{_CRDS}JSON": _first(orjson.loads, otherwise=None),
    f"{_CRDS}JSONSchemaPropsOrArray": _one_of(f"{_CRDS}JSONSchemaPropsOrArray", plain="jSONSchemas"),
    f"{_CRDS}JSONSchemaPropsOrBool": _one_of(f"{_CRDS}JSONSchemaPropsOrBool", plain="allows"),
    f"{_CRDS}JSONSchemaPropsOrStringArray": _one_of(f"{_CRDS}JSONSchemaPropsOrStringArray", plain="property"),
}
"""The types that JSON writes otherwise than as their fields."""
