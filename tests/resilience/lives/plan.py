"""The plan of a life, and what that life comes to in which no program dies: functions of its seed.

An environment that is not the first is written to by pull requests: the last one waits for a reviewer, the others are
merged by kardinal. The first one is pushed to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.support.names import DEV, PROD, STAGING

__all__ = ["BY_ITSELF", "FOUR_OF", "LIVES_OF_A_HOST", "TAGS", "Outcome", "Plan", "expected"]

LIVES_OF_A_HOST = 5
"""One life of so many has its repository at a host, which costs as much as some others together."""

BY_ITSELF = "rollback-of-two"
"""The rollback that follows from a failure by itself; one by hand is `back`."""

TAGS: Mapping[str, str] = {"one": "1.0.1", "two": "1.0.2", "three": "1.0.3", "four": "1.0.4"}
"""Bundle -> the version that it brings."""

DeletedAt = Literal["Pending", "Promoting", "HealthChecking", "WaitingForMerge"]
FOUR_OF: Mapping[DeletedAt, str] = {
    "Pending": DEV,
    "Promoting": DEV,
    "HealthChecking": DEV,
    "WaitingForMerge": PROD,
}
"""State of a step at which the Bundle `four` is deleted -> the environment of the step."""


@dataclass(frozen=True)
class Plan:
    """Everything in which lives differ.

    `fails_in`: where `two` does not become healthy. `by_itself`: that failure is rolled back by itself, or by hand
    after another attempt that fails, too. `told`: hosts tell of merges, which else are found by the shared poll.
    """

    seed: int
    hosted: bool
    environments: tuple[str, ...]
    fails_in: str
    by_itself: bool
    deleted_at: DeletedAt
    told: bool

    @classmethod
    def of(cls, seed: int) -> Plan:
        """Return the plan of a seed."""
        random = Random(f"life {seed}")
        hosted = seed % LIVES_OF_A_HOST == LIVES_OF_A_HOST - 1
        environments = (DEV, STAGING, PROD) if random.random() < 0.25 else (DEV, PROD)
        return cls(
            seed=seed,
            hosted=hosted,
            environments=environments,
            fails_in=random.choice(environments),
            by_itself=random.random() < 0.5,
            deleted_at=random.choice(list(FOUR_OF)),
            told=random.random() < 0.5,
        )

    @property
    def first(self) -> tuple[str, ...]:
        """Return the environments before the last one, which is reviewed."""
        return self.environments[:-1]

    @property
    def until_failure(self) -> tuple[str, ...]:
        """Return the environments that `two` comes to."""
        return self.environments[: self.environments.index(self.fails_in) + 1]

    @property
    def back(self) -> str:
        """Return how the rollback is called."""
        return BY_ITSELF if self.by_itself else "back"

    @property
    def takes_over(self) -> bool:
        """Return whether `four` comes as far as taking the review of `three` over before it is deleted."""
        return FOUR_OF[self.deleted_at] == PROD


@dataclass(frozen=True)
class Outcome:
    """Everything that a life has come to, with the names of its Bundles as the life calls them.

    `commits`: environment -> Bundle and attempt, oldest first. `pulls`: environment -> attempt, state and number of
    kardinal's comments of each pull request, by number. `phases`: each Bundle that is left. `left`: branches, holds and
    finalizers, and environments whose files are not those of the last Bundle that has landed.
    """

    commits: Mapping[str, tuple[str, ...]]
    pulls: Mapping[str, tuple[str, ...]]
    phases: Mapping[str, str]
    left: tuple[str, ...]


def expected(plan: Plan) -> Outcome:
    """Return the outcome of a life; `four` may have landed in the first environment, or not, where it went early."""
    commits: dict[str, list[str]] = {name: ["one"] for name in plan.environments}
    commits[PROD] = ["one-2"]
    for name in plan.until_failure:
        commits[name].append("two")
    commits[plan.fails_in].append(plan.back)
    for name in plan.environments if not plan.takes_over else plan.first:
        commits[name].append("three")
    for name in plan.first if plan.takes_over else ():
        commits[name].append("four")
    pulls = {name: [f"{each} merged" for each in commits[name]] for name in plan.environments if name != DEV}
    pulls[PROD].insert(0, "one closed")
    if plan.takes_over:
        pulls[PROD] += ["three closed, comments: 1", "four closed, comments: 1"]
    three = "Superseded" if plan.takes_over else "Verified"
    return Outcome(
        commits={name: tuple(found) for name, found in commits.items()},
        pulls={name: tuple(found) for name, found in pulls.items()},
        phases={"one": "Verified", "two": "Failed", plan.back: "Verified", "three": three},
        left=(),
    )
