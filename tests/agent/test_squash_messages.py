"""A squash that kardinal asks a host for has the message of the promotion, and so its trailers."""

from __future__ import annotations

from tests.agent.promotion_steps import BUNDLE_NAME
from tests.agent.sites import EVERYWHERE, GiteaSite, Site
from tests.agent.without_server import Promotions
from tests.support.names import DEV, TEAM


@EVERYWHERE
async def test_the_commit_of_a_squash_has_subject_and_trailers_of_the_promotion(
    promotions: Promotions, site: Site
) -> None:
    promotion = promotions.begin(approval="auto", pr=True, git={"mergeMethod": "squash"})
    await promotion.until(lambda: promotion.landed)
    newest = site.repository.promotions(DEV)[0]
    assert newest.sha == promotion.status.commit
    assert newest.subject.startswith(f"Promote my-app 1.1.0 to {DEV}")
    assert newest.trailers["Kardinal-Bundle"] == BUNDLE_NAME
    assert newest.trailers["Kardinal-Step"] == f"{TEAM}/{BUNDLE_NAME}-{DEV}"


async def test_a_squash_that_is_the_default_of_the_repository_has_them_as_well(
    promotions: Promotions, site: GiteaSite
) -> None:
    site.fake.default_method = "squash"
    promotion = promotions.begin(approval="auto", pr=True)
    await promotion.until(lambda: promotion.landed)
    assert site.fake.merge_methods == ["squash"]
    assert [one.sha for one in site.repository.promotions(DEV)] == [promotion.status.commit]
