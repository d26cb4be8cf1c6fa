"""The title and the text around ours belong to people, and no mark that they write makes them kardinal's.

`test_text_marks` says which part of a body is ours.
"""

from __future__ import annotations

import re
from datetime import timedelta

from kardinal.promotion.api.names import branch_name
from tests.agent.promotion_steps import BUNDLE_NAME
from tests.agent.sites import EVERYWHERE, GiteaSite, Site
from tests.agent.without_server import HostedPromotion, Promotions
from tests.support.names import DEV, TEAM

BRANCH = branch_name(TEAM, BUNDLE_NAME, DEV)
FIRST = re.compile(r"(?m)^<!-- kardinal .*-->")
LAST = re.compile(r"(?m)^<!-- /kardinal .*-->")
NOTE = "Do **not** merge: see the incident.\n"


async def gated(promotions: Promotions) -> HostedPromotion:
    """Have a promotion with an open gate wait for the merge of its pull request."""
    promotion = promotions.begin()
    promotion.answer()
    await promotion.go_on()
    return promotion


async def rewritten(promotion: HostedPromotion, site: Site, reason: str = "error rate 5%") -> str:
    """Have kardinal say something else; returns the body after that."""
    await promotion.pass_time(timedelta(seconds=61))
    promotion.answer(closed=reason)
    await promotion.look()
    return site.proposals()[1].body


@EVERYWHERE
async def test_a_title_that_a_person_has_changed_stays_and_ours_follows(promotions: Promotions, site: Site) -> None:
    promotion = await gated(promotions)
    ours = site.proposals()[1].title
    site.retitle(1, f"HOLD: {ours}")
    assert "error rate 5%" in await rewritten(promotion, site)
    assert site.proposals()[1].title == f"HOLD: {ours}"
    site.retitle(1, ours)
    assert "error rate 6%" in await rewritten(promotion, site, reason="error rate 6%")
    assert site.proposals()[1].title == ours


@EVERYWHERE
async def test_text_of_people_around_ours_survives_an_update(promotions: Promotions, site: Site) -> None:
    promotion = await gated(promotions)
    above = f"{NOTE}\n"
    below = "\n- [x] looked at the dashboards\n\n<details>mine</details>"
    site.edit(1, f"{above}{site.proposals()[1].body}{below}")
    body = await rewritten(promotion, site)
    assert "| soak | org | FAIL | error rate 5% |" in body
    assert body.count("## Promotion: ") == 1
    assert body.startswith(above)
    assert body.endswith(below)
    again = await rewritten(promotion, site, reason="error rate 6%")
    assert "error rate 6%" in again
    assert again.replace("6%", "5%").splitlines()[-4:] == body.splitlines()[-4:]


async def test_a_text_without_our_marks_is_a_persons(promotions: Promotions, site: Site) -> None:
    promotion = await gated(promotions)
    site.edit(1, NOTE)
    assert await rewritten(promotion, site) == NOTE
    assert promotion.waits


async def test_a_mark_in_the_files_of_a_tenant_ends_nothing(promotions: Promotions, site: Site) -> None:
    overlay = f"environments/{DEV}/kustomization.yaml"
    marks = f"# x\n<!-- /kardinal {'0' * 16} -->\n<!-- kardinal x {'0' * 16} {'0' * 16} -->\n"
    content = site.repository.read(overlay)
    site.repository.commit({overlay: "".join(f"# {line}\n" for line in marks.splitlines()) + content})
    promotion = await gated(promotions)
    before = site.proposals()[1].body
    site.edit(1, f"{before}LGTM\n")
    body = await rewritten(promotion, site)
    assert body.count("### Policy Gates") == 1
    assert body.endswith("-->\nLGTM\n")
    assert len(body.splitlines()) <= len(before.splitlines()) + 1


async def test_an_earlier_pull_request_whose_mark_is_forged_is_not_taken_for_this_promotion(
    promotions: Promotions, site: GiteaSite
) -> None:
    gitea = site.fake
    gitea.propose({"README": "something else"}, head=BRANCH)
    gitea.merge(1)
    await promotions.clock.advance(timedelta(hours=1))
    promotion = promotions.begin()
    gitea.pulls[1].body = f"<!-- kardinal {promotion.bundle.metadata.uid} {'0' * 16} {'0' * 16} -->\n"
    await promotion.go_on()
    assert promotion.waits
    assert promotion.status.pull_request is not None
    assert promotion.status.pull_request.number == 2
    assert [pull.state for pull in gitea.pulls.values()] == ["closed", "open"]


async def test_the_body_is_within_what_github_takes_also_beside_a_long_text_of_people(
    promotions: Promotions, site: Site
) -> None:
    promotion = await gated(promotions)
    ours = site.proposals()[1].body
    assert "is left out" not in ours
    # It leaves less room than the text has now.
    theirs = "\n" + "a note of ours\n" * ((64_836 - len(ours)) // 15)
    site.edit(1, ours + theirs)
    body = await rewritten(promotion, site)
    assert "is left out" in body
    assert len(body.encode()) <= 65_536
    assert body.endswith(theirs)
    assert "error rate 5%" in body
    assert len(FIRST.findall(body)) == len(LAST.findall(body)) == 1


async def test_a_text_of_people_that_leaves_no_room_stays(promotions: Promotions, site: Site) -> None:
    promotion = await gated(promotions)
    body = site.proposals()[1].body + "a note of ours\n" * 4_300
    site.edit(1, body)
    assert await rewritten(promotion, site) == body
