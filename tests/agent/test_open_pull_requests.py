"""A pull request at a host while it waits: its branch, its text and its statuses stay true, and people's work stays."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api.names import branch_name
from tests.agent.hosted import Hosted, git_secret, hosted_step
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    close_gate,
    create,
    deploy,
    open_gate,
    put_gate,
    reached,
    start_agent,
    state,
    wake,
)
from tests.agent.sites import EVERYWHERE, PERSON, GiteaSite, Site
from tests.agent.without_server import Promotions
from tests.support.names import DEV, TEAM
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("minutes between texts")

GATE = f"my-app-1-{DEV}-soak"
BRANCH = branch_name(TEAM, BUNDLE_NAME, DEV)
OVERLAY = f"environments/{DEV}/kustomization.yaml"


def held(status: JsonObject) -> tuple[str, str]:
    found = next(one for one in status["conditions"] if one["type"] == "Held")
    return found["status"], found["reason"]


async def waiting(world: World, site: Hosted, **spec: Any) -> JsonObject:
    """Have a promotion wait for the merge of its pull request."""
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site, **spec))
    return await reached(world, "WaitingForMerge")


async def gated(world: World, site: Site) -> None:
    """Have a promotion with a gate wait for the merge of its pull request."""
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    await create(world, hosted_step(site, requiredGates=[GATE]))
    await reached(world, "WaitingForMerge")


@EVERYWHERE
async def test_a_proposal_is_written_again_only_when_its_base_conflicts(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    written = len(site.written())
    repository = site.repository
    head = repository.head(BRANCH)
    for _ in range(3):
        await promotion.pass_time(timedelta(minutes=5))
        await promotion.look()
    promotions.restart()
    await promotion.look()
    assert len(site.written()) == written
    assert repository.head(BRANCH) == head

    body = "LGTM\r\n" + site.proposals()[1].body.replace("\n", "\r\n")
    site.edit(1, body)
    await promotion.look()
    assert site.proposals()[1].body == body

    overlay = repository.read(OVERLAY)
    base = repository.commit({OVERLAY: overlay.replace("1.0.0", "1.0.5")})
    await promotion.look()
    assert repository.git("rev-parse", f"{BRANCH}^") == base
    assert repository.read(OVERLAY, BRANCH) == overlay.replace("1.0.0", "1.1.0")
    assert promotion.status.commit == repository.head(BRANCH)
    site.merge(1)
    await promotion.go_on()
    assert promotion.landed
    assert len(site.proposals()) == 1


@pytest.mark.parametrize("amended", [False, True], ids=["added", "amended"])
async def test_commits_of_a_person_are_kept_and_the_files_in_conflict_are_named(
    promotions: Promotions, site: Site, amended: bool
) -> None:
    promotion = await promotions.proposed()
    repository = site.repository
    overlay = repository.read(OVERLAY)
    theirs = {OVERLAY: overlay.replace("1.0.0", "1.1.0") + "# reviewed\n"}
    commit = repository.commit(theirs, branch=BRANCH)
    if amended:
        message = repository.git("log", "-1", "--format=%B", f"{BRANCH}^")
        commit = repository.git("commit-tree", f"{commit}^{{tree}}", "-p", "main", stdin=message)
        repository.git("update-ref", f"refs/heads/{BRANCH}", commit)
    await promotion.look()
    assert promotion.message.startswith("waits for")

    repository.commit({OVERLAY: overlay.replace("1.0.0", "1.0.5"), "README": "as well"})
    await promotion.look()
    assert promotion.held == ("True", "Blocked")
    assert f"conflicts with main in {OVERLAY}: resolve it" in promotion.message
    assert repository.head(BRANCH) == commit
    conditions = promotion.status.conditions
    for _ in range(3):
        await promotion.look()
    assert promotion.status.conditions == conditions

    tree = repository.git("rev-parse", f"{BRANCH}^{{tree}}")
    resolved = repository.git("commit-tree", tree, "-p", BRANCH, "-p", "main", stdin="resolved")
    repository.git("update-ref", f"refs/heads/{BRANCH}", resolved)
    await promotion.look()
    assert promotion.held[0] == "False"
    site.merge(1)
    await promotion.go_on()
    assert promotion.landed


async def test_commit_of_a_stranger_is_not_merged_without_a_review(promotions: Promotions, site: GiteaSite) -> None:
    gitea = site.fake
    added: list[str] = []

    def add(request: Any) -> None:
        if not added and request.path.endswith("/labels"):
            added.append(gitea.repository.commit({"backdoor": "x"}, branch=BRANCH))

    gitea.outage = add
    promotion = await promotions.proposed(approval="auto", pr=True)
    assert promotion.held == ("True", "Blocked")
    assert "has commits of others, which are not merged without a review" in promotion.message
    assert gitea.asked(r"POST /pulls/1/merge") == []
    assert "backdoor" not in gitea.repository.git("ls-tree", "--name-only", "main")


@EVERYWHERE
async def test_text_and_statuses_follow_a_gate_and_nothing_is_pushed_while_it_is_closed(
    world: World, site: Site
) -> None:
    await gated(world, site)
    assert "| soak | org | PASS |" in site.proposals()[1].body
    opened = site.status(1, "kardinal")
    assert (opened[0], DEV in opened[1]) == ("success", True)
    assert site.status(1, f"kardinal/my-app/{DEV}") == opened

    await close_gate(world, GATE, reason="error rate 5%")
    await world.settle()
    assert "| soak | org | FAIL | error rate 5% |" in site.proposals()[1].body
    assert site.status(1, "kardinal") == ("pending", "held by gate soak: error rate 5%")
    assert held(await state(world)) == ("True", "Held")

    repository = site.repository
    head = repository.head(BRANCH)
    repository.commit({OVERLAY: repository.read(OVERLAY).replace("1.0.0", "1.0.5")})
    written = len(site.asked("status"))
    await wake(world)
    assert len(site.asked("status")) == written
    assert repository.head(BRANCH) == head

    for percent in range(6, 9):
        await close_gate(world, GATE, reason=f"error rate {percent}%")
        await world.live(timedelta(seconds=5))
    assert len(site.asked("text")) == 1
    await world.live(timedelta(seconds=61))
    assert "error rate 8%" in site.proposals()[1].body
    assert len(site.asked("text")) == 2

    await open_gate(world, GATE)
    await world.settle()
    assert repository.head(BRANCH) != head
    assert site.status(1, "kardinal")[0] == "success"
    await world.live(timedelta(minutes=1))
    site.merge(1)
    await wake(world)
    status = await reached(world, "Verified")
    assert "MergedOutOfBand" not in [one["type"] for one in status["conditions"]]


@EVERYWHERE
async def test_a_merge_while_a_gate_is_closed_is_flagged_and_not_verified_until_it_opens(
    world: World, site: Site
) -> None:
    await gated(world, site)
    await close_gate(world, GATE, reason="error rate 5%")
    await world.settle()
    landed = site.merge(1)
    await wake(world)
    status = await reached(world, "HealthChecking")
    flagged = next(one for one in status["conditions"] if one["type"] == "MergedOutOfBand")
    assert flagged["message"].endswith(f"was merged by {PERSON} although held by gate soak: error rate 5%")
    (event,) = await world.events("MergedOutOfBand")
    assert event["type"] == "Warning"
    await world.live(timedelta(minutes=10))
    status = await state(world)
    assert (status["state"], held(status)[0]) == ("HealthChecking", "True")
    assert site.repository.head() == landed
    await open_gate(world, GATE)
    status = await reached(world, "Verified")
    assert [one["status"] for one in status["conditions"] if one["type"] == "MergedOutOfBand"] == ["True"]


async def test_a_merge_after_the_gate_has_opened_is_no_matter(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    promotion.answer(closed="error rate 5%")
    await promotion.look()
    promotion.answer()
    await promotion.look()
    await promotion.pass_time(timedelta(minutes=1))
    site.merge(1)
    await promotion.go_on()
    assert promotion.landed
    assert promotion.condition("MergedOutOfBand") is None


async def test_a_merge_before_the_gate_has_opened_is_flagged(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    promotion.answer(closed="error rate 5%")
    await promotion.look()
    await promotion.pass_time(timedelta(minutes=1))
    site.merge(1)
    await promotion.pass_time(timedelta(minutes=1))
    promotion.answer()
    await promotion.go_on()
    flagged = promotion.condition("MergedOutOfBand")
    assert flagged is not None
    assert flagged.message.endswith(f"by {PERSON} although it was held at the time")


async def test_a_change_of_the_base_is_no_merge_of_the_promotion(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    site.repository.git("branch", "elsewhere", "main")
    site.retarget(1, "elsewhere")
    await promotion.look()
    assert "is to be merged into elsewhere instead of main" in promotion.message
    site.merge(1)
    await promotion.look()
    assert promotion.failed is not None
    assert promotion.failed.reason == "MergedElsewhere"


@EVERYWHERE
@pytest.mark.parametrize("of_others", [False, True])
async def test_a_superseded_proposal_is_closed_and_its_branch_goes_unless_others_work_on_it(
    promotions: Promotions, site: Site, of_others: bool
) -> None:
    promotion = await promotions.proposed()
    if of_others:
        site.repository.commit({"README": "theirs"}, branch=BRANCH)
    assert not await promotion.supersede()
    assert site.proposals()[1].state == "closed"
    assert "Bundle my-app-1 is superseded" in site.proposals()[1].comments[0]
    assert (BRANCH in site.repository.branches()) is of_others


async def test_a_new_pull_request_that_the_host_does_not_show_yet_is_asked_for_again(
    promotions: Promotions, site: GiteaSite
) -> None:
    hidden = [3]

    def hide(request: Any) -> Any:
        if request.path == "/pulls/1" and request.method == "GET" and hidden[0]:
            hidden[0] -= 1
            return 404, {"message": "not found"}
        return None

    site.fake.outage = hide
    promotion = promotions.begin()
    await promotion.until(lambda: promotion.message.startswith("waits for"))
    assert promotion.waits
    assert hidden == [0]
