"""Slots are shared: by host, by namespace, and what becomes free goes to the one who holds the fewest."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kardinal.git.shares import Lane, Shares


def test_a_host_gets_three_quarters_and_a_namespace_a_quarter() -> None:
    shares = Shares(16)
    assert [shares.take(Lane("slow", "a")) for _ in range(5)] == [True] * 4 + [False]
    assert shares.ahead(Lane("slow", "a")) == 4
    assert all(shares.take(Lane("slow", owner)) for owner in "bbbbcccc")
    assert not shares.take(Lane("slow", "d"))
    assert shares.ahead(Lane("slow", "d")) == 12
    assert shares.take(Lane("other", "d"))


async def test_a_free_slot_goes_to_the_namespace_with_the_fewest() -> None:
    shares = Shares(4)
    for owner in "abcd":
        assert shares.take(Lane(owner, owner))
    turns: list[str] = []

    async def wait(host: str, owner: str) -> None:
        await shares.acquire(Lane(host, owner))
        turns.append(owner)

    waiting = [asyncio.create_task(wait("x", owner)) for owner in ("a", "a", "e")]
    await asyncio.sleep(0)
    assert shares.waiting == 3
    shares.give_back(Lane("a", "a"))
    await asyncio.sleep(0)
    assert turns == ["a"]
    shares.give_back(Lane("b", "b"))
    await asyncio.sleep(0)
    assert turns == ["a", "e"]
    waiting[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]
    assert shares.waiting == 0


async def test_a_slot_granted_to_one_that_gave_up_is_given_on() -> None:
    shares = Shares(1)
    assert shares.take(Lane("x", "a"))
    waiting = asyncio.create_task(shares.acquire(Lane("x", "b")))
    await asyncio.sleep(0)
    shares.give_back(Lane("x", "a"))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert shares.take(Lane("x", "c"))


def test_one_subscriber_after_the_other_is_told_of_room() -> None:
    shares = Shares(4)
    told = list[str]()
    lanes = [Lane("x", owner) for owner in "ab"]
    assert all(shares.take(lane) for lane in lanes)
    subscriptions = [shares.subscribe(lane, partial(told.append, lane.owner)) for lane in lanes]
    shares.give_back(lanes[1])
    assert told == ["b"]
    shares.give_back(lanes[0])
    assert told == ["b", "a"]
    for subscription in subscriptions:
        subscription.close()
    assert shares.take(lanes[0])
    shares.give_back(lanes[0])
    assert told == ["b", "a"]
