"""Long texts of strangers do not keep a list of pull requests from being read."""

from __future__ import annotations

import pytest
from aiohttp import web

from kardinal.scm import PullRequests, RequestRefused
from kardinal.scm.http import client
from tests.scm.test_host_client import PULL, FaultyHost, host, pulls

__all__ = ["host", "pulls"]


def of(count: int, length: int) -> list[dict[str, object]]:
    """Return open pull requests, each with a text of this length."""
    return [{**PULL, "number": number, "body": "x" * length} for number in range(1, count + 1)]


def listing(host: FaultyHost, items: list[dict[str, object]]) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        size = int(request.query["limit"])
        page = int(request.query["page"])
        more = len(items) > page * size
        headers = {"Link": f'<{host.url}?page={page + 1}>; rel="next"'} if more else {}
        return web.json_response(items[(page - 1) * size : page * size], headers=headers)

    host.answer = answer


async def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones(
    host: FaultyHost, pulls: PullRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_BODY", 2**20)
    listing(host, of(53, 60_000))
    assert [one.number for one in await pulls.heads()] == list(range(1, 54))
    asked = [(request.query["limit"], request.query["page"]) for request in host.requests]
    assert asked == [("50", "1"), ("10", "1"), ("10", "2"), ("10", "3"), ("10", "4"), ("10", "5"), ("10", "6")]


async def test_one_item_that_is_too_large_is_given_up(
    host: FaultyHost, pulls: PullRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_BODY", 2**20)
    listing(host, of(1, 2**20))
    with pytest.raises(RequestRefused, match="larger than 1 MiB"):
        await pulls.heads()
    assert [request.query["limit"] for request in host.requests] == ["50", "10", "2", "1"]
