"""Read request bodies within limits of size and time, and decode them.

A body is JSON, YAML or protobuf, whatever its content type says and nothing else. Protobuf is decoded because Go
clients send it for built-in kinds and do not fall back when it is refused. What is refused is refused in the words of
the real server: they name the parser's complaint and quote the beginning of the body.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from kardinal_local.plane.documents import JSON_NAMES, JsonObject
from kardinal_local.plane.errors import MalformedYaml, StatusError, UnsupportedProtobuf
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.statuses import bad_request, too_large, unsupported_media_type
from kardinal_local.plane.wire.json_text import (
    MalformedJson,
    NumberOutOfRange,
    decode_json,
    decode_merged,
    duplicate_fields,
)
from kardinal_local.plane.wire.negotiation import JSON, PROTOBUF, YAML
from kardinal_local.plane.wire.protobuf import decode

__all__ = [
    "BODY_LIMIT",
    "Body",
    "content_type",
    "decode_configuration",
    "decode_document",
    "decode_options",
    "decode_patch",
    "read_body",
]

BODY_LIMIT = 3 * 1024 * 1024
BODY_SECONDS = 60.0
_QUOTED_BYTES = 30
_MEDIA_TYPE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z/-]+)\s*(;\s*[^\s=;]+=(\"[^\"]*\"|[^\s;\"]*)\s*)*;?\s*")
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, and what strict validation has against its text."""

    document: JsonObject
    strict: tuple[str, ...] = ()


async def read_body(request: web.BaseRequest) -> bytes:
    """The whole body; refused as soon as it is known to be too large, not after it was read."""
    if (request.content_length or 0) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)
    # Almost all are there by now, and need no timer.
    body = await request.content.readany() if request.content.is_eof() else await _arriving(request)
    if len(body) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)
    return body


async def _arriving(request: web.BaseRequest) -> bytes:
    """A body whose end is not there yet, up to the piece that makes it too large."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while len(body) <= BODY_LIMIT and (chunk := await request.content.readany()):
                body += chunk
    except TimeoutError:
        raise StatusError(408, "Timeout", "the body of the request did not arrive in time") from None
    return bytes(body)


def content_type(request: web.BaseRequest) -> str:
    """The media type without its parameters; an absent one means JSON, one that cannot be read is none."""
    value: str = request.headers.get("Content-Type", "").strip()
    match = _MEDIA_TYPE.fullmatch(value)
    return (match[1].lower() if match else ";") if value else JSON


async def decode_document(body: bytes, media_type: str, *, kind: Kind) -> Body:
    """The object of `kind` in a body of one of the document types."""
    return await _decode(body, media_type, name=kind.kind, described=kind)


async def decode_options(body: bytes, media_type: str) -> JsonObject:
    """The options in the body of a deletion."""
    return (await _decode(body, media_type, name="DeleteOptions", described=None)).document


def decode_patch(body: bytes, *, strategic: bool = False) -> tuple[Any, tuple[str, ...]]:
    """A patch in JSON, and what strict validation has against its text."""
    try:
        patch = decode_json(body)
    except NumberOutOfRange as error:
        raise bad_request(str(error)) from None
    except MalformedJson as error:
        raise bad_request(str(error) if strategic else f"error decoding patch: {error}") from None
    prefix = "json patch " if isinstance(patch, list) else ""
    return patch, tuple(f'{prefix}duplicate field "{path}"' for path in duplicate_fields(body.strip(), patch))


async def decode_configuration(body: bytes) -> tuple[JsonObject, str]:
    """An applied configuration, and what is to be said of keys that stand twice in it; JSON is YAML, read faster."""
    try:
        document = decode_json(body)
        if not duplicate_fields(body.strip(), document):
            return _require_object(document), ""
    except (MalformedJson, NumberOutOfRange):
        pass
    try:
        document, told = await asyncio.to_thread(_decode_yaml, body)
    except MalformedYaml as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    return _require_object(document), f"error converting YAML to JSON: {told}" if told else ""


def _decode_yaml(body: bytes) -> tuple[Any, str]:
    # Many a plane never meets any: the thread that does imports what reads it.
    from kardinal_local.plane.wire.yaml_text import decode_yaml  # noqa: PLC0415

    return decode_yaml(body)


def _require_object(document: Any) -> JsonObject:
    if document is not None and not isinstance(document, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{JSON_NAMES[type(document)]} into Go value of type map[string]interface {{}}"
        )
    return document or {}


async def _decode(body: bytes, media_type: str, *, name: str, described: Kind | None) -> Body:
    strict: Sequence[str] = ()
    try:
        if media_type == PROTOBUF:
            return Body(decode(body))
        if media_type == JSON:
            document = decode_json(body)
            repeated = duplicate_fields(body.strip(), document)
            strict = [f"duplicate field {orjson.dumps(path).decode()}" for path in repeated]
            if repeated and (described is None or described.typed is not None):
                document = decode_merged(body)
        elif media_type == YAML:
            document, told = await asyncio.to_thread(_decode_yaml, body)
            strict = [told] if told else []
        else:
            raise unsupported_media_type(JSON, YAML, PROTOBUF)
    except MalformedJson as error:
        raise _unrecognized(body, name, f"couldn't get version/kind; json parse error: {error}") from None
    except NumberOutOfRange as error:
        version = described.version if described is not None else "v1"
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {name}: {error}') from None
    except (MalformedYaml, UnsupportedProtobuf) as error:
        if isinstance(error, UnsupportedProtobuf) and error.unknown_field:
            raise
        raise _unrecognized(body, name, str(error)) from None
    if problem := _type_problem(document, custom=described is not None and described.custom, body=body):
        # Options are read in another place of the real server, which does not say what it expected.
        raise bad_request(problem) if described is None else _unrecognized(body, name, problem)
    return Body({} if document is None else document, tuple(strict))


def _type_problem(document: Any, *, custom: bool, body: bytes) -> str:
    """Why the body does not say what it is; of built-in kinds, it need not."""
    problem = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if document is not None and not isinstance(document, dict):
        return f"{problem} {JSON_NAMES[type(document)]} into Go value of type {_TYPE_META}"
    fields = document or {}
    for field in ("apiVersion", "kind"):
        if not isinstance(fields.get(field) or "", str):
            return f"{problem} {JSON_NAMES[type(fields[field])]} into Go struct field .{field} of type string"
    if custom and not fields.get("kind"):
        return f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
    return ""


def _unrecognized(body: bytes, name: str, problem: str) -> StatusError:
    return bad_request(f"the object provided is unrecognized (must be of type {name}): {problem} ({_summary(body)})")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    beginning, rest = body[:_QUOTED_BYTES], " ..." if len(body) > _QUOTED_BYTES else ""
    return (beginning.decode(errors="replace") if body.startswith(b"{") else beginning.hex()) + rest
