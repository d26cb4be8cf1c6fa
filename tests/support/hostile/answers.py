"""Answers of an HTTP server that cost a reader most: bombs, nesting, heads and bodies without an end, silence.

Bytes are written to the connection as they are, since no library for servers would send most of this. What is without
an end stops at `MOST` bytes, which no bound of kardinal's comes near, or when the client hangs up.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache

import orjson

__all__ = ["ANSWERS", "Answer", "Request", "endless"]

MOST = 1 << 28
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """One request and where to answer it; `number` counts those to one behaviour, `trap` is what must not be asked."""

    path: str
    number: int
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter
    random: random.Random
    trap: str

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            if self.writer.transport.is_closing():
                raise ConnectionResetError
            self.writer.write(piece)
        await self.writer.drain()


Answer = Callable[[Request], Awaitable[None]]


def _head(*lines: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *lines, "", ""]).encode()


async def endless(request: Request, begin: bytes, piece: bytes, *, pause: float = 0, most: int = MOST) -> None:
    """Send `begin` and then `piece` again and again."""
    await request.send(begin)
    for _ in range(most // len(piece)):
        await request.send(piece)
        await asyncio.sleep(pause)


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def _pouring(begin: bytes, piece: bytes, *, status: str = "200 OK") -> Answer:
    """Return an answer whose body begins and then repeats itself."""

    async def answer(request: Request) -> None:
        await endless(request, _head("Transfer-Encoding: chunked", status=status) + _chunk(begin), _chunk(piece))

    return answer


def _whole(make: Callable[[Request], bytes]) -> Answer:
    """Return an answer with a right head and this body."""

    async def answer(request: Request) -> None:
        body = make(request)
        await request.send(_head(f"Content-Length: {len(body)}"), body)

    return answer


@cache
def _packed(window: int) -> tuple[bytes, bytes]:
    """Return the beginning of a compressed stream of spaces, and a kilobyte of it that is a mebibyte unpacked."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    begin = packer.compress(b'{"items": [') + packer.flush(zlib.Z_FULL_FLUSH)
    return begin, packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)


def _bomb(encoding: str, window: int) -> Answer:
    """Return an answer that unpacks to a thousand times its size, without an end."""

    async def answer(request: Request) -> None:
        begin, piece = _packed(window)
        head = _head(f"Content-Encoding: {encoding}", "Transfer-Encoding: chunked")
        await endless(request, head + _chunk(begin), _chunk(piece * 16))

    return answer


async def _unpackable(request: Request) -> None:
    """Say that a body is packed by a method that most readers lack; its bytes are not."""
    body = request.random.randbytes(1 << 20)
    await request.send(_head("Content-Encoding: br", f"Content-Length: {len(body)}"), body)


async def _drip_body(request: Request) -> None:
    await endless(request, _head("Content-Length: 1000000") + b"[", b" ", pause=1)


async def _drip_head(request: Request) -> None:
    await endless(request, b"HTTP/1.1 200 OK\r\nX: ", b"x", pause=1)


async def _endless_headers(request: Request) -> None:
    lines = b"".join(b"X-%d: %b\r\n" % (number, b"x" * 48) for number in range(1000))
    await endless(request, b"HTTP/1.1 200 OK\r\n", lines)


async def _huge_header(request: Request) -> None:
    await endless(request, b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * _PIECE)


async def _flood(request: Request) -> None:
    """Send provisional answers, before which a client goes on to wait."""
    await endless(request, b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 500)


async def _redirects(request: Request) -> None:
    await request.send(_head(f"Location: {request.path}?{request.number}", "Content-Length: 0", status="302 Found"))


async def _redirect_inside(request: Request) -> None:
    place = (request.trap, "http://169.254.169.254/latest/meta-data/")[request.number % 2]
    await request.send(_head(f"Location: {place}", "Content-Length: 0", status="307 Temporary Redirect"))


async def _too_short(request: Request) -> None:
    await request.send(_head("Content-Length: 100000"), b'{"items": [')


async def _too_long(request: Request) -> None:
    await endless(request, _head("Content-Length: 2") + b"[]", b"HTTP/1.1 200 OK\r\n\r\n" * 1000, most=16 << 20)


async def _chunk_garbage(request: Request) -> None:
    lengths = (b"-1", b"zz", b"f" * 5000, b"7fffffffffffffff", b"5;" + b"x" * 100_000)
    await request.send(_head("Transfer-Encoding: chunked"), _chunk(b"["), request.random.choice(lengths), b"\r\n[]\r\n")


