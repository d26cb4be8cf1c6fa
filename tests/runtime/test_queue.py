"""The work queue: order, merging, delays, fairness and the end."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from kardinal.objects import Key
from kardinal.runtime.queue import AGEING, PriorityQueue
from tests.support.clock import VirtualClock


def key(name: str) -> Key:
    return Key("default", name)


@pytest.fixture
def queue(clock: VirtualClock) -> PriorityQueue:
    return PriorityQueue(clock=clock)


async def turns() -> None:
    """Let every waiter that was woken run."""
    for _ in range(20):
        await asyncio.sleep(0)


async def drain(queue: PriorityQueue) -> list[str]:
    """Everything that is ready, in the order it is handed out."""
    names = []
    while queue:
        item = await queue.get()
        assert item is not None
        names.append(item.key.name)
        queue.done(item.key)
    return names


async def test_a_key_added_many_times_is_handed_out_once(queue: PriorityQueue) -> None:
    for _ in range(100):
        queue.add(key("a"))
    assert len(queue) == 1
    assert await drain(queue) == ["a"]
    assert queue.added == 1


async def test_a_key_added_while_it_is_worked_on_runs_exactly_once_more(queue: PriorityQueue) -> None:
    queue.add(key("a"))
    await queue.get()
    for _ in range(3):
        queue.add(key("a"))
    queue.add(key("b"))
    # Its worker is not done: others flow past it.
    item = await queue.get()
    assert item is not None
    assert item.key == key("b")
    queue.done(key("b"))
    queue.done(key("a"))
    assert await drain(queue) == ["a"]


async def test_keys_of_one_priority_come_in_the_order_they_were_added(queue: PriorityQueue) -> None:
    for name in "cab":
        queue.add(key(name))
    assert await drain(queue) == ["c", "a", "b"]


async def test_a_higher_priority_comes_first(queue: PriorityQueue) -> None:
    queue.add(key("low"), priority=-100)
    queue.add(key("normal"))
    queue.add(key("high"), priority=10)
    assert await drain(queue) == ["high", "normal", "low"]


async def test_adding_again_raises_a_priority_and_never_lowers_it(queue: PriorityQueue) -> None:
    queue.add(key("a"), priority=5)
    queue.add(key("a"), priority=-100)
    queue.add(key("b"), priority=-100)
    queue.add(key("c"), priority=1)
    queue.add(key("b"), priority=7)
    assert await drain(queue) == ["b", "a", "c"]


async def test_a_raised_key_goes_to_the_end_of_its_new_class(queue: PriorityQueue) -> None:
    queue.add(key("raised"), priority=-100)
    queue.add(key("first"))
    queue.add(key("raised"), priority=0)
    queue.add(key("last"))
    assert await drain(queue) == ["first", "raised", "last"]


async def test_the_earlier_of_two_delays_wins(queue: PriorityQueue, clock: VirtualClock) -> None:
    queue.add(key("a"), after=10)
    queue.add(key("a"), after=3)
    queue.add(key("a"), after=30)
    await clock.advance(2.9)
    assert (len(queue), queue.delayed) == (0, 1)
    await clock.advance(0.2)
    assert (len(queue), queue.delayed) == (1, 0)
    assert await drain(queue) == ["a"]
    assert clock.timers == []


async def test_an_event_takes_the_place_of_a_pending_delay(queue: PriorityQueue, clock: VirtualClock) -> None:
    queue.add(key("a"), after=10)
    queue.add(key("a"))
    assert await drain(queue) == ["a"]
    assert clock.timers == []
    await clock.advance(20)
    assert not queue


async def test_delayed_keys_become_ready_in_the_order_of_their_times_behind_those_already_ready(
    queue: PriorityQueue, clock: VirtualClock
) -> None:
    queue.add(key("late"), after=2)
    queue.add(key("early"), after=1)
    queue.add(key("now"))
    clock.skip(5)
    clock.advance_to_next_timer()
    assert await drain(queue) == ["now", "early", "late"]


async def test_only_the_earliest_delay_holds_a_timer(queue: PriorityQueue, clock: VirtualClock) -> None:
    for number in range(50):
        queue.add(key(str(number)), after=100 - number)
    assert len(clock.timers) == 1
    assert clock.next_deadline == 51


async def test_a_low_priority_key_is_served_under_constant_load(queue: PriorityQueue) -> None:
    queue.add(key("patient"), priority=-100)
    for round_ in range(AGEING):
        queue.add(key(f"urgent-{round_}"))
        queue.add(key(f"urgent-too-{round_}"))
        item = await queue.get()
        assert item is not None
        queue.done(item.key)
        if item.key.name == "patient":
            return
    pytest.fail("the low priority key starved")


async def test_the_depth_of_each_priority_follows_a_key_through_its_classes(
    queue: PriorityQueue, clock: VirtualClock
) -> None:
    queue.add(key("a"), priority=-100, after=1)
    assert dict(queue.depth) == {}
    await clock.advance(1)
    assert dict(queue.depth) == {-100: 1}
    queue.add(key("a"), priority=3)
    assert dict(queue.depth) == {3: 1}
    await queue.get()
    assert dict(queue.depth) == {}
    queue.add(key("a"))
    assert (len(queue), dict(queue.depth)) == (1, {0: 1})


async def test_a_shutdown_wakes_every_worker_and_ignores_what_comes_later(queue: PriorityQueue) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(10)]
    await asyncio.sleep(0)
    queue.add(key("delayed"), after=5)
    queue.shut_down()
    queue.add(key("a"))
    assert await asyncio.gather(*workers) == [None] * 10
    assert await queue.get() is None
    assert len(queue) == 0


async def test_a_worker_cancelled_at_the_moment_it_is_woken_passes_the_key_on(queue: PriorityQueue) -> None:
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add(key("a"))
    first.cancel()
    item = await second
    assert item is not None
    assert item.key == key("a")
    with pytest.raises(asyncio.CancelledError):
        await first


def of(namespace: str, *names: str) -> list[Key]:
    return [Key(namespace, name) for name in names]


async def hand_outs(queue: PriorityQueue, number: int) -> list[str]:
    """Return the next keys, each done before the next is asked for."""
    found = []
    for _ in range(number):
        item = await queue.get()
        assert item is not None
        found.append(str(item.key))
        queue.done(item.key)
    return found


async def test_namespaces_have_turns_and_their_keys_an_order(queue: PriorityQueue) -> None:
    for each in (*of("loud", *"abcdef"), *of("quiet", "x", "y"), *of("third", "z")):
        queue.add(each)
    assert await hand_outs(queue, 7) == ["loud/a", "quiet/x", "third/z", "loud/b", "quiet/y", "loud/c", "loud/d"]


async def test_a_namespace_that_comes_later_waits_for_one_key_of_each(queue: PriorityQueue) -> None:
    for number in range(1000):
        queue.add(Key("loud", str(number)))
    await hand_outs(queue, 5)
    queue.add(Key("quiet", "x"))
    assert await hand_outs(queue, 2) == ["loud/5", "quiet/x"]


async def test_namespaces_have_turns_among_keys_that_waited_long_as_well(queue: PriorityQueue) -> None:
    """After a start everything has the low priority, and one namespace may never run out of urgent keys."""
    for number in range(1000):
        queue.add(Key("loud", f"old-{number}"), priority=-100)
    queue.add(Key("quiet", "x"), priority=-100)
    for number in range(3 * AGEING):
        queue.add(Key("loud", f"new-{number}"))
    assert "quiet/x" in await hand_outs(queue, 2 * AGEING)


async def test_the_last_workers_are_for_namespaces_that_have_none(clock: VirtualClock) -> None:
    queue = PriorityQueue(clock=clock, workers=8)
    for number in range(20):
        queue.add(Key("slow", str(number)))
    workers = [asyncio.create_task(queue.get()) for _ in range(8)]
    await turns()
    assert len(queue.processing) == 6
    for namespace in ("other", "third"):
        queue.add(Key(namespace, "x"))
        queue.add(Key(namespace, "y"))
    await turns()
    assert [str(each) for each in queue.processing][6:] == ["other/x", "third/x"]
    # Nothing is free, and the one that ends had a worker of those that are for all.
    queue.done(Key("slow", "0"))
    workers.append(asyncio.create_task(queue.get()))
    await turns()
    assert len(queue.processing) == 7
    queue.add(Key("fourth", "x"))
    await turns()
    assert Key("fourth", "x") in queue.processing
    queue.shut_down()
    await asyncio.gather(*workers)


async def test_beside_others_a_namespace_has_a_quarter_of_the_workers(clock: VirtualClock) -> None:
    queue = PriorityQueue(clock=clock, workers=8)
    queue.add(Key("quiet", "x"))
    workers = [asyncio.create_task(queue.get()) for _ in range(8)]
    await turns()
    for number in range(20):
        queue.add(Key("loud", str(number)))
    await turns()
    assert Counter(each.namespace for each in queue.processing) == {"quiet": 1, "loud": 2}
    queue.done(Key("quiet", "x"))
    workers.append(asyncio.create_task(queue.get()))
    await turns()
    assert Counter(each.namespace for each in queue.processing) == {"loud": 2}
    # No run of it ends, and yet the rest of the workers is there for it as soon as it is alone.
    await clock.advance(2)
    await turns()
    assert Counter(each.namespace for each in queue.processing) == {"loud": 6}
    queue.shut_down()
    await asyncio.gather(*workers)


async def test_a_worker_that_was_kept_back_is_woken_when_a_namespace_may_have_it(clock: VirtualClock) -> None:
    queue = PriorityQueue(clock=clock, workers=4)
    for each in of("slow", *"abcde"):
        queue.add(each)
    workers = [asyncio.create_task(queue.get()) for _ in range(4)]
    await turns()
    assert len(queue.processing) == 3
    for each in list(queue.processing):
        queue.done(each)
    workers.append(asyncio.create_task(queue.get()))
    await turns()
    assert sorted(map(str, queue.processing)) == ["slow/d", "slow/e"]
    queue.shut_down()
    await asyncio.gather(*workers)


async def test_delays_that_events_replaced_are_not_kept(queue: PriorityQueue) -> None:
    for number in range(10_000):
        queue.add(key("a"), after=1000 + number)
        queue.add(key("a"))
        await drain(queue)
    assert len(queue._delayed) < 100


async def test_any_mix_of_operations_never_gives_a_key_to_two_workers_and_loses_none(clock: VirtualClock) -> None:
    rng = random.Random(7)
    queue = PriorityQueue(clock=clock, workers=4)
    held: set[Key] = set()
    wanted: set[Key] = set()

    async def work() -> None:
        while (item := await queue.get()) is not None:
            assert item.key not in held
            held.add(item.key)
            wanted.discard(item.key)
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(0)
            held.remove(item.key)
            queue.done(item.key)

    workers = [asyncio.create_task(work()) for _ in range(4)]
    for _ in range(2000):
        chosen = Key(f"team-{rng.randrange(3)}", str(rng.randrange(6)))
        wanted.add(chosen)
        queue.add(chosen, priority=rng.choice([-100, 0, 5]), after=rng.choice([0, 0, 0.5, 2]))
        if rng.random() < 0.3:
            await asyncio.sleep(0)
        if rng.random() < 0.1:
            clock.advance_to_next_timer()
    await clock.advance(10)
    while queue or queue.processing:
        await asyncio.sleep(0)
    assert wanted == set()
    queue.shut_down()
    await asyncio.gather(*workers)


async def test_shutting_down_never_leaves_a_worker_behind(clock: VirtualClock) -> None:
    for _ in range(1000):
        queue = PriorityQueue(clock=clock)
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        queue.add(key("a"))
        await asyncio.sleep(0)
        queue.shut_down()
        await asyncio.gather(*workers)
