"""The feed: what changes with time, what is shared, and what one bad object or many Bundles may do to the rest."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import aiohttp
import pytest

from kardinal.objects import Key
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal.promotion.views.reading import SLICE, bundles_of
from kardinal_controller.ui import feed as feed_module
from kardinal_controller.ui.decoded import DecodedBundles
from kardinal_controller.ui.documents import pipeline_row
from kardinal_controller.ui.feed import FeedSubject
from kardinal_controller.ui.model import PipelineRow
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World
from tests.ui.served import follow, start_page

REPOSITORY = "https://git.example.com/acme/gitops.git"


def app(name: str = "my-app", environment: str = DEV) -> dict[str, object]:
    return pipeline(REPOSITORY, name=name, environments=[environment], provider="git")


@pytest.mark.local_only("a soak of ten minutes, by the clock of the API server")
async def test_sentence_changes_at_its_time_without_any_event(world: World, session: aiohttp.ClientSession) -> None:
    agent = ScriptedAgent(world)
    await start_controller(world, standalone=False)
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV, PROD], provider="git"),
        gate("soak", "bundle.upstreamSoakMinutes >= 10", applies_to=PROD, namespace=POLICIES),
        bundle("my-app-1"),
    )
    await agent.verify(f"my-app-1-{DEV}")
    await world.wait_for(POLICY_GATE, f"my-app-1-{PROD}-soak", lambda obj: obj.get("status", {}).get("ready") is False)
    page = await start_page(world)
    async with follow(session, f"{page.api}/stream/overview") as overview:
        await world.until(lambda: overview.last_id)
        assert "until" in overview.document["rows"][f"{TEAM}/my-app"]["why"]

        await world.live(timedelta(minutes=11))

        await world.until(lambda: "until" not in overview.document["rows"][f"{TEAM}/my-app"]["why"])


async def test_row_that_cannot_be_computed_keeps_no_other_from_its_viewers(
    world: World, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, logged_bugs: list[str]
) -> None:
    right = pipeline_row

    def failing(objects: object, **given: object) -> PipelineRow:
        row = right(objects, **given)  # type: ignore[arg-type]
        if row.name == "bad":
            raise ZeroDivisionError
        return row

    monkeypatch.setattr(feed_module, "pipeline_row", failing)
    await world.apply(app("bad", "bad-dev"), app("good", "good-dev"))
    page = await start_page(world)
    async with follow(session, f"{page.api}/stream/overview") as overview:
        await world.until(lambda: overview.last_id)
        assert set(overview.document["rows"]) == {f"{TEAM}/good"}

        await world.apply(bundle("good-1", pipeline="good"))
        await world.until(lambda: overview.document["rows"][f"{TEAM}/good"].get("bundle") == "good-1")
    assert logged_bugs
    logged_bugs.clear()


async def test_document_is_computed_once_for_all_who_look_and_not_after_they_left(
    world: World, session: aiohttp.ClientSession
) -> None:
    await world.apply(app(), bundle("my-app-1"))
    page = await start_page(world)
    await world.settle()
    feed = page.page.feed
    subject = FeedSubject("Pipeline", Key(TEAM, "my-app"))
    computed = 0

    async def compute() -> PipelineRow:
        nonlocal computed
        computed += 1
        objects = await feed.objects(TEAM, "my-app")
        return pipeline_row(objects, now=world.clock.now())

    async with feed.watched(subject, "x", compute) as first, feed.watched(subject, "x", compute) as second:
        assert first is second
        assert computed == 1
        await world.apply(bundle("my-app-2", tag="1.2.0"))
        await world.until(lambda: first.content["newest"] == "1.2.0")
        assert computed == 2
    await world.apply(bundle("my-app-3", tag="1.3.0"))
    await world.live(timedelta(seconds=1))
    assert computed == 2


async def test_a_bundle_is_decoded_again_only_when_it_changed(world: World) -> None:
    await world.apply(app(), bundle("my-app-1"), bundle("my-app-2", tag="1.2.0"))
    page = await start_page(world)
    feed = page.page.feed
    before = {each.metadata.name: each for each in (await feed.objects(TEAM, "my-app")).bundles}

    await world.client.patch(BUNDLE, "my-app-1", TEAM, {"metadata": {"labels": {"seen": "1"}}})
    await world.settle()
    after = {each.metadata.name: each for each in (await feed.objects(TEAM, "my-app")).bundles}
    assert after["my-app-1"].metadata.labels["seen"] == "1"
    assert after["my-app-2"] is before["my-app-2"]

    await world.client.delete(BUNDLE, "my-app-2", TEAM)
    await world.settle()
    await world.apply(bundle("my-app-2", tag="1.3.0"))
    await world.settle()
    again = (await feed.objects(TEAM, "my-app")).bundles[0]
    assert again.metadata.uid != before["my-app-2"].metadata.uid


def test_decoded_bundles_are_bounded_and_those_asked_for_last_stay() -> None:
    decoded = DecodedBundles(most=2)
    stored = [bundle(f"my-app-{number}") for number in range(3)]
    for number, each in enumerate(stored):
        each["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "1"}
    first, second = (decoded.decode(each) for each in stored[:2])
    assert decoded.decode(stored[0]) is first
    decoded.decode(stored[2])
    assert decoded.decode(stored[0]) is first
    assert decoded.decode(stored[1]) is not second


async def test_many_bundles_are_computed_while_the_loop_runs(
    world: World, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "LARGE", 2)
    on_threads = 0
    to_thread = asyncio.to_thread

    async def counted(*args: object) -> object:
        nonlocal on_threads
        on_threads += 1
        return await to_thread(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "to_thread", counted)
    await world.apply(app(), *(bundle(f"my-app-{number}", tag=f"1.{number}.0") for number in range(4)))
    page = await start_page(world)
    async with session.get(f"{page.api}/pipelines/{TEAM}/my-app") as answer:
        assert len((await answer.json())["bundles"]) == 4
    assert on_threads >= 2


async def test_event_loop_runs_while_thousands_of_bundles_are_read() -> None:
    stored = [{**bundle(f"my-app-{number}"), "status": {}} for number in range(200)]
    for number, item in enumerate(stored):
        item["metadata"] |= {"uid": str(number), "creationTimestamp": "2026-11-27T00:00:00Z"}

    class _Stored:
        async def bundles(self, namespace: str, pipeline: str | None = None) -> list[dict[str, object]]:
            return stored

    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        found = await bundles_of(_Stored(), TEAM, "my-app")  # type: ignore[arg-type]
    finally:
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)

    assert len(found) == 200
    assert turns >= 200 // SLICE
