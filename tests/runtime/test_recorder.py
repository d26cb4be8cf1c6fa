"""Events: told once, counted often, and never in anybody's way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from kardinal.kube import Client
from kardinal.runtime import EventRecorder, ResourceRef
from kardinal.runtime.recorder import (
    BURST,
    MAX_PENDING,
    MAX_PENDING_OF_NAMESPACE,
    NAMESPACE_BURST,
    NAMESPACE_REFILL_SECONDS,
)
from tests.runtime.apiserver import WidgetServer, refusal
from tests.runtime.conftest import turns, until
from tests.support.clock import VirtualClock

REF = ResourceRef("example.com/v1", "Widget", "default", "a", "u1")


@pytest.fixture
def dropped() -> Counter[str]:
    return Counter()


@pytest.fixture
async def recorder(client: Client, clock: VirtualClock, dropped: Counter[str]) -> AsyncIterator[EventRecorder]:
    made = EventRecorder(client, clock=clock, controller="test", dropped=lambda reason: dropped.update([reason]))
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_event_says_what_the_api_requires(
    server: WidgetServer, recorder: EventRecorder, clock: VirtualClock
) -> None:
    recorder.event(REF, type="Warning", reason="Broken", note="it broke", action="Fix")
    assert not recorder.idle
    await until(lambda: recorder.idle)
    ((verb, path, body),) = server.writes
    assert (verb, path) == ("post", "/apis/events.k8s.io/v1/namespaces/default/events")
    name = body.pop("metadata")["name"]
    assert name.startswith("a.")
    instance = body.pop("reportingInstance")
    assert instance.startswith("test-")
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-03-03T10:00:00.000000Z",
        "type": "Warning",
        "reason": "Broken",
        "note": "it broke",
        "action": "Fix",
        "regarding": {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "namespace": "default",
            "name": "a",
            "uid": "u1",
        },
        "reportingController": "test",
    }


async def test_event_on_a_cluster_scoped_object_is_in_the_default_namespace(
    server: WidgetServer, recorder: EventRecorder
) -> None:
    recorder.event({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, reason="R", note="n")
    await until(lambda: recorder.idle)
    body = server.writes[0][2]
    assert body["metadata"]["namespace"] == "default"
    assert "namespace" not in body["regarding"]
    assert body["action"] == "R"


async def test_repeated_event_is_one_object_with_a_count(
    server: WidgetServer, recorder: EventRecorder, clock: VirtualClock
) -> None:
    for _ in range(5):
        recorder.event(REF, reason="R", note="n")
        await until(lambda: recorder.idle)
        clock.skip(1)
    assert [verb for verb, _, _ in server.writes] == ["post", "patch", "patch", "patch", "patch"]
    assert len({path for verb, path, _ in server.writes if verb == "patch"}) == 1
    assert server.writes[-1][2] == {"series": {"count": 5, "lastObservedTime": "2026-03-03T10:00:04.000000Z"}}


async def test_event_repeated_before_its_write_is_written_once(server: WidgetServer, recorder: EventRecorder) -> None:
    for _ in range(9):
        recorder.event(REF, reason="R", note="n")
    await until(lambda: recorder.idle)
    ((_, _, body),) = server.writes
    assert body["series"]["count"] == 9


async def test_another_note_is_another_event(server: WidgetServer, recorder: EventRecorder) -> None:
    for note in ("one", "two"):
        recorder.event(REF, reason="R", note=note)
    await until(lambda: recorder.idle)
    assert len({body["metadata"]["name"] for _, _, body in server.writes}) == 2


async def test_a_series_of_an_earlier_process_is_continued(server: WidgetServer, recorder: EventRecorder) -> None:
    server.fail_next("post", refusal(409, "AlreadyExists"))

    async def existing(_: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Event", "metadata": {"name": "x"}, "series": {"count": 4}})

    server.fail_next("list", existing)
    recorder.event(REF, reason="R", note="n")
    await until(lambda: recorder.idle)
    assert [verb for verb, _, _ in server.writes] == ["patch"]
    assert server.writes[0][2]["series"]["count"] == 5


async def test_a_series_whose_object_has_expired_begins_anew(
    server: WidgetServer, recorder: EventRecorder, clock: VirtualClock
) -> None:
    recorder.event(REF, reason="R", note="n")
    await until(lambda: recorder.idle)
    clock.skip(7200)
    server.fail_next("patch", refusal(404, "NotFound"))
    recorder.event(REF, reason="R", note="n")
    await until(lambda: recorder.idle)
    verb, _, body = server.writes[-1]
    assert (verb, body["eventTime"], "series" in body) == ("post", "2026-03-03T12:00:00.000000Z", False)


async def test_an_object_that_has_much_to_say_is_throttled_and_others_are_not(
    server: WidgetServer, recorder: EventRecorder, clock: VirtualClock, dropped: Counter[str]
) -> None:
    for number in range(BURST + 10):
        recorder.event(REF, reason="R", note=str(number))
    recorder.event(ResourceRef("example.com/v1", "Widget", "default", "b"), reason="R", note="n")
    await until(lambda: recorder.idle)
    assert len(server.writes) == BURST + 1
    assert dropped == {"throttled": 10}
    clock.skip(300)
    recorder.event(REF, reason="R", note="later")
    await until(lambda: recorder.idle)
    assert len(server.writes) == BURST + 2


async def test_a_full_recorder_drops_and_counts_and_never_waits(
    server: WidgetServer, recorder: EventRecorder, clock: VirtualClock, dropped: Counter[str]
) -> None:
    await server.stop()
    for number in range(MAX_PENDING + 7):
        namespace = f"team-{number % 5}"
        recorder.event(ResourceRef("example.com/v1", "Widget", namespace, str(number)), reason="R", note="n")
    assert dropped == {"queue_full": 7}


async def test_a_namespace_has_a_quarter_of_what_may_wait(
    server: WidgetServer, recorder: EventRecorder, dropped: Counter[str]
) -> None:
    await server.stop()
    for number in range(MAX_PENDING_OF_NAMESPACE + 7):
        recorder.event(ResourceRef("example.com/v1", "Widget", "default", str(number)), reason="R", note="n")
    assert dropped == {"queue_full": 7}
    recorder.event(ResourceRef("example.com/v1", "Widget", "other", "a"), reason="R", note="n")
    assert dropped == {"queue_full": 7}


async def test_namespaces_are_written_in_turn(server: WidgetServer, recorder: EventRecorder) -> None:
    for namespace, count in (("loud", 20), ("quiet", 2)):
        for number in range(count):
            recorder.event(ResourceRef("example.com/v1", "Widget", namespace, str(number)), reason="R", note="n")
    await until(lambda: recorder.idle)
    written = [path.split("/")[5] for _, path, _ in server.writes]
    assert written[:5] == ["loud", "quiet", "loud", "quiet", "loud"]
    assert len(written) == 22


async def test_the_budget_of_a_namespace_comes_back(
    server: WidgetServer, recorder: EventRecorder, clock: VirtualClock, dropped: Counter[str]
) -> None:
    async def tell(objects: range) -> None:
        for number in objects:
            recorder.event(ResourceRef("example.com/v1", "Widget", "loud", str(number)), reason="R", note="n")
            await until(lambda: recorder.idle)

    await tell(range(NAMESPACE_BURST + 10))
    assert (len(server.writes), dropped) == (NAMESPACE_BURST, {"throttled": 10})
    clock.skip(10 * NAMESPACE_REFILL_SECONDS)
    await tell(range(1000, 1020))
    assert len(server.writes) == NAMESPACE_BURST + 10


async def test_a_server_that_comes_back_hears_what_happened(
    server: WidgetServer, recorder: EventRecorder, clock: VirtualClock
) -> None:
    await server.stop()
    recorder.event(REF, reason="R", note="n")
    # What waits for a server does not keep a world from resting.
    await until(lambda: clock.timers)
    assert recorder.idle
    await server.start()
    clock.advance_to_next_timer()
    await until(lambda: server.writes)


async def test_an_event_the_server_refuses_is_dropped_and_the_next_one_written(
    server: WidgetServer, recorder: EventRecorder, dropped: Counter[str]
) -> None:
    server.fail_next("post", refusal(403, "Forbidden"))
    recorder.event(REF, reason="R", note="refused")
    recorder.event(REF, reason="R", note="fine")
    await until(lambda: recorder.idle)
    assert dropped == {"refused": 1}
    assert [body["note"] for _, _, body in server.writes] == ["fine"]


async def test_a_long_note_is_cut_between_characters(server: WidgetServer, recorder: EventRecorder) -> None:
    recorder.event(REF, reason="R", note="é" * 1000)
    await until(lambda: recorder.idle)
    assert server.writes[0][2]["note"] == "é" * 512


async def test_the_names_of_events_depend_on_their_content_alone(client: Client, clock: VirtualClock) -> None:
    names = set()
    for _ in range(2):
        made = EventRecorder(client, clock=clock, controller="test", dropped=lambda _: None)
        made.event(REF, reason="R", note="n")
        content = made._pending.first()
        assert content is not None
        names.add(content.name)
        clock.skip(60)
    assert len(names) == 1


async def test_recorded_events_are_written_before_the_end(
    server: WidgetServer, recorder: EventRecorder, dropped: Counter[str]
) -> None:
    for number in range(10):
        recorder.event(REF, reason="R", note=str(number))
    await recorder.flush()
    assert len(server.writes) == 10
    assert dropped == {}


async def test_the_end_does_not_wait_for_a_server_that_is_gone(
    server: WidgetServer,
    recorder: EventRecorder,
    dropped: Counter[str],
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kardinal.runtime.recorder.FLUSH_SECONDS", 0.02)
    await server.stop()
    recorder.event(REF, reason="R", note="n")
    await turns()
    await recorder.flush()
    assert dropped == {"shutdown": 1}
