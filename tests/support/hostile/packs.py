"""Answers of a Git host over HTTP: lists of references and packs without an end, and deltas that grow.

Version 0 of the protocol without options is spoken, which every client understands: the list of references, then `NAK`
and the pack as it is.
"""

from __future__ import annotations

import hashlib
import zlib

from tests.support.hostile.answers import ANSWERS, Answer, Request, endless

__all__ = ["PACKS"]

_COMMIT = b"1" * 40
_BLOB = 3
_REF_DELTA = 7
_MANY = (1 << 31) - 1
"""Objects that a pack says it has."""
_COPIES = 4096
"""Copies of its base that a delta asks for, of 16 MiB less a byte each: 64 GiB."""


def _packet(line: bytes) -> bytes:
    return b"%04x" % (len(line) + 4) + line


def _head(request: Request) -> bytes:
    kind = b"advertisement" if _asks_for_references(request) else b"result"
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-%b\r\nConnection: close\r\n"
        b"Cache-Control: no-cache\r\n\r\n" % kind
    )


def _references(*more: bytes) -> bytes:
    first = _packet(b"# service=git-upload-pack\n") + b"0000"
    first += _packet(_COMMIT + b" HEAD\0ofs-delta symref=HEAD:refs/heads/main\n")
    return first + _packet(_COMMIT + b" refs/heads/main\n") + b"".join(more)


def _asks_for_references(request: Request) -> bool:
    return "/info/refs" in request.path


async def _endless_references(request: Request) -> None:
    lines = b"".join(_packet(b"%040x refs/heads/b-%d\n" % (number, number)) for number in range(1000))
    await endless(request, _head(request) + _references(), lines)


async def _many_references(request: Request) -> None:
    lines = b"".join(_packet(b"%040x refs/heads/b-%07d\n" % (number, number)) for number in range(400_000))
    await request.send(_head(request), _references(), lines, b"0000")


async def _drip_of_references(request: Request) -> None:
    await endless(request, _head(request), b"0", pause=1)


def _pack(begin: bytes, piece: bytes, *, pause: float = 0) -> Answer:
    async def answer(request: Request) -> None:
        if _asks_for_references(request):
            await request.send(_head(request), _references(), b"0000")
            return
        head = b"PACK" + (2).to_bytes(4, "big") + _MANY.to_bytes(4, "big")
        await endless(request, _head(request) + _packet(b"NAK\n") + head + begin, piece, pause=pause)

    return answer


def _size(number: int, kind: int) -> bytes:
    """Return the head of an object in a pack."""
    first = (kind << 4) | (number & 15)
    number = number >> 4
    content = bytearray()
    while number:
        content.append(first | 0x80)
        first = number & 0x7F
        number = number >> 7
    content.append(first)
    return bytes(content)


def _varint(number: int) -> bytes:
    content = bytearray()
    while number >= 0x80:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)


def _blob(content: bytes, *, level: int = 9) -> bytes:
    return _size(len(content), _BLOB) + zlib.compress(content, level)


def _growing_deltas() -> tuple[bytes, bytes]:
    """Return a blob of 16 MiB in a few kilobytes, and a delta that makes 64 GiB of it in as many."""
    base = b"x" * 0xFFFFFF
    identity = hashlib.sha1(b"blob %d\0" % len(base) + base, usedforsecurity=False).digest()
    copy = b"\xf0\xff\xff\xff"  # from the start of the base, 0xffffff bytes
    delta = _varint(len(base)) + _varint(len(base) * _COPIES) + copy * _COPIES
    return _blob(base), _size(len(delta), _REF_DELTA) + identity + zlib.compress(delta, 9)


PACKS: dict[str, Answer] = {
    "endless references": _endless_references,
    "many references": _many_references,
    "drip of references": _drip_of_references,
    "endless pack": _pack(b"", _blob(bytes(range(256)) * 1024, level=0)),
    "endless small objects": _pack(b"", b"".join(_blob(b"%d" % number, level=1) for number in range(5000))),
    "blobs of zeros": _pack(b"", _blob(bytes(256 << 20))),
    "growing deltas": _pack(*_growing_deltas()),
    "drip of a pack": _pack(b"", b"x", pause=1),
    **{
        name: ANSWERS[name]
        for name in (
            "gzip bomb",
            "endless headers",
            "huge header",
            "redirects",
            "redirect inside",
            "provisional answers",
            "silence",
            "hangs up",
            "noise",
        )
    },
}
"""The behaviours of a Git host, by names for people."""
