"""One budget for each host and credential: order, waits, and what is kept for more urgent requests."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from kardinal.scm import RateLimited
from kardinal.scm.http import HostSessions, Priority, Rate, RequestBudget, sessions
from kardinal.scm.http.answers import Quota
from tests.support.clock import VirtualClock


@pytest.fixture
def budget(clock: VirtualClock) -> RequestBudget:
    return RequestBudget(Rate(per_second=1.0, burst=2), clock=clock)


async def test_waiting_requests_are_served_by_priority(budget: RequestBudget, clock: VirtualClock) -> None:
    served: list[Priority] = []

    async def send(priority: Priority) -> None:
        await budget.take(priority)
        served.append(priority)

    await budget.take(Priority.POLL)
    await budget.take(Priority.POLL)
    order = [Priority.POLL, Priority.OPEN, Priority.POLL, Priority.MERGE]
    waiting = [asyncio.create_task(send(priority)) for priority in order]
    await clock.advance(timedelta(seconds=0.5))
    assert served == []
    await clock.advance(timedelta(seconds=1))
    assert served == [Priority.MERGE]
    await clock.advance(timedelta(seconds=3))
    await asyncio.gather(*waiting)
    assert served == [Priority.MERGE, Priority.OPEN, Priority.POLL, Priority.POLL]


async def test_a_burst_is_back_after_a_pause_and_not_more(budget: RequestBudget, clock: VirtualClock) -> None:
    for _ in range(2):
        await budget.take(Priority.OPEN)
    await clock.advance(timedelta(hours=1))
    for _ in range(2):
        await budget.take(Priority.OPEN)
    third = asyncio.create_task(budget.take(Priority.OPEN))
    await asyncio.sleep(0)
    assert not third.done()
    await clock.advance(timedelta(seconds=1))
    await third


async def test_a_request_that_gives_up_leaves_its_turn_to_the_next(budget: RequestBudget, clock: VirtualClock) -> None:
    for _ in range(2):
        await budget.take(Priority.OPEN)
    first, second = (asyncio.create_task(budget.take(Priority.OPEN)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await clock.advance(timedelta(seconds=1))
    await second
    assert first.cancelled()


async def test_a_host_that_asks_to_wait_stops_every_request_with_the_time(
    budget: RequestBudget, clock: VirtualClock
) -> None:
    for _ in range(2):
        await budget.take(Priority.OPEN)
    waiting = asyncio.create_task(budget.take(Priority.MERGE))
    await asyncio.sleep(0)
    budget.block(90.0)
    with pytest.raises(RateLimited) as limited:
        await waiting
    assert limited.value.retry_after == 90.0
    await clock.advance(timedelta(seconds=60))
    with pytest.raises(RateLimited) as limited:
        await budget.take(Priority.MERGE)
    assert limited.value.retry_after == 30.0
    await clock.advance(timedelta(seconds=31))
    await budget.take(Priority.MERGE)


async def test_a_shorter_wait_does_not_end_a_longer_one(budget: RequestBudget) -> None:
    budget.block(90.0)
    budget.block(1.0)
    with pytest.raises(RateLimited) as limited:
        await budget.take(Priority.MERGE)
    assert limited.value.retry_after == 90.0


@pytest.mark.parametrize(
    ("remaining", "served"),
    [
        (501, {Priority.MERGE, Priority.OPEN, Priority.POLL}),
        (500, {Priority.MERGE, Priority.OPEN}),
        (100, {Priority.MERGE}),
        (1, {Priority.MERGE}),
        (0, set()),
    ],
)
async def test_rest_of_the_budget_is_kept_for_merges(
    clock: VirtualClock, remaining: int, served: set[Priority]
) -> None:
    budget = RequestBudget(Rate(per_second=1.0, burst=100), clock=clock)
    budget.observe(Quota(remaining=remaining, limit=5000, reset=600.0))
    for priority in served:
        await budget.take(priority)
    for priority in set(Priority) - served:
        with pytest.raises(RateLimited) as limited:
            await budget.take(priority)
        assert limited.value.retry_after == 600.0
    assert budget.remaining() == remaining
    await clock.advance(timedelta(seconds=601))
    assert budget.remaining() is None
    await budget.take(Priority.POLL)


async def test_a_budget_belongs_to_a_host_and_a_credential(clock: VirtualClock) -> None:
    async with HostSessions(clock=clock) as http:
        rate = Rate(per_second=1.0, burst=1)
        one = http.budget("git.example.org", "a", rate)
        assert http.budget("git.example.org", "a", rate) is one
        assert http.budget("git.example.org", "b", rate) is not one
        assert http.budget("git.example.com", "a", rate) is not one


async def test_a_budget_that_is_forgotten_still_serves_those_that_wait(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_BUDGETS", 1)
    async with HostSessions(clock=clock) as http:
        rate = Rate(per_second=1.0, burst=1)
        budget = http.budget("git.example.org", "a", rate)
        await budget.take(Priority.OPEN)
        waiting = asyncio.create_task(budget.take(Priority.OPEN))
        await asyncio.sleep(0)
        http.budget("git.example.org", "b", rate)
        assert http.budget("git.example.org", "a", rate) is not budget
        await clock.advance(timedelta(seconds=1))
        await waiting