async def _tiny_chunks(request: Request) -> None:
    await endless(request, _head("Transfer-Encoding: chunked"), _chunk(b" ") * 5000)


async def _flood_of_answers(request: Request) -> None:
    await endless(request, b"", b"HTTP/1.1 204 No Content\r\n\r\n" * 1000)


async def _silence(request: Request) -> None:
    await asyncio.sleep(600)


async def _hang_up(request: Request) -> None:
    answer = _head("Content-Length: 100") + b'{"items": [' + b" " * 20
    await request.send(answer[: request.random.randrange(len(answer))])


async def _noise(request: Request) -> None:
    await request.send(request.random.randbytes(1 << 20))


async def _pages(request: Request) -> None:
    """Name a next page for ever, in the words of the API that was asked."""
    number = request.number
    if "/apis/" in request.path or "/api/v1/pods" in request.path:
        found = [_deployment(f"d-{number}-{index}") for index in range(50)]
        body = orjson.dumps({"items": found, "metadata": {"continue": str(number), "resourceVersion": "1"}})
        told = ""
    elif "/api/v1/" in request.path:
        pulls = [_pull(number * 50 + index) for index in range(50)]
        body = orjson.dumps(pulls)
        told = f'Link: <{request.path.partition("?")[0]}?page={number + 2}>; rel="next"'
    else:
        await request.send(_head(f"Location: {request.path}", "Retry-After: 0", "Content-Length: 0", status="202 Ok"))
        return
    lines = [f"Content-Length: {len(body)}", *([told] if told else [])]
    await request.send(_head(*lines), body)


def _pull(number: int) -> dict[str, object]:
    side = {"ref": f"b{number}", "sha": f"{number:040d}", "repo": {"id": 1, "full_name": "a/b"}}
    return {"number": number, "title": "x" * 20_000, "body": "", "state": "open", "head": side, "base": {"ref": "main"}}


def _deployment(name: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "dev", "uid": name, "resourceVersion": "1", "annotations": {"x": "x" * 9000}}
    return {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata}


def _nested(request: Request) -> bytes:
    return b"[" * 1_500_000 + b"]" * 1_500_000


def _containers(request: Request) -> bytes:
    return b'{"items": [' + b",".join([b"[[[[[[]]]]]]"] * 300_000) + b"]}"


def _numbers(request: Request) -> bytes:
    return b'{"number": ' + b"9" * 3_000_000 + b', "id": 1e999999999}'


def _keys(request: Request) -> bytes:
    return b'{"' + b"k" * 3_000_000 + b'": 1}'


def _many_keys(request: Request) -> bytes:
    return b"{" + b",".join(b'"%d":1' % number for number in range(250_000)) + b"}"


def _wide_text(request: Request) -> bytes:
    return b'{"message": "' + b"x" * 3_000_000 + "\U0001f600".encode() + b'"}'


def _not_utf8(request: Request) -> bytes:
    return b'{"message": "' + bytes(request.random.choices(range(0x80, 0x100), k=100_000)) + b'"}'


def _watch_lines() -> Iterator[bytes]:
    yield b'{"type": "ADDED", "object": {"x": "'
    yield b" " * _PIECE


ANSWERS: dict[str, Answer] = {
    "gzip bomb": _bomb("gzip", 31),
    "deflate bomb": _bomb("deflate", 15),
    "br": _unpackable,
    "nested": _whole(_nested),
    "containers": _whole(_containers),
    "numbers": _whole(_numbers),
    "long key": _whole(_keys),
    "many keys": _whole(_many_keys),
    "wide text": _whole(_wide_text),
    "not UTF-8": _whole(_not_utf8),
    "endless body": _pouring(b'{"items": [', b" " * _PIECE),
    "endless line": _pouring(*_watch_lines()),
    "endless error": _pouring(b'{"message": "', b"x" * _PIECE, status="500 Internal Server Error"),
    "drip of a body": _drip_body,
    "drip of a head": _drip_head,
    "endless headers": _endless_headers,
    "huge header": _huge_header,
    "provisional answers": _flood,
    "answers without end": _flood_of_answers,
    "tiny chunks": _tiny_chunks,
    "redirects": _redirects,
    "redirect inside": _redirect_inside,
    "short of its length": _too_short,
    "beyond its length": _too_long,
    "chunks of garbage": _chunk_garbage,
    "silence": _silence,
    "hangs up": _hang_up,
    "noise": _noise,
    "endless pages": _pages,
}
"""The behaviours of a server, by names for people."""
