"""The files of the page: from memory alone, below any path, and a page that says how to build them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import aiohttp
from aiohttp import web
from yarl import URL

from kardinal.runtime.listener import Listener
from kardinal.runtime.routes import add_routes
from kardinal_controller.ui.assets import Assets

INDEX = '<!doctype html><head><base href="/ui/" /></head>'


@asynccontextmanager
async def served(directory: Path, *, base_path: str = "") -> AsyncIterator[str]:
    app = web.Application()
    add_routes(app.router, [Assets(directory=directory, base_path=base_path).group()])
    listener = Listener(most=8)
    url = await listener.start(app, "127.0.0.1:0")
    try:
        yield url
    finally:
        await listener.stop()


def build(directory: Path) -> None:
    (directory / "assets").mkdir(parents=True)
    (directory / "index.html").write_text(INDEX)
    (directory / "assets" / "index-1f2e.js").write_text("let page;\n" * 100)
    (directory.parent / "secret").write_text("secret")


async def test_every_path_is_the_page_and_hashed_files_are_kept(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    build(tmp_path / "built")
    async with served(tmp_path / "built") as url:
        for path in ("/ui/", "/ui/pipelines/shop/search.v2", "/ui/pipelines/shop/x.js", "/ui/bundles/shop.css/x.svg"):
            async with session.get(f"{url}{path}") as answer:
                assert (answer.status, answer.content_type) == (HTTPStatus.OK, "text/html"), path
                assert (await answer.text(), answer.headers["Cache-Control"]) == (INDEX, "no-cache")
        async with session.get(f"{url}/ui/assets/index-1f2e.js") as answer:
            assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
            assert answer.headers["Content-Encoding"] == "gzip"
            assert answer.content_type == "text/javascript"
            assert (await answer.text()).startswith("let page;")
        async with session.get(f"{url}/", allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/ui/"


async def test_no_path_reaches_other_files(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    build(tmp_path / "built")
    async with served(tmp_path / "built") as url:
        for path in (
            "assets/../../secret",
            "assets/%2e%2e/%2e%2e/secret",
            "assets//etc/passwd",
            "assets/x.js",
            "x/../../secret",
        ):
            async with session.get(URL(f"{url}/ui/{path}", encoded=True)) as answer:
                assert "secret" not in await answer.text(), path
                is_asset = path.startswith("assets/")
                assert answer.status == (HTTPStatus.NOT_FOUND if is_asset else HTTPStatus.OK), path


async def test_page_knows_the_path_below_which_it_is_served(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    build(tmp_path / "built")
    async with served(tmp_path / "built", base_path="/kardinal") as url, session.get(f"{url}/kardinal/ui/") as answer:
        assert '<base href="/kardinal/ui/" />' in await answer.text()


async def test_page_that_is_not_built_says_how_and_reloads(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    async with served(tmp_path / "built") as url:
        async with session.get(f"{url}/ui/") as answer:
            text = await answer.text()
            assert "make ui" in text
            # A refresh by HTML would not load a page again whose address has a fragment, as the link with its code.
            assert '<script src="/ui/reload.js" defer></script>' in text
        async with session.get(f"{url}/ui/reload.js") as answer:
            assert answer.content_type == "text/javascript"
            assert "location.reload()" in await answer.text()
        (tmp_path / "building").mkdir()
        async with session.get(f"{url}/ui/") as answer:
            assert "is being built" in await answer.text()
        build(tmp_path / "built")
        async with session.get(f"{url}/ui/") as answer:
            assert await answer.text() == INDEX
