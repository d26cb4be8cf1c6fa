"""The diff that is stored and shown is that of the proposal as it is, also after it was made again."""

from __future__ import annotations

from tests.agent.sites import Site
from tests.agent.without_server import Promotions
from tests.support.names import DEV

OVERLAY = f"environments/{DEV}/kustomization.yaml"


async def test_a_proposal_that_is_made_again_has_the_diff_of_today(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    assert '-    newTag: "1.0.0"' in (promotion.status.diff or "")
    overlay = site.repository.read(OVERLAY)
    site.repository.commit({OVERLAY: overlay.replace("1.0.0", "1.0.5")})
    await promotion.look()
    diff = promotion.status.diff or ""
    assert '-    newTag: "1.0.5"' in diff
    assert '+    newTag: "1.1.0"' in diff
    body = site.proposals()[1].body
    assert '-    newTag: "1.0.5"' in body
    assert '-    newTag: "1.0.0"' not in body
    written = len(site.written())
    await promotion.look()
    assert len(site.written()) == written
    assert promotion.status.diff == diff


async def test_a_proposal_that_stays_keeps_its_diff_and_its_status(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    before = promotion.status
    site.repository.commit({"README.md": "others went on\n"})
    await promotion.look()
    assert promotion.status == before
