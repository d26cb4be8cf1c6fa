"""Streams of the page: snapshot, patches, resumption, heartbeats, limits, authorisation and shutdown."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from http import HTTPStatus

import aiohttp
import pytest

from kardinal.promotion.kinds import BUNDLE, PIPELINE
from kardinal_controller.ui import stream
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.world import World
from tests.ui.served import follow, start_page

REPOSITORY = "https://git.example.com/acme/gitops.git"
OTHER = f"{TEAM}-other"


def search() -> dict[str, object]:
    return pipeline(REPOSITORY, environments=[DEV, PROD], provider="git")


async def test_bundle_walks_while_the_overview_is_open(world: World, session: aiohttp.ClientSession) -> None:
    agent = ScriptedAgent(world)
    await start_controller(world, standalone=False)
    page = await start_page(world)
    async with (
        follow(session, f"{page.api}/stream/overview") as overview,
        follow(session, f"{page.api}/stream/overview", headers={"Accept-Encoding": "identity"}) as plain,
    ):
        await world.until(lambda: overview.document == {"rows": {}, "notices": {}})
        await world.apply(search())
        await world.until(lambda: f"{TEAM}/my-app" in overview.document["rows"])

        await world.apply(bundle("my-app-1"))
        await agent.verify(f"my-app-1-{DEV}")
        row = await world.until(
            lambda: (
                overview.document["rows"][f"{TEAM}/my-app"]
                if overview.document["rows"][f"{TEAM}/my-app"]["environments"][DEV]["state"]["name"] == "Verified"
                else None
            )
        )

        assert row["bundle"] == "my-app-1"
        # One snapshot with the Pipeline of a namespace that was not known before, then patches alone.
        kinds = [event["event"] for event in overview.events]
        assert kinds.count("complete") == 2
        assert kinds[-1] == "patch"
        assert plain.content == overview.content

        await world.delete(PIPELINE, "my-app")
        await world.until(lambda: overview.document["rows"] == {})


async def test_viewer_that_comes_back_gets_what_it_missed(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(search())
    page = await start_page(world)
    async with follow(session, f"{page.api}/stream/overview") as first:
        await world.until(lambda: first.last_id)
    await world.apply(bundle("my-app-1"))
    await world.live(timedelta(seconds=1))

    async with (
        follow(session, f"{page.api}/stream/overview", headers={"Last-Event-ID": first.last_id}) as resumed,
        follow(session, f"{page.api}/stream/overview", headers={"Last-Event-ID": "0ther-1"}) as elsewhere,
    ):
        await world.until(lambda: resumed.events and elsewhere.last_id)

    assert [event["event"] for event in resumed.events] == ["patch"]
    assert [event["event"] for event in elsewhere.events] == ["snapshot", "complete"]


async def test_viewers_of_one_document_share_it(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(search(), bundle("my-app-1"))
    page = await start_page(world)
    url = f"{page.api}/stream/pipelines/{TEAM}/my-app"
    async with follow(session, url) as first, follow(session, url) as second:
        await world.until(lambda: first.last_id and second.last_id)
        assert first.document["shown"] == "my-app-1"
        assert first.content == second.content

        await world.apply(bundle("my-app-2", tag="1.2.0"))
        await world.until(lambda: "my-app-2" in first.document["bundles"])
        await world.settle()

        assert first.content == second.content


async def test_stream_ends_when_its_object_is_gone(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(search(), bundle("my-app-1"))
    page = await start_page(world)
    async with follow(session, f"{page.api}/stream/bundles/{TEAM}/my-app-1") as stream_of_bundle:
        await world.until(lambda: stream_of_bundle.last_id)
        await world.delete(BUNDLE, "my-app-1")
        await world.until(lambda: stream_of_bundle.closed)

    assert stream_of_bundle.events[-1]["event"] == "end"
    assert '"again":false' in stream_of_bundle.events[-1]["data"]


@pytest.mark.virtual_time("a stream of a minute")
async def test_stream_beats_and_ends_with_its_session(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(search())
    page = await start_page(world)
    async with follow(session, f"{page.api}/stream/overview") as overview:
        await world.live(timedelta(seconds=46))
        assert overview.comments == 3

        page.access.ended = "the token has expired"
        await world.until(lambda: overview.closed, within=timedelta(seconds=15))

    assert overview.events[-1] == {"event": "end", "data": '{"reason":"the token has expired","again":true}'}


@pytest.mark.virtual_time("a stream of a minute")
async def test_right_that_is_taken_away_takes_the_rows(world: World, session: aiohttp.ClientSession) -> None:
    await world.apply(search())
    page = await start_page(world)
    async with (
        follow(session, f"{page.api}/stream/overview") as overview,
        follow(session, f"{page.api}/stream/pipelines/{TEAM}/my-app") as document,
    ):
        await world.until(lambda: overview.last_id and document.last_id)
        assert overview.document["rows"]

        page.access.hidden.add(("policygates", TEAM))
        await world.live(timedelta(seconds=61))

        assert overview.document["rows"] == {}
        assert document.closed
        assert "you may not see this any more" in document.events[-1]["data"]


async def test_streams_are_limited_for_each_viewer_and_in_all(
    world: World, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "STREAMS_PER_VIEWER", 2)
    monkeypatch.setattr(stream, "STREAMS", 3)
    page = await start_page(world)
    url = f"{page.api}/stream/overview"
    async with AsyncExitStack() as stack:
        for viewer in ("ada", "ada", "bob"):
            await stack.enter_async_context(follow(session, url, headers={"X-Viewer": viewer}))
        async with session.get(url, headers={"X-Viewer": "eve"}) as refused:
            assert refused.status == HTTPStatus.SERVICE_UNAVAILABLE
            assert refused.headers["Retry-After"] == "10"
    # A stream whose viewer has left counts no more, before any event could tell.
    async with follow(session, url), follow(session, url), session.get(url) as refused:
        assert (await refused.json())["message"] == "you have 2 pages open"


async def test_streams_end_at_once_at_shutdown(world: World, session: aiohttp.ClientSession) -> None:
    page = await start_page(world)
    async with follow(session, f"{page.api}/stream/overview") as overview:
        await world.until(lambda: overview.last_id)
        await world.stop(page)
        await world.until(lambda: overview.closed)

    assert overview.events[-1] == {"event": "end", "data": '{"reason":"the server stops","again":true}'}
