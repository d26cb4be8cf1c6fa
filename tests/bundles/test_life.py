"""Random histories on random Pipelines keep the rules of docs/design/bundle-life.md, and break with any one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest

from kardinal_controller.bundles import supersession
from kardinal_controller.bundles.contenders import Contender, Standing
from tests.bundles.life_model import Life

HISTORIES = 60
ACTIONS = 120
ENDED = ("Verified", "Failed", "Superseded")


def histories(*, queue: bool = False, asks: bool = False, rollbacks: bool = False) -> Iterator[Life]:
    """Live through histories of random events and let each come to its end."""
    for seed in range(HISTORIES):
        life = Life(Random(seed), queue=queue, asks=asks, rollbacks=rollbacks)
        life.go_on(ACTIONS)
        life.settle()
        if rollbacks:
            life.resume()
            life.settle()
        yield life


def broken_rules(lives: Iterable[Life]) -> Iterator[str]:
    """Yield what is wrong with histories, with the seed that gives them again."""
    for seed, life in enumerate(lives):
        yield from (f"seed {seed}: {broken}" for broken in life.broken[:1])
        waiting = [bundle.name for bundle in life.bundles if bundle.phase not in ENDED]
        if waiting:
            yield f"seed {seed}: {waiting} wait for ever"


def test_histories_keep_the_rules_and_come_to_every_end() -> None:
    lives = list(histories(queue=False))
    assert list(broken_rules(lives)) == []
    bundles = [bundle for life in lives for bundle in life.bundles]
    phases = [bundle.phase for bundle in bundles]
    assert min(map(phases.count, ENDED)) > 30
    asked = [step for bundle in bundles for step in bundle.steps.values() if step.prepared]
    assert len(asked) > 30


def test_histories_in_which_people_promote_and_retry_keep_the_rules() -> None:
    lives = list(histories(asks=True))
    assert list(broken_rules(lives)) == []
    attempts = [step.attempt for life in lives for bundle in life.bundles for step in bundle.steps.values()]
    assert sum(attempt is not None for attempt in attempts) > 30


def test_histories_in_a_queue_keep_the_rules() -> None:
    assert list(broken_rules(histories(queue=True))) == []


@pytest.mark.parametrize("queue", [False, True], ids=["newest", "queue"])
def test_histories_with_rollbacks_and_their_holds_keep_the_rules(queue: bool) -> None:
    lives = list(histories(queue=queue, rollbacks=True))
    assert list(broken_rules(lives)) == []
    back = [bundle.phase for life in lives for bundle in life.bundles if bundle.rolls_back]
    assert min(map(back.count, ENDED)) > 3


def test_histories_with_rollbacks_break_without_what_their_holds_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    taker = supersession.taker

    def taker_despite_holds(*contenders: Any, started: bool, let_through: bool) -> Contender | None:
        return taker(*contenders, started=started)

    monkeypatch.setattr(supersession, "taker", taker_despite_holds)
    assert next(broken_rules(histories(rollbacks=True)), None) is not None


def _none_holds(self: Contender, environment: str) -> bool:
    return False


def _old_ones_are_live(self: Contender, environment: str) -> bool:
    return environment in self.standings


def _every_edit_is_good(self: Standing) -> bool:
    return True


def _arrived_without_its_upstreams(self: Contender, environment: str) -> bool:
    return self.is_live(environment)


def _none_takes_over(*_: Any, **__: Any) -> None:
    return None


def _none_goes_first(*_: Any, **__: Any) -> None:
    return None


MUTANTS = {
    "two are admitted": (Contender, "holds", _none_holds),
    "what is over is live": (Contender, "is_live", _old_ones_are_live),
    "any step takes a review over": (Standing, "has_good_edit", property(_every_edit_is_good)),
    "the older one goes on": (supersession, "taker", _none_takes_over),
    "none waits": (supersession, "first_before", _none_goes_first),
}


@pytest.mark.parametrize(("owner", "name", "mutant"), MUTANTS.values(), ids=MUTANTS)
def test_histories_break_without_a_rule(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, mutant: Any) -> None:
    monkeypatch.setattr(owner, name, mutant)
    assert next(broken_rules(histories(queue=False)), None) is not None


def test_a_queue_breaks_without_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = supersession.first_before
    monkeypatch.setattr(supersession, "first_before", lambda *args, queue: rule(*args, queue=False))
    assert next(broken_rules(histories(queue=True)), None) is not None
