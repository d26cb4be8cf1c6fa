"""Success is said of nothing but what kardinal proposes, where it proposes it, and for as long as it does."""

from __future__ import annotations

from kardinal.promotion.api.names import branch_name
from tests.agent.promotion_steps import BUNDLE_NAME
from tests.agent.sites import EVERYWHERE, Site
from tests.agent.without_server import HostedPromotion, Promotions
from tests.support.names import DEV, TEAM

BRANCH = branch_name(TEAM, BUNDLE_NAME, DEV)
CONTEXTS = ("kardinal", f"kardinal/my-app/{DEV}")


async def waiting(promotions: Promotions, site: Site) -> HostedPromotion:
    promotion = await promotions.proposed()
    assert {state for state, _ in told(site)} == {"success"}
    return promotion


def told(site: Site) -> set[tuple[str, str]]:
    return {site.status(1, context) for context in CONTEXTS}


@EVERYWHERE
async def test_commits_of_others_on_the_branch_get_no_success(promotions: Promotions, site: Site) -> None:
    promotion = await waiting(promotions, site)
    ours = site.repository.head(BRANCH)
    site.repository.commit({"environments/prod/backdoor": "x"}, branch=BRANCH)
    await promotion.look()
    assert told(site) == {("pending", f"branch {BRANCH} has commits of others, of which no gate was asked")}
    site.repository.git("update-ref", f"refs/heads/{BRANCH}", ours)
    await promotion.look()
    assert {state for state, _ in told(site)} == {"success"}


@EVERYWHERE
async def test_a_proposal_that_goes_elsewhere_gets_no_success(promotions: Promotions, site: Site) -> None:
    promotion = await waiting(promotions, site)
    site.repository.git("branch", "elsewhere", "main")
    site.retarget(1, "elsewhere")
    await promotion.look()
    ((state, description),) = told(site)
    assert state == "pending"
    assert "elsewhere" in description


@EVERYWHERE
async def test_a_superseded_proposal_loses_its_success(promotions: Promotions, site: Site) -> None:
    promotion = await waiting(promotions, site)
    site.repository.commit({"README": "theirs"}, branch=BRANCH)
    await promotion.look()
    assert not await promotion.supersede()
    assert site.proposals()[1].state == "closed"
    assert {state for state, _ in told(site)} == {"pending"}


@EVERYWHERE
async def test_the_commit_of_a_superseded_proposal_loses_its_success_with_its_branch(
    promotions: Promotions, site: Site
) -> None:
    promotion = await waiting(promotions, site)
    assert not await promotion.supersede()
    assert BRANCH not in site.repository.branches()
    ((state, description),) = told(site)
    assert (state, "superseded" in description) == ("pending", True)
