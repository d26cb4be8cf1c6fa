"""Answer the health endpoints `/livez`, `/readyz` and `/healthz`.

A plane may be held while what it is started for is still being installed: until it is released, the latter two answer
as those of a real server with a failing check, so that a script that waits for `/readyz` does not go on too early.
Everything else is answered all the same.
"""

from __future__ import annotations

from aiohttp import web

__all__ = ["Health"]

_NAMES = {"/readyz": "readyz", "/healthz": "healthz"}
"""The endpoints that fail while the plane is held, and their names in the answer."""


class Health:
    """The health of one plane; `held` until what it is started for is there."""

    def __init__(self, *, held: bool) -> None:
        self._held = held

    def release(self) -> None:
        """Answer from now on that the plane is ready."""
        self._held = False

    def answer(self, path: str) -> web.Response:
        """Return the answer of the health endpoint `path`."""
        name = _NAMES.get(path)
        if not self._held or name is None:
            return web.Response(text="ok")
        text = f"[+]ping ok\n[-]hold failed: reason withheld\n{name} check failed\n"
        return web.Response(status=500, text=text, headers={"X-Content-Type-Options": "nosniff"})
