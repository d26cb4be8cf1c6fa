"""Informers against a server that has bad days: what arrives, what is noticed, what is asked for again."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from kardinal.kube import Client
from kardinal.objects import Key, ResourceType
from kardinal.runtime.informer import ChangeKind, Event, Informer
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.reflector import WatchScope
from tests.runtime.apiserver import (
    WIDGET,
    Answer,
    WidgetServer,
    bookmark,
    event_line,
    refusal,
    status_object,
    watch_lines,
)
from tests.runtime.conftest import until
from tests.support.clock import VirtualClock


class Heard:
    """The events that a handler was called with."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [(event.change.value, event.key.name) for event in self.events]


@pytest.fixture
def metrics(clock: VirtualClock) -> Metrics:
    return Metrics(clock=clock)


@pytest.fixture
def informer(client: Client, clock: VirtualClock, metrics: Metrics) -> Informer:
    return Informer(client, WatchScope(WIDGET), clock=clock, metrics=metrics.informer("Widget"))


@pytest.fixture
def heard(informer: Informer) -> Heard:
    handler = Heard()
    informer.on_event(handler)
    return handler


@asynccontextmanager
async def running(informer: Informer, *, synced: bool = True) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    try:
        if synced:
            async with asyncio.timeout(5):
                await informer.wait_synced()
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def eventually(condition: Callable[[], object], informer: Informer, clock: VirtualClock) -> None:
    """Wait for `condition`; time passes only while the informer backs off."""
    async with asyncio.timeout(5):
        while not condition():
            if informer.backing_off:
                clock.advance_to_next_timer()
            await asyncio.sleep(0.001)


def restarts(metrics: Metrics, reason: str) -> float:
    labels = {"kind": "Widget", "reason": reason}
    return metrics.registry.get_sample_value("kardinal_watch_restarts_total", labels) or 0.0


async def test_an_empty_collection_is_complete_without_events(informer: Informer, heard: Heard) -> None:
    async with running(informer):
        assert informer.list() == []
        assert heard.events == []


async def test_existing_objects_arrive_as_initial_additions(
    server: WidgetServer, informer: Informer, heard: Heard
) -> None:
    await server.put("a")
    await server.put("b")
    async with running(informer):
        assert heard.lines == [("ADDED", "a"), ("ADDED", "b")]
        assert all(event.initial for event in heard.events)
        await server.put("c")
        await until(lambda: informer.get("default", "c"))
        assert not heard.events[-1].initial
        assert server.verbs() == ["watchlist"]


async def test_changes_and_deletions_follow(server: WidgetServer, informer: Informer, heard: Heard) -> None:
    async with running(informer):
        await server.put("a", spec=1)
        await server.put("a", spec=2)
        await server.remove("a")
        await until(lambda: len(heard.events) == 3)
        assert heard.lines == [("ADDED", "a"), ("UPDATED", "a"), ("DELETED", "a")]
        update = heard.events[1]
        assert update.old is not None
        assert update.new is not None
        assert (update.old["spec"], update.new["spec"]) == (1, 2)
        assert informer.get("default", "a") is None


@pytest.mark.parametrize(("spec", "generation", "shared"), [([1], 1, True), ([2], 1, False), ([True], 2, False)])
async def test_spec_that_did_not_change_stays_the_same_in_memory(
    server: WidgetServer, informer: Informer, spec: list[object], generation: int, shared: bool
) -> None:
    await server.put("a", spec=[1], metadata={"uid": "a", "generation": 1})
    async with running(informer):
        before = informer.list()[0]
        await server.put("a", spec=spec, status="new", metadata={"uid": "a", "generation": generation})
        await until(lambda: "status" in informer.list()[0])
        after = informer.list()[0]
        assert (after["spec"] is before["spec"], repr(after["spec"])) == (shared, repr(spec))
        assert "status" not in before


async def test_managed_fields_are_never_kept(server: WidgetServer, informer: Informer) -> None:
    await server.put("a")
    async with running(informer):
        await server.put("b")
        await until(lambda: informer.get("default", "b"))
        assert all("managedFields" not in obj["metadata"] for obj in informer.list())


