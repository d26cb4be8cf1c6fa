"""Rate limits hold for any number of keys in bounded time and memory."""

from __future__ import annotations

import pytest

from kardinal.runtime.addresses import network_of
from kardinal.runtime.rate import RateLimit
from tests.support.clock import VirtualClock


async def test_no_more_than_the_limit_in_any_window(clock: VirtualClock) -> None:
    limit = RateLimit(limit=2, window=10, clock=clock)
    assert [limit.admit("a") for _ in range(3)] == [0, 0, 10]
    await clock.advance(9)
    assert (limit.admit("a"), limit.admit("b")) == (1, 0)
    await clock.advance(1)
    assert limit.admit("a") == 0


async def test_keys_that_fell_silent_are_forgotten(clock: VirtualClock) -> None:
    limit = RateLimit(limit=2, window=10, clock=clock)
    for key in range(100):
        limit.admit(key)
    await clock.advance(10)
    limit.admit("last")
    assert len(limit) == 1


def test_a_hundred_thousand_keys_take_the_room_of_few(clock: VirtualClock) -> None:
    limit = RateLimit(limit=2, window=10, clock=clock, keys=64)
    for key in range(100_000):
        assert limit.admit(key) == 0
    assert len(limit) == 64
    assert [limit.admit(99_999), limit.admit(99_999)] == [0, 10]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("no address", "no address"),
        (None, ""),
    ],
)
def test_a_machine_counts_once_however_many_addresses_it_has(address: str | None, network: str) -> None:
    assert network_of(address) == network
