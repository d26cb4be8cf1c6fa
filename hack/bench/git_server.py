"""Serve the bare repositories of a directory over HTTP on loopback, by `git http-backend`.

    python -m hack.bench.git_server DIRECTORY

It is a separate process, so that its CPU time is not counted for the programs under test. Every client may read and
write. It prints its URL on standard output, and ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import orjson
from aiohttp import web

from kardinal.runtime.process import run

_LARGEST = 64 << 20
"""The maximum size of a request in bytes."""
_SETTINGS = (("http.receivepack", "true"), ("uploadpack.allowFilter", "true"), ("receive.autogc", "false"))
"""The Git settings of a host, which collects garbage at other times."""


class _Server:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request by running `git http-backend` as a CGI program."""
        asked = await request.read()
        process = await asyncio.create_subprocess_exec(
            *("git", "http-backend"),
            env=self._environment(request),
            stdin=asyncio.subprocess.PIPE if asked else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        answer, _ = await process.communicate(asked or None)
        head, _, content = answer.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        status = int(headers.pop("Status", "200").split()[0])
        return web.Response(status=status, headers=headers, body=content)

    def _environment(self, request: web.Request) -> dict[str, str]:
        settings = {"GIT_CONFIG_COUNT": str(len(_SETTINGS)), "GIT_CONFIG_NOSYSTEM": "1"}
        for number, (key, value) in enumerate(_SETTINGS):
            settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return settings | {
            "PATH": os.environ["PATH"],
            "HOME": str(self._directory),
            "GIT_PROJECT_ROOT": str(self._directory),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": "" if request.content_length is None else str(request.content_length),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }


async def _serve(directory: Path) -> None:
    server = _Server(directory)
    application = web.Application(client_max_size=_LARGEST)
    application.router.add_route("*", "/{path:.*}", server.answer)
    # Git compresses its requests itself, and `git http-backend` decompresses them.
    runner = web.AppRunner(application, access_log=None, auto_decompress=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(orjson.dumps({"url": f"http://{host}:{port}"}).decode() + "\n")
    sys.stdout.flush()
    await _until_input_ends()
    await runner.cleanup()


async def _until_input_ends() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    transport.close()


if __name__ == "__main__":
    run(_serve(Path(sys.argv[1])))
