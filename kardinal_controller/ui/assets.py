"""The files of the built page, or a page that says how to build it.

All files are read into memory when they are first asked for, so no path of a request reaches the file system. While
the page is not built each request looks again, and the page that says so reloads itself.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import html
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from aiohttp import web

from kardinal.runtime.routes import HttpRoute, RouteGroup, unauthenticated
from kardinal_controller.ui.access.refusal import Refusal

__all__ = ["BUILT", "Assets"]

BUILT = Path(__file__).parent / "page" / "built"
BUILDING = "building"
"""The directory beside the built page while it is built."""
LARGEST = 16 << 20
"""The most bytes of all files together."""
RELOAD_SECONDS = 3

_BASE = '<base href="/ui/"'
_ALWAYS = "public, max-age=31536000, immutable"
_NOT_BUILT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<script src="{script}" defer></script>
<title>kardinal</title>
</head>
<body>
<h1>{title}</h1>
<p>{text} It reloads by itself.</p>
<p>Every state is also shown by: <code>kardinal status</code></p>
</body>
</html>
"""
# A refresh by HTML does not load a page again whose address has a fragment, as that of the link with its code.
_RELOAD = f"setTimeout(() => location.reload(), {RELOAD_SECONDS * 1000});"
_RELOAD_PATH = "reload.js"
# What some systems do not know, or know by another name.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    packed: bytes
    content_type: str
    tag: str


class Assets:
    """The routes below `/ui/`."""

    def __init__(self, *, directory: Path = BUILT, base_path: str = "") -> None:
        self._directory = directory
        self._base_path = base_path
        self._files: Mapping[str, _File] | None = None

    def group(self) -> RouteGroup[None]:
        """Return the routes; the page itself has no content of a viewer, so they need no authentication."""
        path = f"{self._base_path}/ui"
        routes = [
            HttpRoute("GET", f"{path}/{{path:.*}}", self._answer),
            HttpRoute("GET", path, self._redirect),
            HttpRoute("GET", f"{self._base_path}/", self._redirect),
        ]
        return RouteGroup(routes, unauthenticated)

    async def _redirect(self, _: web.Request, __: None) -> web.StreamResponse:
        return web.Response(status=HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": f"{self._base_path}/ui/"})

    async def _answer(self, request: web.Request, _: None) -> web.StreamResponse:
        if self._files is None:
            self._files = await asyncio.to_thread(self._read)
        if self._files is None:
            return await self._say_how(request.match_info["path"])
        path = request.match_info["path"]
        is_asset = path.startswith("assets/")
        found = self._files.get(path)
        if found is None and is_asset:
            raise Refusal(HTTPStatus.NOT_FOUND, "the page has no such file", remedy="Reload the page.")
        if found is None:
            # Every other path is a place in the page, which finds it itself: a Pipeline may be named `x.js`.
            found = self._files["index.html"]
        return _response(request, found, caching=_ALWAYS if is_asset else "no-cache")

    async def _say_how(self, path: str) -> web.Response:
        headers = {"Cache-Control": "no-store"}
        if path == _RELOAD_PATH:
            return web.Response(text=_RELOAD, content_type="text/javascript", headers=headers)
        is_building = await asyncio.to_thread((self._directory.parent / BUILDING).is_dir)
        title = "The page is being built" if is_building else "The page is not built"
        text = "" if is_building else "Build it in the source tree with <code>make ui</code>."
        script = html.escape(f"{self._base_path}/ui/{_RELOAD_PATH}", quote=True)
        content = _NOT_BUILT.format(script=script, title=title, text=text)
        return web.Response(text=content, content_type="text/html", headers=headers)

    def _read(self) -> Mapping[str, _File] | None:
        """Return the files by path, for example `assets/index-1f2e.js`; None if the page is not built."""
        if not (self._directory / "index.html").is_file():
            return None
        files = {}
        size = 0
        for path in sorted(self._directory.rglob("*")):
            if not path.is_file():
                continue
            content = path.read_bytes()
            size += len(content)
            if size > LARGEST:
                raise ValueError(f"the built page has more than {LARGEST:,} bytes")
            name = path.relative_to(self._directory).as_posix()
            if name == "index.html":
                base = html.escape(f"{self._base_path}/ui/", quote=True)
                content = content.replace(_BASE.encode(), f'<base href="{base}"'.encode())
            files[name] = _file(path, content)
        return files


def _file(path: Path, content: bytes) -> _File:
    content_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return _File(
        content, gzip.compress(content, mtime=0), content_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    )


def _response(request: web.Request, file: _File, *, caching: str) -> web.Response:
    headers = {"Cache-Control": caching, "ETag": file.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == file.tag:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    is_packed = "gzip" in request.headers.get("Accept-Encoding", "") and len(file.packed) < len(file.content)
    if is_packed:
        headers["Content-Encoding"] = "gzip"
    body = file.packed if is_packed else file.content
    charset = "utf-8" if file.content_type.startswith("text/") else None
    return web.Response(body=body, content_type=file.content_type, charset=charset, headers=headers)
