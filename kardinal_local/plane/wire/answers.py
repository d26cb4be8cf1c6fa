"""Send responses: encoded, compressed, in pieces.

Whatever answers a request yields JSON; YAML and indentation are put on here, because so few ask for them. What is
larger than 128 KiB is compressed when the client can read that, as the real server does; a list is sent as it is
rendered, in pieces that wait for the client, so that neither its whole text nor a second copy is ever in memory and no
piece holds the event loop.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

import orjson
from aiohttp import web

from kardinal_local.plane import statuses
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.wire.exchange import JSON_HEADERS, Exchange, json_response
from kardinal_local.plane.wire.negotiation import JSON, YAML
from kardinal_local.plane.wire.warnings import warning_headers

__all__ = ["finish", "refusal", "send"]

COMPRESSED_FROM = 128 * 1024
PIECE = 128 * 1024
_FASTEST = 1
_GZIP = zlib.MAX_WBITS | 16
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")


def refusal(error: StatusError) -> web.Response:
    """The answer to a request that is refused."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
    return json_response(statuses.failure(error), status=error.code, headers=headers)


async def finish(response: web.Response, exchange: Exchange) -> web.Response:
    """Give a whole answer the encoding that was asked for."""
    for value in warning_headers(exchange.warnings):
        response.headers.add("Warning", value)
    body = response.body
    if response.headers.get("Content-Type") != JSON or not isinstance(body, bytes):
        return response
    if exchange.representation.encoding == YAML:
        body = await asyncio.to_thread(_to_yaml, body)
        response.headers["Content-Type"] = YAML
    elif _is_pretty(exchange):
        body = await asyncio.to_thread(_indented, body)
    if _compresses(exchange) and len(body) > COMPRESSED_FROM:
        body = await asyncio.to_thread(zlib.compress, body, _FASTEST, _GZIP)
        _mark_compressed(response)
    response.body = body
    return response


async def send(pieces: AsyncIterator[bytes], exchange: Exchange) -> web.StreamResponse:
    """Answer with the JSON in `pieces`, as they come when that is what was asked for."""
    first = bytearray()
    as_they_come = exchange.representation.encoding == JSON and not _is_pretty(exchange)
    async for piece in pieces:
        first += piece
        if as_they_come and len(first) > COMPRESSED_FROM:
            return await _stream(bytes(first), pieces, exchange)
    return web.Response(body=bytes(first), headers=JSON_HEADERS)


async def _stream(first: bytes, pieces: AsyncIterator[bytes], exchange: Exchange) -> web.StreamResponse:
    response = web.StreamResponse(headers=JSON_HEADERS)
    for value in warning_headers(exchange.warnings):
        response.headers.add("Warning", value)
    compress = zlib.compressobj(_FASTEST, zlib.DEFLATED, _GZIP) if _compresses(exchange) else None
    if compress is not None:
        _mark_compressed(response)
    await response.prepare(exchange.request)
    waiting = bytearray(first)
    async for piece in pieces:
        waiting += piece
        if len(waiting) >= PIECE:
            await _write(response, bytes(waiting), compress)
            waiting.clear()
    await _write(response, bytes(waiting), compress)
    if compress is not None:
        await response.write(compress.flush())
    await response.write_eof()
    return response


async def _write(response: web.StreamResponse, data: bytes, compress: zlib._Compress | None) -> None:
    if compress is not None:
        data = await asyncio.to_thread(compress.compress, data)
    if data:
        await response.write(data)


def _is_pretty(exchange: Exchange) -> bool:
    """Return whether to indent JSON: for curl and browsers, and for clients that ask for it."""
    wanted = exchange.query.get("pretty", "")
    if wanted and not exchange.representation.pretty:
        return wanted in _TRUE
    return exchange.representation.pretty or exchange.request.headers.get("User-Agent", "").startswith(_BROWSERS)


def _compresses(exchange: Exchange) -> bool:
    accepted = exchange.request.headers.get("Accept-Encoding", "").split(",")
    return any(one.strip() == "gzip" for one in accepted)


def _mark_compressed(response: web.StreamResponse) -> None:
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding"


def _to_yaml(body: bytes) -> bytes:
    # As in `bodies`.
    from kardinal_local.plane.wire.yaml_text import encode_yaml  # noqa: PLC0415

    return encode_yaml(orjson.loads(body))


def _indented(body: bytes) -> bytes:
    return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
