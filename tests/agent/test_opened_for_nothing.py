"""A host that answers success to an opening and makes nothing costs a promotion a moment and not its end."""

from __future__ import annotations

import pytest

from kardinal.promotion.api.names import branch_name
from tests.agent.sites import GiteaSite
from tests.agent.without_server import Promotions
from tests.support.fake_gitea import Pull, Reply, Request
from tests.support.names import DEV, TEAM


@pytest.mark.parametrize("made_later", [False, True], ids=["never made", "made after the answer"])
async def test_pull_request_that_was_answered_and_not_made_is_opened_again(
    promotions: Promotions, site: GiteaSite, *, made_later: bool
) -> None:
    """The request that was lost on the way may be done after all, before the next attempt."""
    gitea = site.fake
    lied: list[Pull] = []

    def lying(request: Request) -> Reply | None:
        if (request.method, request.path) == ("POST", "/pulls") and not lied:
            body = request.body
            head = gitea.repository.head(request.body["head"])
            now = promotions.clock.now()
            lied.append(Pull(1, body["title"], body["body"], body["head"], body["base"], head, now))
            return 201, gitea.shown(lied[0])
        if made_later and lied and (request.method, request.path) == ("POST", "/pulls"):
            gitea.pulls[1] = lied[0]
        return None

    gitea.outage = lying
    promotion = promotions.begin()
    await promotion.until(lambda: promotion.waits)
    assert promotion.status.pull_request is not None
    assert promotion.status.pull_request.number == 1
    assert [pull.head for pull in gitea.pulls.values()] == [branch_name(TEAM, "my-app-1", DEV)]
    assert len(gitea.asked("POST /pulls")) == 2
