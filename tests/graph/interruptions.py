"""A client that fails where a test wants it to: its writes are refused, or it ends with its program after one of them.

Both happen between the program and the server, so that they are the same beside the local plane and a real server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from kardinal.kube import Client, ConnectionFailed
from kardinal.kube.errors import error_from_response

__all__ = ["before_write", "cut_after", "refuse"]

_NO_WRITE = re.compile(r"/(events|selfsubjectaccessreviews|subjectaccessreviews)\b")


def refuse(client: Client, refuses: Callable[[str, str], bool], *, status: int = 503) -> None:
    """Answer with a status to the requests, by method and path, that `refuses` says yes to."""
    request = client._transport.request

    async def refusing(method: str, path: str, **options: Any) -> Any:
        if refuses(method, path):
            raise error_from_response(status, b"")
        return await request(method, path, **options)

    _replace(client, refusing)


def before_write(client: Client, number: int, act: Callable[[], Awaitable[None]]) -> asyncio.Event:
    """Let something happen while the write of a program with this number, from 0, is on its way; return whether it did.

    Counted as in `cut_after`.
    """
    request = client._transport.request
    reached = asyncio.Event()
    left = number

    async def interrupted(method: str, path: str, **options: Any) -> Any:
        nonlocal left
        if method != "GET" and not _NO_WRITE.search(path):
            left -= 1
            if left == -1:
                await act()
                reached.set()
        return await request(method, path, **options)

    _replace(client, interrupted)
    return reached


def cut_after(client: Client, writes: int) -> asyncio.Event:
    """Let no write of a program pass after its n-th, which is carried out without an answer; return whether it came.

    So nothing is left of the program but what the server has, as if it had been killed. Events and questions about
    rights change no object and are not counted.
    """
    request = client._transport.request
    reached = asyncio.Event()
    left = writes

    async def cut(method: str, path: str, **options: Any) -> Any:
        nonlocal left
        if method == "GET" or _NO_WRITE.search(path):
            return await request(method, path, **options)
        left -= 1
        if left < 0:
            raise ConnectionFailed("the program has ended")
        answer = await request(method, path, **options)
        if left > 0:
            return answer
        reached.set()
        raise ConnectionFailed("the program has ended")

    _replace(client, cut)
    return reached


def _replace(client: Client, request: Callable[..., Any]) -> None:
    setattr(client._transport, "request", request)  # noqa: B010 - a method of this one connection
