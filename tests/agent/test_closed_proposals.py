"""A promotion whose pull request a person has closed fails, and says who closed it where the host does."""

from __future__ import annotations

import pytest

from tests.agent.sites import EVERYWHERE, PERSON, GiteaSite, Site
from tests.agent.without_server import Promotions


@EVERYWHERE
async def test_the_person_who_closed_it_is_named(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    site.close(1)
    await promotion.look()
    assert promotion.failed is not None
    assert promotion.failed.reason == "PullRequestClosed"
    assert f"closed by {PERSON} " in promotion.failed.message


@pytest.mark.parametrize("answer", [(403, {"message": "token lacks read:issue"}), (200, "none"), (200, [])])
async def test_a_host_that_does_not_say_leaves_the_name_out(
    promotions: Promotions, site: GiteaSite, answer: tuple[int, object]
) -> None:
    gitea = site.fake
    gitea.outage = lambda request: answer if "/timeline" in request.path else None
    promotion = await promotions.proposed()
    gitea.close(1)
    await promotion.look()
    assert promotion.failed is not None
    assert "closed by an unknown user" in promotion.failed.message
    assert len(gitea.asked(r"GET /issues/1/timeline.*")) == 1