async def test_a_server_that_cannot_stream_lists_is_listed_in_pages_and_remembered(
    server: WidgetServer, informer: Informer, heard: Heard
) -> None:
    server.streams_lists = False
    for number in range(1200):
        await server.put(f"w{number}")
    async with running(informer):
        assert len(informer.list()) == len(heard.events) == 1200
        assert server.verbs()[:4] == ["watchlist", "list", "list", "list"]
        assert [request.get("limit") for request in server.requests[1:4]] == ["500"] * 3
        server.forget_history()
        server.fail_next("watch", watch_lines(event_line("ERROR", status_object(410, "Expired"))))
        server.cut_watches()
        await until(lambda: server.verbs().count("list") > 3)
        assert server.verbs().count("watchlist") == 1
        # The second reading names the revision it must not be older than, in one piece.
        again = [request for request in server.requests if request["verb"] == "list"][3]
        assert "limit" not in again
        assert again["resourceVersion"] == str(server.revision)


async def test_a_continue_token_that_expires_leads_to_one_full_list(server: WidgetServer, informer: Informer) -> None:
    server.streams_lists = False
    for number in range(600):
        await server.put(f"w{number}")

    async def page(_: object) -> object:
        server.fail_next("list", refusal(410, "Expired"))
        return server._list(_)  # type: ignore[arg-type]

    server.fail_next("list", page)  # type: ignore[arg-type]
    async with running(informer):
        assert len(informer.list()) == 600
        assert [request.get("limit") for request in server.requests if request["verb"] == "list"] == [
            "500",
            "500",
            None,
        ]


async def test_a_state_that_is_cut_short_is_not_believed(
    server: WidgetServer, informer: Informer, heard: Heard
) -> None:
    await server.put("a")
    server.fail_next("watchlist", watch_lines(event_line("ADDED", await server.put("ghost"))))
    await server.remove("ghost")
    async with running(informer):
        assert heard.lines == [("ADDED", "a")]


async def test_a_clean_end_resumes_from_the_last_revision_without_reading_the_state(
    server: WidgetServer, informer: Informer, heard: Heard
) -> None:
    await server.put("a")
    last = await server.put("b")
    server.fail_next(
        "watchlist",
        watch_lines(
            event_line("ADDED", server.objects["default", "a"]),
            bookmark(11, initial_events_end=True),
            event_line("ADDED", last),
        ),
    )
    async with running(informer):
        await until(lambda: "watch" in server.verbs())
        assert server.requests[1]["resourceVersion"] == last["metadata"]["resourceVersion"]
        assert heard.lines == [("ADDED", "a"), ("ADDED", "b")]


async def test_the_objects_of_a_state_do_not_move_the_revision(server: WidgetServer, informer: Informer) -> None:
    young = await server.put("young")
    server.fail_next("watchlist", watch_lines(event_line("ADDED", young), bookmark(10, initial_events_end=True)))
    async with running(informer):
        assert informer.resource_version == "10"


async def test_a_bookmark_advances_the_revision_and_reaches_no_handler(
    server: WidgetServer, informer: Informer, heard: Heard
) -> None:
    async with running(informer):
        await server.bookmark()
        await until(lambda: informer.has_seen(server.revision))
        assert heard.events == []
        server.cut_watches()
        await until(lambda: server.verbs() == ["watchlist", "watch"])
        assert server.requests[1]["resourceVersion"] == str(server.revision)


async def test_an_expired_revision_leads_to_reading_the_state_and_no_handler_hears_an_error(
    server: WidgetServer, informer: Informer, heard: Heard, metrics: Metrics, clock: VirtualClock
) -> None:
    await server.put("a")
    async with running(informer):
        server.fail_next("watch", watch_lines(event_line("ERROR", status_object(410, "Expired"))))
        server.cut_watches()
        await until(lambda: restarts(metrics, "expired") == 1)
        await server.put("a", spec=1)
        await eventually(lambda: len(heard.events) > 1, informer, clock)
        assert heard.lines == [("ADDED", "a"), ("UPDATED", "a")]
        assert server.verbs() == ["watchlist", "watch", "watchlist"]


@pytest.mark.parametrize("streams_lists", [True, False])
async def test_changes_made_while_the_watch_was_cut_are_noticed(
    server: WidgetServer, informer: Informer, heard: Heard, clock: VirtualClock, streams_lists: bool
) -> None:
    server.streams_lists = streams_lists
    for name in ("kept", "changed", "deleted", "remade"):
        await server.put(name)
    async with running(informer):
        heard.events.clear()
        kept = informer.get("default", "kept")
        old = informer.get("default", "remade")
        await server.stop()
        await server.remove("deleted")
        await server.remove("remade")
        await server.put("remade")
        await server.put("changed", spec=2)
        await server.put("new")
        server.forget_history()
        await server.start()
        await eventually(lambda: informer.has_seen(server.revision), informer, clock)
        assert sorted(heard.lines) == [
            ("ADDED", "new"),
            ("ADDED", "remade"),
            ("DELETED", "deleted"),
            ("DELETED", "remade"),
            ("UPDATED", "changed"),
        ]
        deletions = [event for event in heard.events if event.change is ChangeKind.DELETED]
        assert all(event.final_state_unknown for event in deletions)
        assert old in [event.old for event in deletions]
        assert not any(event.initial for event in heard.events)
        assert informer.get("default", "kept") is kept
        assert informer.get("default", "deleted") is None


