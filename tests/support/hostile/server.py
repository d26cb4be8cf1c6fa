"""Serve hostile answers over HTTP and HTTPS on loopback, and honest repositories beside them.

    python -m tests.support.hostile.server ROOT CERTIFICATE SEED

The first part of a path that names a behaviour decides (`/v2/gzip-bomb/app/manifests/1`), and where there is none, the
address: each behaviour has one. A repository `ROOT/gzip-bomb/app.git` is served by `git http-backend`, and everything
else as its behaviour does. The process says on standard output where it listens, answers every line of
standard input with the hostile answers so far, by behaviour, and ends with it. `trap` is where no request may arrive.
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import orjson

from kardinal.runtime.process import run
from tests.support.hostile.answers import ANSWERS, Request
from tests.support.hostile.packs import PACKS

__all__ = ["BY_SLUG", "TRAP", "address", "slug"]

TRAP = "trap"
OTHER = "other"
_HEAD = 1 << 18
_GIT_SETTINGS = (("http.receivepack", "true"), ("uploadpack.allowFilter", "true"), ("receive.autogc", "false"))


def slug(behaviour: str) -> str:
    """Return a name as it stands in paths, names of repositories and of resources."""
    return behaviour.lower().replace(" ", "-")


def address(behaviour: str) -> str:
    """Return the address of this machine at which a server has one behaviour."""
    return f"127.0.1.{list(BY_SLUG).index(slug(behaviour)) + 1}"


BY_SLUG = {slug(name): name for name in (*ANSWERS, *PACKS)}
BY_ADDRESS = {address(name): found for found, name in BY_SLUG.items()}


class Server:
    """Counts requests by behaviour and answers them."""

    def __init__(self, root: Path, *, seed: int) -> None:
        self._root = root
        self._seed = seed
        self.requests: Counter[str] = Counter()
        self.trap = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, RuntimeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            await self._answer(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, path, headers = _parsed(await reader.readuntil(b"\r\n\r\n"))
        if "100-continue" in headers.get("expect", ""):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await _body(reader, headers)
        parts = path.partition("?")[0].split("/")
        own = BY_ADDRESS.get(headers.get("host", "").partition(":")[0], OTHER)
        found = next((part for part in parts if part in (*BY_SLUG, TRAP) or part.startswith("of-")), own)
        repository = self._root / found / "app.git"
        if parts[1] == found and repository.is_dir() and parts[2:3] == ["app.git"]:
            writer.write(await self._git(method, path, headers, body))
            await writer.drain()
            return
        self.requests[found] += 1
        name = BY_SLUG.get(found)
        if name is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        number = self.requests[found]
        chosen = random.Random(f"{self._seed} {found} {number}")
        request = Request(path, number, headers, body, writer, chosen, self.trap)
        is_git = parts[-1] in ("refs", "git-upload-pack", "git-receive-pack")
        await (PACKS if is_git and name in PACKS else ANSWERS | PACKS)[name](request)

    async def _git(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *("git", "http-backend"),
            env=self._environment(method, path, headers, len(body)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        answer, _ = await process.communicate(body)
        head, _, content = answer.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().splitlines())
        status = lines.pop("Status", "200 OK")
        told = [f"{name}: {value}" for name, value in lines.items()]
        told += [f"Content-Length: {len(content)}", "Connection: close", "", ""]
        return f"HTTP/1.1 {status}\r\n".encode() + "\r\n".join(told).encode() + content

    def _environment(self, method: str, path: str, headers: dict[str, str], length: int) -> dict[str, str]:
        settings = {"GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS)), "GIT_CONFIG_NOSYSTEM": "1"}
        for number, (key, value) in enumerate(_GIT_SETTINGS):
            settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        place, _, query = path.partition("?")
        return settings | {
            "PATH": os.environ["PATH"],
            "HOME": str(self._root),
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": place,
            "QUERY_STRING": query,
            "REQUEST_METHOD": method,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "REMOTE_USER": "robot",
            "REMOTE_ADDR": "127.0.0.1",
        }


def _parsed(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    return method, path, {name.lower(): value.strip() for name, _, value in pairs}


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "chunked" not in headers.get("transfer-encoding", ""):
        return await reader.readexactly(int(headers.get("content-length") or 0))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


async def _serve(root: Path, certificate: Path, seed: int) -> None:
    server = Server(root, seed=seed)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    plain = await asyncio.start_server(server.handle, "0.0.0.0", 0, limit=_HEAD, backlog=1024)  # noqa: S104
    secure = await asyncio.start_server(server.handle, "127.0.0.1", 0, limit=_HEAD, ssl=context)
    trap = await asyncio.start_server(server.handle, "127.0.0.1", 0, limit=_HEAD)
    http, https, inside = (each.sockets[0].getsockname()[1] for each in (plain, secure, trap))
    server.trap = f"http://127.0.0.1:{inside}/{TRAP}"
    _say({"http": http, "https": f"127.0.0.1:{https}"})
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        _say(server.requests)
    transport.close()


def _say(value: object) -> None:
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(_serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
