"""Events live for an hour of the injected clock."""

from __future__ import annotations

from pathlib import Path

from kardinal_local.plane import Authority, LocalPlane
from tests.local.plane.wire import Http, session_for
from tests.support.clock import VirtualClock

EVENTS = "/api/v1/namespaces/default/events"


def event(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "involvedObject": {"kind": "Widget", "name": "a"}, "reason": "Done"}


async def names(http: Http) -> list[str]:
    return [item["metadata"]["name"] for item in (await http.get(EVENTS)).body["items"]]


async def test_an_event_is_forgotten_an_hour_after_it_was_last_written(http: Http, clock: VirtualClock) -> None:
    await http.post(EVENTS, event("old"))
    await http.post(EVENTS, event("kept"))
    await clock.advance(1800)
    assert (await http.merge(f"{EVENTS}/kept", {"count": 2})).status == 200
    await http.post(EVENTS, event("young"))
    await clock.advance(1799)
    assert await names(http) == ["kept", "old", "young"]
    await clock.advance(1)
    assert await names(http) == ["kept", "young"]
    await clock.advance(1800)
    assert await names(http) == []
    assert clock.timers == []


async def test_a_restart_does_not_make_events_younger(
    tmp_path: Path, authority: Authority, clock: VirtualClock
) -> None:
    seen = []
    for name in ("a", "b", "c"):
        plane = await LocalPlane.start(tmp_path / "plane", clock=clock, authority=authority)
        async with session_for(plane.kubeconfig) as session:
            http = Http(session)
            await http.post(EVENTS, event(name))
            seen.append(await names(http))
        await plane.stop()
        await clock.advance(1860)
    assert seen == [["a"], ["a", "b"], ["b", "c"]]
