"""A person commits to the branches of a promotion at the worst moment: nothing of theirs is lost, and it lands once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kardinal.promotion.api.names import branch_name
from tests.agent.hosted import hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, reached, state, wake
from tests.resilience.faults.cells import FETCH_REFS, FLOWS, GET, MERGE, OPEN, PUSH, PUSH_REFS, STATUS
from tests.resilience.faults.promotions import prepare, start
from tests.resilience.faults.strikes import Day, meanwhile
from tests.support.names import DEV, TEAM
from tests.support.repository import GitRepository
from tests.support.world import World

PROPOSAL = branch_name(TEAM, BUNDLE_NAME, DEV)
OVERLAY = f"environments/{DEV}/kustomization.yaml"


@dataclass(frozen=True)
class Race:
    """A person commits to a branch in the moment before a request is answered."""

    moment: str
    effect: str
    flow: str
    branch: str = "main"

    def __str__(self) -> str:
        return f"{self.moment}, to {'the target' if self.branch == 'main' else 'the proposal'} of a {self.flow}"


RACES = [
    Race("before the fetch", FETCH_REFS, "push"),
    Race("between plan and push", PUSH_REFS, "push"),
    Race("as the push arrives", PUSH, "push"),
    Race("between plan and push", PUSH_REFS, "record"),
    Race("between push and open", OPEN, "record"),
    Race("while it waits", GET, "review"),
    Race("before the statuses", STATUS, "record"),
    Race("at the merge", MERGE, "record"),
    Race("between push and open", OPEN, "review", PROPOSAL),
    Race("while it waits", GET, "review", PROPOSAL),
]


@pytest.mark.virtual_time("lives through the back-off")
@pytest.mark.parametrize("race", RACES, ids=str)
async def test_the_commit_of_a_person_is_kept(world: World, day: Day, race: Race) -> None:
    made: list[str] = []

    def commit(repository: GitRepository) -> None:
        text = repository.read(OVERLAY, race.branch)
        made.append(repository.commit({OVERLAY: text + "# reviewed\n", "NOTES": "theirs\n"}, branch=race.branch))

    day.strikes(race.effect, meanwhile(commit))
    await start(world, day)
    await prepare(world, day)
    await create(world, hosted_step(day.host, **FLOWS[race.flow]))
    if race.flow == "review":
        await reached(world, "WaitingForMerge")
        await world.until(lambda: made)
        day.host.merge(1)
        await wake(world)
    await reached(world, "Verified")

    repository = day.host.repository
    (theirs,) = made
    repository.git("merge-base", "--is-ancestor", theirs, "main")
    text = repository.read(OVERLAY)
    assert text.endswith("# reviewed\n")
    assert 'newTag: "1.1.0"' in text
    assert repository.read("NOTES") == "theirs\n"
    assert len(repository.promotions(DEV)) == 1


@pytest.mark.virtual_time("lives through the back-off")
@pytest.mark.parametrize("kept", [False, True], ids=["deleted", "kept"])
async def test_a_merge_in_the_middle_of_a_look_is_seen_by_it(world: World, day: Day, kept: bool) -> None:
    def merge(repository: GitRepository) -> None:
        head = repository.head(PROPOSAL)
        day.host.merge(1)
        if kept:
            repository.git("update-ref", f"refs/heads/{PROPOSAL}", head)

    await start(world, day)
    await prepare(world, day)
    await create(world, hosted_step(day.host, **FLOWS["review"]))
    await reached(world, "WaitingForMerge")
    day.strikes(FETCH_REFS, meanwhile(merge))
    await wake(world)
    status = await state(world)
    assert status["state"] in ("HealthChecking", "Verified"), status["message"]
    assert len(day.host.proposals()) == 1


@pytest.mark.parametrize("moment", [STATUS, MERGE], ids=["before the statuses", "at the merge"])
async def test_a_commit_to_the_proposal_is_not_merged_by_the_agent(world: World, day: Day, moment: str) -> None:
    made: list[str] = []

    def commit(repository: GitRepository) -> None:
        made.append(repository.commit({"NOTES": "theirs\n"}, branch=PROPOSAL))

    day.strikes(moment, meanwhile(commit))
    await start(world, day)
    await prepare(world, day)
    await create(world, hosted_step(day.host, **FLOWS["record"]))

    async def blocked() -> bool:
        return "commits of others" in ((await state(world)).get("message") or "")

    await world.until(blocked)
    repository = day.host.repository
    assert [repository.head(PROPOSAL)] == made
    assert repository.promotions(DEV) == []
    assert day.host.proposals()[1].state == "open"


@pytest.mark.parametrize("flow", list(FLOWS))
async def test_two_agents_of_one_shard_promote_once(world: World, day: Day, flow: str) -> None:
    await start(world, day)
    await start(world, day)
    await prepare(world, day)
    await create(world, hosted_step(day.host, **FLOWS[flow]))
    if flow == "review":
        await reached(world, "WaitingForMerge")
        await world.settle()
        day.host.merge(1)
        await wake(world)
    await reached(world, "Verified")
    await world.settle()
    assert len(day.host.repository.promotions(DEV)) == 1
    assert len(day.host.proposals()) == (0 if flow == "push" else 1)
    assert day.host.repository.branches() == ["main"]