async def test_an_object_made_anew_inside_a_stream_is_a_deletion_and_an_addition(
    server: WidgetServer, informer: Informer, heard: Heard
) -> None:
    first = await server.put("a")
    other = {**first, "metadata": {**first["metadata"], "uid": "another", "resourceVersion": "50"}}
    server.fail_next(
        "watchlist",
        watch_lines(event_line("ADDED", first), bookmark(20, initial_events_end=True), event_line("MODIFIED", other)),
    )
    async with running(informer):
        await until(lambda: len(heard.events) == 3)
        assert heard.lines == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_a_throttled_watch_waits_as_told_and_resumes_without_reading_the_state(
    server: WidgetServer, informer: Informer, clock: VirtualClock
) -> None:
    await server.put("a")
    async with running(informer):
        server.fail_next("watch", refusal(429, "TooManyRequests", {"Retry-After": "7"}))
        server.cut_watches()
        await until(lambda: informer.backing_off)
        assert clock.next_deadline == 7.0
        clock.advance_to_next_timer()
        await until(lambda: server.verbs() == ["watchlist", "watch", "watch"])
        assert server.requests[1]["resourceVersion"] == server.requests[2]["resourceVersion"] == "11"


async def test_a_server_that_is_gone_is_tried_again_ever_more_rarely(
    server: WidgetServer, informer: Informer, clock: VirtualClock
) -> None:
    async with running(informer):
        await server.stop()
        waits: list[float] = []
        for _ in range(9):
            await until(lambda: clock.timers)
            assert clock.next_deadline is not None
            waits.append(clock.next_deadline - clock.monotonic())
            clock.advance_to_next_timer()
        expected = [min(0.8 * 2**number, 30.0) for number in range(9)]
        assert all(base <= wait < 2 * base for base, wait in zip(expected, waits, strict=True))
        await server.start()
        await server.put("a")
        await eventually(lambda: informer.get("default", "a"), informer, clock)


async def test_after_two_good_minutes_the_next_failure_counts_as_the_first(
    server: WidgetServer, informer: Informer, clock: VirtualClock
) -> None:
    async with running(informer):
        for _ in range(4):
            server.fail_next("watch", refusal(500, "InternalError"))
        server.cut_watches()
        await eventually(lambda: server.verbs().count("watch") == 5, informer, clock)
        clock.skip(121)
        server.cut_watches()
        # No wait at all: the connection is back before any time passes.
        await until(lambda: server.verbs().count("watch") == 6)
        assert not informer.backing_off


async def test_a_watch_closed_at_once_counts_as_a_failure(
    server: WidgetServer, informer: Informer, metrics: Metrics, clock: VirtualClock
) -> None:
    async with running(informer):
        for _ in range(3):
            server.fail_next("watch", watch_lines())
        server.cut_watches()
        await until(lambda: informer.backing_off)
        assert restarts(metrics, "closed") == 0
        await eventually(lambda: server.verbs().count("watch") == 4, informer, clock)
        assert clock.monotonic() > 0.8


@pytest.mark.parametrize(
    "fault",
    [
        watch_lines(b"<html>sorry</html>\n"),
        watch_lines(event_line("ERROR", status_object(500, "InternalError"))),
        watch_lines(b'{"type":"ADD', cut=True),
        refusal(403, "Forbidden"),
        refusal(404, "NotFound"),
    ],
    ids=["garbage", "error event", "truncated", "forbidden", "kind missing"],
)
async def test_no_answer_of_the_server_ends_an_informer(
    server: WidgetServer, informer: Informer, clock: VirtualClock, fault: Answer
) -> None:
    async with running(informer):
        server.fail_next("watch", fault)
        server.cut_watches()
        await server.put("a")
        await eventually(lambda: informer.get("default", "a"), informer, clock)


