"""The memory of an agent about its hosts: turns of proposals, written texts, and merges that were put off."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import JsonObject, Key
from kardinal.runtime import Backoff, KeyMemory
from kardinal_agent.hosts.memory import HostMemory
from tests.support.clock import VirtualClock

BASE = ("https://git.example.com/acme/gitops", "main")
FIRST = Key("team", "first")
SECOND = Key("team", "second")


class _NoObjects:
    """A cache without objects."""

    def get(self, namespace: str, name: str) -> JsonObject | None:
        return None


@pytest.fixture
def steps() -> KeyMemory:
    return KeyMemory(_NoObjects())


@pytest.fixture
def time() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def memory(time: VirtualClock, steps: KeyMemory) -> HostMemory:
    return HostMemory(time, backoff=Backoff(base=1.0, cap=300.0), memory=steps)


async def test_a_proposal_keeps_its_turn_for_half_an_hour(memory: HostMemory, time: VirtualClock) -> None:
    assert memory.take_turn(BASE, FIRST)
    assert not memory.take_turn(BASE, SECOND)
    assert memory.take_turn((BASE[0], "release"), SECOND)
    await time.advance(timedelta(minutes=29))
    # That it asks again renews no turn.
    assert memory.take_turn(BASE, FIRST)
    assert not memory.take_turn(BASE, SECOND)
    await time.advance(timedelta(minutes=1))
    assert memory.take_turn(BASE, SECOND)
    assert not memory.take_turn(BASE, FIRST)


@pytest.mark.parametrize("dropped", [False, True], ids=["ended", "gone"])
def test_a_turn_that_ends_is_free(memory: HostMemory, steps: KeyMemory, *, dropped: bool) -> None:
    assert memory.take_turn(BASE, FIRST)
    if dropped:
        steps.drop(FIRST)
    else:
        memory.end_turn(FIRST)
    assert memory.take_turn(BASE, SECOND)


async def test_a_text_is_written_once_a_minute(memory: HostMemory, time: VirtualClock) -> None:
    assert memory.text_delay(FIRST) == timedelta()
    memory.note_text(FIRST)
    await time.advance(timedelta(seconds=20))
    assert memory.text_delay(FIRST) == timedelta(seconds=40)
    assert memory.text_delay(SECOND) == timedelta()
    await time.advance(timedelta(seconds=40))
    assert memory.text_delay(FIRST) == timedelta()


def test_a_merge_that_is_put_off_is_tried_later_and_later_up_to_five_minutes(memory: HostMemory) -> None:
    delays = [memory.merge_delay(FIRST) for _ in range(12)]
    assert delays == sorted(delays)
    assert delays[-1] == timedelta(minutes=5)
    memory.forget_merge(FIRST)
    assert memory.merge_delay(FIRST) < timedelta(seconds=5)
