"""Request bodies: how large they may be and how they are decoded.

JSON is tried first whatever the content type says of YAML: kubectl sends JSON under `apply-patch+yaml`. Protobuf is
decoded because Go clients send it for built-in kinds and do not fall back when it is refused (local-plane.md 2.2 item
1).
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import orjson
import yaml
from aiohttp import web

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import StatusError
from kardinal.localplane.statuses import bad_request, too_large
from kardinal.localplane.wire import protobuf

__all__ = ["BODY_LIMIT", "content_type", "decode_document", "decode_json_or_yaml", "read_body"]

BODY_LIMIT = 3 * 1024 * 1024
PROTOBUF = "application/vnd.kubernetes.protobuf"
_DOCUMENT_TYPES = ("application/json", "application/yaml", PROTOBUF)


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: a date is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


async def read_body(request: web.BaseRequest) -> bytes:
    """The whole body; refused as soon as it is known to be too large, not after it was read."""
    if (request.content_length or 0) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)
    body = bytearray()
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
    return bytes(body)


def content_type(request: web.BaseRequest) -> str:
    """The media type without its parameters; an absent one means JSON."""
    value: str = request.headers.get("Content-Type", "")
    return value.partition(";")[0].strip().lower() or "application/json"


async def decode_document(body: bytes, media_type: str) -> JsonObject:
    """The object in a body of one of the document types."""
    if media_type not in _DOCUMENT_TYPES:
        raise StatusError(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(_DOCUMENT_TYPES),
        )
    document = protobuf.decode(body) if media_type == PROTOBUF else await decode_json_or_yaml(body)
    if not isinstance(document, dict):
        raise bad_request("the body of the request must be an object")
    return document


async def decode_json_or_yaml(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if re.match(rb"\s*[{\[]", body) and b"\n" not in body.strip():
            raise bad_request(f"the body of the request is not valid JSON: {error}") from None
    try:
        return await asyncio.to_thread(yaml.load, body, _Loader)
    except yaml.YAMLError as error:
        raise bad_request(f"the body of the request is neither JSON nor YAML: {error}") from None
