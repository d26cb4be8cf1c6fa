"""A namespace holds a share of what hosts answer, and waits for its own, not for others."""

from __future__ import annotations

import asyncio
import gc

import pytest

from kardinal.bounded import Holding, NoRoom


class Thing:
    """Something that is dropped."""


async def test_a_namespace_waits_for_its_own_room_and_others_do_not() -> None:
    holding = Holding(share=10, total=100)
    first = await holding.take("a", 8)
    second = asyncio.create_task(holding.take("a", 8))
    (await holding.take("b", 8)).release()
    await asyncio.sleep(0)
    assert not second.done()
    first.release()
    first.release()
    (await second).release()
    assert holding.held == 0


async def test_the_total_holds_for_all_and_later_ones_pass_by_who_is_over_its_share() -> None:
    holding = Holding(share=10, total=15)
    first = await holding.take("a", 10)
    behind = asyncio.create_task(holding.take("a", 1))
    other = await holding.take("b", 5)
    last = asyncio.create_task(holding.take("c", 1))
    await asyncio.sleep(0)
    assert not behind.done()
    assert not last.done()
    other.release()
    (await last).release()
    first.release()
    (await behind).release()
    assert holding.held == 0


async def test_body_larger_than_a_share_is_admitted_alone() -> None:
    holding = Holding(share=10, total=15)
    (await holding.take("a", 1_000)).release()
    assert holding.held == 0


async def test_two_that_wait_for_each_other_are_given_up_in_time() -> None:
    holding = Holding(share=10, total=100, patience=0.01)
    held = await holding.take("a", 10)
    with pytest.raises(NoRoom) as raised:
        await holding.take("a", 1)
    assert raised.value.transient
    assert raised.value.retry_after
    held.release()
    (await holding.take("a", 10)).release()


async def test_a_task_that_is_cancelled_leaves_no_room_taken() -> None:
    holding = Holding(share=10, total=100)
    held = await holding.take("a", 10)
    waiting = asyncio.create_task(holding.take("a", 1))
    granted = asyncio.create_task(holding.take("a", 2))
    await asyncio.sleep(0)
    waiting.cancel()
    held.release()
    granted.cancel()
    await asyncio.gather(waiting, granted, return_exceptions=True)
    assert holding.held == 0


async def test_room_is_given_back_when_what_was_read_is_dropped() -> None:
    holding = Holding(share=10, total=100)
    thing = Thing()
    (await holding.take("a", 10)).release_with(thing)
    assert holding.held == 10
    del thing
    gc.collect()
    (await holding.take("a", 10)).release()
    assert holding.held == 0
