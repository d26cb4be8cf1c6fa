"""How waits grow, and what is remembered of failures."""

from __future__ import annotations

import random

import pytest

from kardinal.runtime.retry import Backoff, Failures


def test_waits_grow_to_the_cap_and_not_beyond() -> None:
    backoff = Backoff(base=0.005, cap=1000.0)
    assert [backoff.delay(count) for count in range(4)] == [0.005, 0.01, 0.02, 0.04]
    assert backoff.delay(18) == 1000.0
    assert backoff.delay(10_000) == 1000.0


def test_jitter_only_lengthens_and_is_repeatable() -> None:
    first, second = (Backoff(base=1.0, cap=30.0, jitter=0.5, rng=random.Random(3)) for _ in range(2))
    waits = [first.delay(2) for _ in range(50)]
    assert all(4.0 <= wait <= 6.0 for wait in waits)
    assert len(set(waits)) > 1
    assert waits == [second.delay(2) for _ in range(50)]


def test_keys_wait_each_for_their_own_failures_and_are_forgotten() -> None:
    failures: Failures[str] = Failures(Backoff(base=1.0, cap=60.0))
    assert [failures.next_delay("a"), failures.next_delay("a"), failures.next_delay("b")] == [1.0, 2.0, 1.0]
    failures.forget("a")
    failures.forget("never failed")
    assert failures.next_delay("a") == 1.0
    failures.forget("a")
    failures.forget("b")
    assert len(failures) == 0


def test_a_policy_is_a_value() -> None:
    assert Backoff(base=1.0, cap=2.0) == Backoff(base=1.0, cap=2.0)
    with pytest.raises(AttributeError):
        Backoff(base=1.0, cap=2.0).base = 3.0  # type: ignore[misc]