async def test_a_revision_from_the_future_leads_to_reading_the_newest_state(
    server: WidgetServer, informer: Informer, heard: Heard, clock: VirtualClock
) -> None:
    await server.put("a")
    await server.put("b")
    async with running(informer):
        # Restored from a backup: the server knows less than we do.
        server.revision = 5
        server.history.clear()
        server.objects.clear()
        await server.put("a")
        causes = [{"reason": "ResourceVersionTooLarge"}]
        server.fail_next("watch", watch_lines(event_line("ERROR", status_object(504, "Timeout", causes=causes))))
        server.cut_watches()
        await eventually(lambda: server.verbs().count("watchlist") == 2, informer, clock)
        await eventually(lambda: informer.get("default", "b") is None, informer, clock)
        assert "resourceVersion" not in server.requests[-1]
        assert informer.resource_version == "6"


async def test_a_server_that_never_says_anything_about_our_revision_is_asked_for_its_own(
    server: WidgetServer, informer: Informer, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal.runtime.reflector.MUTE_WATCH", 0.05)
    monkeypatch.setattr("kardinal.kube.transport.WATCH_SILENCE", 0.1)

    async def mute(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    await server.put("a")
    async with running(informer):
        # Restored from a backup. A plain watch from the future brings nothing, and no error.
        server.revision = 5
        server.objects.clear()
        server.history.clear()
        server.fail_next("watch", mute)
        server.cut_watches()
        await until(lambda: "watch" in server.verbs())
        monkeypatch.setattr("kardinal.kube.transport.WATCH_SILENCE", 75.0)
        await eventually(lambda: informer.get("default", "a") is None, informer, clock)
        states = [request for request in server.requests if request["verb"] == "watchlist"]
        assert "resourceVersion" not in states[-1]


async def test_a_state_that_cannot_be_read_as_of_a_revision_is_read_as_it_is(
    server: WidgetServer, informer: Informer, clock: VirtualClock
) -> None:
    await server.put("a")
    async with running(informer):
        expired = watch_lines(event_line("ERROR", status_object(410, "Expired")))
        server.fail_next("watch", expired)
        server.fail_next("watchlist", expired)
        server.cut_watches()
        await eventually(lambda: server.verbs().count("watchlist") == 3, informer, clock)
        states = [request for request in server.requests if request["verb"] == "watchlist"]
        assert ["resourceVersion" in request for request in states] == [False, True, False]


@pytest.mark.parametrize(
    "fault",
    [
        refusal(410, "Expired"),
        refusal(504, "Timeout", {"Retry-After": "1"}, causes=[{"reason": "ResourceVersionTooLarge"}]),
    ],
    ids=["expired", "too large"],
)
async def test_a_list_at_an_impossible_revision_is_repeated_at_once_for_the_newest(
    server: WidgetServer, informer: Informer, clock: VirtualClock, fault: Answer
) -> None:
    server.streams_lists = False
    async with running(informer):
        await until(lambda: "watch" in server.verbs())
        server.fail_next("watch", watch_lines(event_line("ERROR", status_object(410, "Expired"))))
        server.fail_next("list", fault)
        server.cut_watches()
        await eventually(lambda: server.verbs().count("watch") == 3, informer, clock)
        lists = [request for request in server.requests if request["verb"] == "list"]
        assert ["resourceVersion" in request for request in lists] == [False, True, False]


async def test_an_unknown_kind_of_event_is_ignored(server: WidgetServer, informer: Informer, heard: Heard) -> None:
    odd = {"kind": "Widget", "metadata": {"name": "x", "resourceVersion": "99"}}
    added = {"kind": "Widget", "metadata": {"name": "a", "namespace": "default", "resourceVersion": "100"}}
    server.fail_next(
        "watchlist",
        watch_lines(bookmark(10, initial_events_end=True), event_line("HELLO", odd), event_line("ADDED", added)),
    )
    async with running(informer):
        await until(lambda: heard.lines == [("ADDED", "a")])


async def test_the_watch_is_asked_to_last_between_five_and_ten_minutes(
    server: WidgetServer, informer: Informer, clock: VirtualClock
) -> None:
    async with running(informer):
        for expected in range(1, 12):
            server.cut_watches()
            await eventually(lambda expected=expected: server.verbs().count("watch") == expected, informer, clock)  # type: ignore[misc]
    timeouts = {int(request["timeoutSeconds"]) for request in server.requests}
    assert all(300 <= seconds <= 600 for seconds in timeouts)
    assert len(timeouts) > 1


async def test_selectors_and_the_namespace_are_evaluated_by_the_server(
    server: WidgetServer, client: Client, clock: VirtualClock, metrics: Metrics
) -> None:
    scope = WatchScope(WIDGET, "team-a", "shard=x", "metadata.name=a")
    informer = Informer(client, scope, clock=clock, metrics=metrics.informer("Widget"))
    async with running(informer):
        request = server.requests[0]
        assert request["path"] == "/apis/example.com/v1/namespaces/team-a/widgets"
        assert (request["labelSelector"], request["fieldSelector"]) == ("shard=x", "metadata.name=a")


async def test_a_deletion_of_something_unknown_still_moves_the_revision(
    server: WidgetServer, informer: Informer, heard: Heard
) -> None:
    gone = {"kind": "Widget", "metadata": {"name": "x", "namespace": "default", "resourceVersion": "40"}}
    server.fail_next("watchlist", watch_lines(bookmark(10, initial_events_end=True), event_line("DELETED", gone)))
    async with running(informer):
        await until(lambda: informer.has_seen(40))
        assert heard.events == []


async def test_a_handler_that_comes_late_hears_of_everything_once_and_in_order(
    server: WidgetServer, informer: Informer
) -> None:
    await server.put("a")
    async with running(informer):
        late = Heard()
        informer.on_event(late)
        assert late.lines == [("ADDED", "a")]
        assert late.events[0].initial
        await server.put("a", spec=1)
        await until(lambda: late.lines == [("ADDED", "a"), ("UPDATED", "a")])


async def test_a_handler_that_fails_harms_neither_the_others_nor_the_informer(
    server: WidgetServer, informer: Informer, metrics: Metrics
) -> None:
    def broken(_: Event) -> None:
        raise ValueError("a bug")

    informer.on_event(broken)
    heard = Heard()
    informer.on_event(heard)
    async with running(informer):
        await server.put("a")
        await until(lambda: heard.lines == [("ADDED", "a")])
        assert metrics.registry.get_sample_value("kardinal_event_handler_failures_total", {"kind": "Widget"}) == 1


async def test_indexes_follow_the_stream(server: WidgetServer, informer: Informer) -> None:
    informer.index("spec", lambda obj: [obj["spec"]])
    async with running(informer):
        await server.put("a", spec="red")
        await server.put("b", spec="red")
        await server.put("a", spec="blue")
        await until(lambda: informer.by_index("spec", "blue"))
        assert [obj["metadata"]["name"] for obj in informer.by_index("spec", "red")] == ["b"]


async def test_deleted_object_leaves_nothing_behind(server: WidgetServer, informer: Informer) -> None:
    class Tracked(dict[str, object]):
        """A dictionary that can be referred to weakly."""

    async with running(informer):
        obj = Tracked(await server.put("a"))
        informer.apply("MODIFIED", {**obj, "metadata": {**obj["metadata"], "resourceVersion": "90"}})  # type: ignore[dict-item]
        held = Tracked(kind="Widget", metadata={"name": "t", "namespace": "default", "resourceVersion": "91"})
        informer.apply("ADDED", held)
        watched = weakref.ref(held)
        informer.apply("DELETED", {"metadata": {"name": "t", "namespace": "default", "resourceVersion": "92"}})
        del held
        gc.collect()
        assert watched() is None


@pytest.mark.parametrize("moment", ["list", "watch", "back-off"])
async def test_an_informer_stops_at_once_whatever_it_is_doing(
    server: WidgetServer, informer: Informer, moment: str
) -> None:
    if moment == "list":
        never = asyncio.Event()

        async def hang(_: object) -> object:
            await never.wait()
            return None

        server.fail_next("watchlist", hang)  # type: ignore[arg-type]
        async with running(informer, synced=False):
            await until(lambda: server.requests)
    elif moment == "watch":
        async with running(informer):
            pass
    else:
        await server.stop()
        async with running(informer, synced=False):
            await until(lambda: informer.backing_off)
    # Leaving the block cancels and waits; the leak detectors see what stays open.


async def test_the_key_of_a_cluster_scoped_object_ignores_the_namespace_asked_for(
    server: WidgetServer, client: Client, clock: VirtualClock, metrics: Metrics
) -> None:
    resource = ResourceType("example.com", "v1", "Widget", "widgets", namespaced=False)
    informer = Informer(client, WatchScope(resource), clock=clock, metrics=metrics.informer("Widget"))
    obj = {"kind": "Widget", "metadata": {"name": "a", "resourceVersion": "30"}}
    server.fail_next("watchlist", watch_lines(event_line("ADDED", obj), bookmark(30, initial_events_end=True)))
    async with running(informer):
        assert informer.get("anything", "a") == obj
        assert informer.revisions == {Key("", "a"): "30"}
