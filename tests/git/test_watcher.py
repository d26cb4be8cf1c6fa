"""Waking whoever waits for a repository on this machine."""

from __future__ import annotations

from kardinal.git import GitRunner, Repositories, Repository
from tests.git.conftest import Git, until
from tests.support.clock import VirtualClock

LOOK = 0.25


class Sleeper:
    """Counts how often it was woken."""

    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1


async def look(clock: VirtualClock) -> None:
    """Let one look happen, from its timer to the timer of the next."""
    await until(lambda: bool(clock.timers))
    clock.advance_to_next_timer()
    await until(lambda: bool(clock.timers))


async def test_a_subscriber_is_woken_when_a_reference_moves(
    repository: Repository, bare: Git, clock: VirtualClock
) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    await look(clock)
    assert sleeper.woken == 1
    for wakes, command in enumerate(
        (
            ("update-ref", "refs/heads/other", "main"),
            ("update-ref", "refs/kardinal/pull/1/head", "main"),
            ("pack-refs", "--all"),
            ("update-ref", "-d", "refs/heads/other"),
        ),
        start=2,
    ):
        bare(*command)
        await look(clock)
        assert sleeper.woken == wakes, command
    subscription.close()


async def test_nobody_looks_when_nobody_waits(repository: Repository, clock: VirtualClock) -> None:
    first, second = Sleeper(), Sleeper()
    subscriptions = [repository.watch(first.wake), repository.watch(second.wake)]
    await until(lambda: first.woken == second.woken == 1)
    assert len(clock.timers) == 1
    assert clock.timers[0].deadline == LOOK
    subscriptions[0].close()
    assert len(clock.timers) == 1
    subscriptions[1].close()
    assert clock.timers == []


async def test_a_subscription_is_over_when_it_is_closed_however_often(
    repository: Repository, bare: Git, clock: VirtualClock
) -> None:
    gone, there = Sleeper(), Sleeper()
    subscription, other = repository.watch(gone.wake), repository.watch(there.wake)
    await until(lambda: there.woken == 1)
    subscription.close()
    subscription.close()
    bare("update-ref", "refs/heads/other", "main")
    await look(clock)
    assert (gone.woken, there.woken) == (1, 2)
    other.close()


async def test_a_repository_that_comes_back_wakes_its_subscribers(
    repository: Repository, bare: Git, clock: VirtualClock
) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    away = bare.directory.rename(bare.directory.with_name("away.git"))
    await look(clock)
    away.rename(bare.directory)
    await look(clock)
    assert sleeper.woken == 3
    subscription.close()


async def test_waiting_costs_no_fetch(
    repository: Repository, repositories: Repositories, runner: GitRunner, clock: VirtualClock
) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    for _ in range(20):
        await look(clock)
    assert repositories.fetches == 0
    subscription.close()
    await until(lambda: runner.busy == 0)


async def test_closing_the_repositories_ends_what_is_watched(
    repository: Repository, repositories: Repositories, clock: VirtualClock
) -> None:
    repository.watch(Sleeper().wake)
    await repositories.close()
    assert clock.timers == []
