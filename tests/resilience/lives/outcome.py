"""Read what a life has come to, from its repository, its host and the API server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kardinal.promotion.api.names import rollback_name
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal.tree.git_names import TRAILER_ATTEMPT, TRAILER_BUNDLE
from tests.resilience.lives.hosts import Place, Proposal
from tests.resilience.lives.observed import Observed
from tests.resilience.lives.plan import BY_ITSELF, TAGS, Outcome, Plan
from tests.support.names import DEV
from tests.support.repository import Commit

__all__ = ["outcome_of"]


async def outcome_of(plan: Plan, place: Place, observed: Observed) -> Outcome:
    """Return the outcome of a life once nothing is left that a program tidies up.

    A push of a Bundle that was deleted may land while this reads: then it reads again.
    """
    reading = _Reading(plan, place, observed)
    head = place.repository.head()
    await observed.until(lambda: None if reading.left() else True, f"life {plan.seed} to leave nothing")
    outcome = await _read(plan, place, observed, reading)
    return outcome if place.repository.head() == head else await outcome_of(plan, place, observed)


async def _read(plan: Plan, place: Place, observed: Observed, reading: _Reading) -> Outcome:
    commits = {name: reading.commits(name) for name in plan.environments}
    proposals = await place.proposals()
    return Outcome(
        commits={name: reading.without_chance(name, commits[name]) for name in plan.environments},
        pulls={name: tuple(reading.pulls(name, proposals)) for name in plan.environments if name != DEV},
        phases={reading.called(each["metadata"]["name"]): each["status"]["phase"] for each in observed.all(BUNDLE)},
        left=(*reading.left(), *(each for name in plan.environments for each in reading.wrong(name, commits[name]))),
    )


class _Reading:
    def __init__(self, plan: Plan, place: Place, observed: Observed) -> None:
        self._plan = plan
        self._place = place
        self._observed = observed

    def commits(self, environment: str) -> Sequence[str]:
        """Return the Bundle and the attempt of each commit for an environment, oldest first."""
        found = self._place.repository.promotions(environment)
        return [self._attempt(each) for each in reversed(found)]

    def without_chance(self, environment: str, commits: Sequence[str]) -> tuple[str, ...]:
        """Return the commits without that of `four`, where chance decides if it was pushed before it was deleted."""
        chance = environment == DEV and not self._plan.takes_over and commits[-1:] == ["four"]
        return tuple(commits[:-1] if chance else commits)

    def pulls(self, environment: str, proposals: Sequence[Proposal]) -> Iterator[str]:
        """Yield attempt, state and number of comments of the pull requests for an environment."""
        for each in proposals:
            bundle, _, last = each.head.rpartition("/")
            if last.startswith(environment):
                # The branch of a second attempt ends in `.2`.
                attempt = last.removeprefix(environment).replace(".", "-")
                name = self.called(bundle.rpartition("/")[2]) + attempt
                yield f"{name} {each.state}" + (f", comments: {each.comments}" if each.comments else "")

    def wrong(self, environment: str, commits: Sequence[str]) -> Iterator[str]:
        """Yield what is wrong with the files of an environment: they are those of its last commit."""
        overlay = self._place.repository.read(f"environments/{environment}/kustomization.yaml")
        last = commits[-1].partition("-2")[0]
        tag = TAGS["one" if last == self._plan.back else last]
        if f'newTag: "{tag}"' not in overlay:
            yield f"{environment} is not at {tag} of {last}"

    def left(self) -> list[str]:
        """Return what should not be there when a life is over."""
        steps = self._observed.all(PROMOTION_STEP)
        return [
            *(f"finalizer of {each['metadata']['name']}" for each in steps if each["metadata"].get("finalizers")),
            *(f"branch {each}" for each in self._place.repository.branches() if each != "main"),
        ]

    def called(self, name: str) -> str:
        """Return the name of a Bundle as the life calls it."""
        found = self._observed.get(BUNDLE, "two")
        by_itself = found and rollback_name("two", self._plan.fails_in, found["metadata"]["uid"])
        return BY_ITSELF if name == by_itself else name

    def _attempt(self, commit: Commit) -> str:
        number = commit.trailers.get(TRAILER_ATTEMPT)
        return self.called(commit.trailers[TRAILER_BUNDLE]) + (f"-{number}" if number else "")
