"""The title and the text around ours belong to people, and no mark that they write makes them kardinal's."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from kardinal.api import BUNDLE
from kardinal.api.names import branch_name
from kardinal.objects import JsonObject
from tests.agent.hosted import git_secret, hosted_step
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
)
from tests.agent.sites import EVERYWHERE, Site
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV, TEAM
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("minutes between texts")

GATE = f"my-app-1-{DEV}-soak"
BRANCH = branch_name(TEAM, BUNDLE_NAME, DEV)
FIRST, LAST = re.compile(r"(?m)^<!-- kardinal .*-->"), re.compile(r"(?m)^<!-- /kardinal .*-->")
NOTE = "Do **not** merge: see the incident.\n"


async def gated(world: World, site: Site) -> JsonObject:
    """Have a promotion with an open gate wait for the merge of its pull request; returns its Bundle."""
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    await create(world, hosted_step(site, requiredGates=[GATE]))
    await reached(world, "WaitingForMerge")
    return await world.get(BUNDLE, BUNDLE_NAME)


async def rewritten(world: World, site: Site, reason: str = "error rate 5%") -> str:
    """Have kardinal say something else; returns the body after that."""
    await world.live(timedelta(seconds=61))
    await close_gate(world, GATE, reason=reason)
    await world.settle()
    return site.proposals()[1].body


@EVERYWHERE
async def test_a_title_that_a_person_has_changed_stays_and_ours_follows(world: World, site: Site) -> None:
    await gated(world, site)
    ours = site.proposals()[1].title
    site.retitle(1, f"HOLD: {ours}")
    assert "error rate 5%" in await rewritten(world, site)
    assert site.proposals()[1].title == f"HOLD: {ours}"
    site.retitle(1, ours)
    assert "error rate 6%" in await rewritten(world, site, reason="error rate 6%")
    assert site.proposals()[1].title == ours


@EVERYWHERE
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_what_people_write_above_and_below_our_text_is_kept_when_ours_is_written_anew(
    world: World, site: Site, ending: str
) -> None:
    await gated(world, site)
    above, below = f"{NOTE}\n", "\n- [x] looked at the dashboards\n\n<details>mine</details>"
    site.edit(1, f"{above}{site.proposals()[1].body}{below}".replace("\n", ending))
    body = await rewritten(world, site)
    assert "| soak | org | FAIL | error rate 5% |" in body
    assert body.count("## Promotion: ") == 1
    assert body.startswith(above.replace("\n", ending))
    assert body.endswith(below.replace("\n", ending))
    again = await rewritten(world, site, reason="error rate 6%")
    assert "error rate 6%" in again
    assert again.replace("6%", "5%").splitlines()[-4:] == body.splitlines()[-4:]


async def test_a_text_without_our_marks_is_a_persons(world: World, site: Site) -> None:
    await gated(world, site)
    site.edit(1, NOTE)
    assert await rewritten(world, site) == NOTE
    assert (await state(world))["state"] == "WaitingForMerge"


async def test_the_text_of_the_version_before_is_written_anew_between_what_people_added(
    world: World, site: Site
) -> None:
    made = await gated(world, site)
    body = site.proposals()[1].body
    old = LAST.sub("", FIRST.sub("", body)).strip()
    single = f"<!-- kardinal {made['metadata']['uid']} {'0' * 16} -->"
    site.edit(1, f"{NOTE}\n{old}\n\n{single}\n\nLGTM\n")
    title = site.proposals()[1].title
    site.retitle(1, f"WIP: {title}")
    body = await rewritten(world, site)
    assert body.startswith(f"{NOTE}\n<!-- kardinal ")
    assert body.endswith(" -->\n\nLGTM\n")
    assert body.count("## Promotion: ") == 1
    assert "error rate 5%" in body
    assert single not in body
    assert site.proposals()[1].title == f"WIP: {title}"


@pytest.mark.parametrize("forgery", ["end", "begin", "pair", "old", "copied begin", "copied pair"])
async def test_marks_that_people_forge_take_nothing_of_theirs(world: World, site: Site, forgery: str) -> None:
    made = await gated(world, site)
    uid = made["metadata"]["uid"]
    body = site.proposals()[1].body
    theirs = {
        "end": f"{NOTE}<!-- /kardinal {'0' * 16} -->\n",
        "begin": f"<!-- kardinal {uid} {'0' * 16} {'0' * 16} -->\n{NOTE}",
        "pair": f"<!-- kardinal other {'0' * 16} {'0' * 16} -->\n{NOTE}<!-- /kardinal {'0' * 16} -->\n",
        "copied begin": f"{FIRST.findall(body)[0]}\n{NOTE}",
        "copied pair": f"{NOTE}{LAST.findall(body)[0]}\n",
        "old": f"## Promotion: mine\n{NOTE}\n<!-- kardinal {uid} {'0' * 16} -->\n",
    }[forgery]
    site.edit(1, f"{theirs}{body}{theirs}")
    written = await rewritten(world, site)
    assert written.startswith(theirs)
    assert written.endswith(theirs)
    assert written.count("error rate 5%") == 1


async def test_a_mark_in_the_files_of_a_tenant_ends_nothing(world: World, site: Site) -> None:
    overlay = f"environments/{DEV}/kustomization.yaml"
    marks = f"# x\n<!-- /kardinal {'0' * 16} -->\n<!-- kardinal x {'0' * 16} -->\n"
    content = site.repository.read(overlay)
    site.repository.commit({overlay: "".join(f"# {line}\n" for line in marks.splitlines()) + content})
    await gated(world, site)
    before = site.proposals()[1].body
    site.edit(1, f"{before}LGTM\n")
    body = await rewritten(world, site)
    assert body.count("### Policy Gates") == 1
    assert body.endswith("-->\nLGTM\n")
    assert len(body.splitlines()) <= len(before.splitlines()) + 1


async def test_an_earlier_pull_request_whose_mark_is_forged_is_not_taken_for_this_promotion(
    world: World, gitea: FakeGitea
) -> None:
    gitea.propose({"README": "something else"}, head=BRANCH)
    gitea.merge(1)
    await world.live(timedelta(hours=1))
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await put_gate(world, GATE)
    await close_gate(world, GATE)
    made = await create(world, hosted_step(gitea, requiredGates=[GATE]))
    gitea.pulls[1].body = f"<!-- kardinal {made['metadata']['uid']} {'0' * 16} -->\n"
    await open_gate(world, GATE)
    status = await reached(world, "WaitingForMerge")
    assert status["pullRequest"]["number"] == 2
    assert [pull.state for pull in gitea.pulls.values()] == ["closed", "open"]


async def test_the_body_is_within_what_github_takes_also_beside_a_long_text_of_people(world: World, site: Site) -> None:
    await gated(world, site)
    ours = site.proposals()[1].body
    assert "is left out" not in ours
    # It leaves less room than the text has now.
    theirs = "\n" + "a note of ours\n" * ((64_836 - len(ours)) // 15)
    site.edit(1, ours + theirs)
    body = await rewritten(world, site)
    assert "is left out" in body
    assert len(body.encode()) <= 65_536
    assert body.endswith(theirs)
    assert "error rate 5%" in body
    assert len(FIRST.findall(body)) == len(LAST.findall(body)) == 1


async def test_a_text_of_people_that_leaves_no_room_stays(world: World, site: Site) -> None:
    await gated(world, site)
    body = site.proposals()[1].body + "a note of ours\n" * 4_300
    site.edit(1, body)
    assert await rewritten(world, site) == body
