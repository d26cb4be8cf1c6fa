"""A person turns on the auto-merge of the host on a proposal: of gates it knows the commit status, and nothing else."""

from __future__ import annotations

import pytest

from tests.agent.sites import PERSON, GitHubSite, GitLabSite, Site
from tests.agent.without_server import HostedPromotion, Promotions

pytestmark = [pytest.mark.parametrize("site", ["github", "gitlab"], indirect=True), pytest.mark.of_hosts]


def require(site: Site, *checks: str) -> None:
    """Have the branch `main` require these checks and no others."""
    if isinstance(site, GitHubSite):
        site.project.required_contexts["main"] = set(checks)
    else:
        assert isinstance(site, GitLabSite)
        site.project.required_statuses = set(checks)


def auto_merge(site: Site) -> None:
    """Do what the host does at each change: merge for the person who asked for it, if its rules allow that."""
    if site.proposals()[1].state != "open":
        return
    if isinstance(site, GitHubSite):
        pull = site.project.pulls[1]
        site.project.follow(pull)
        allowed = not site.project.obstacle(pull)
    else:
        assert isinstance(site, GitLabSite)
        allowed = site.project.status(site.project.requests[1]) == "mergeable"
    if allowed:
        site.merge(1)


async def held_by_a_gate(promotions: Promotions, site: Site, *required: str) -> HostedPromotion:
    """Have a promotion wait for a check, and then close its gate."""
    require(site, "ci", *required)
    promotion = promotions.begin(approval="auto", pr=True)
    promotion.answer()
    await promotion.go_on()
    assert promotion.waits
    promotion.answer(closed="error rate 5%")
    await promotion.look()
    assert site.status(1, "kardinal") == ("pending", "held by gate soak: error rate 5%")
    return promotion


async def test_host_waits_for_the_gate_where_the_status_is_required(promotions: Promotions, site: Site) -> None:
    promotion = await held_by_a_gate(promotions, site, "kardinal")
    require(site, "kardinal")
    auto_merge(site)
    await promotion.look()
    assert site.proposals()[1].state == "open"
    promotion.answer()
    await promotion.look()
    auto_merge(site)
    await promotion.until(lambda: promotion.landed)
    assert promotion.condition("MergedOutOfBand") is None


async def test_merge_past_the_gate_is_flagged_where_the_status_is_not_required(
    promotions: Promotions, site: Site
) -> None:
    promotion = await held_by_a_gate(promotions, site)
    require(site)
    auto_merge(site)
    assert site.proposals()[1].state == "merged"
    await promotion.go_on()
    assert promotion.landed
    flagged = promotion.condition("MergedOutOfBand")
    assert flagged is not None
    assert f"merged by {PERSON}" in flagged.message
    assert flagged.message.endswith("error rate 5%")
