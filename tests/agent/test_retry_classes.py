"""Each class of answer of a host is met for ever, three times or once, as docs/design/decisions.md says.

One answer of each class is given here; `tests/hosts` says which answers are of which class, and `test_retries` what
follows each.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from tests.agent.sites import GitHubSite
from tests.agent.without_server import HostedPromotion, Promotions
from tests.hosts.fakes.faults import Fault
from tests.support.names import DEV
from tests.support.repository import GitRepository

PULLS = "/pulls$"
MERGE = "/pulls/1/merge$"
CONFLICT = {"message": "Merge conflict"}
TOO_LARGE = [{"body": "x" * 2**22}]
BASE = {"message": "Validation Failed", "errors": [{"field": "base", "code": "invalid"}]}
FOR_EVER = 1_000
OFTEN = 5
"""More attempts than any class has that has a number of them."""

pytestmark = pytest.mark.parametrize("site", ["github"], indirect=True)


async def met(promotions: Promotions, site: GitHubSite, fault: Fault, **spec: Any) -> HostedPromotion:
    """Begin a promotion at a host that has a fault."""
    site.server.faults.append(fault)
    promotion = promotions.begin(**spec)
    await promotion.go_on()
    return promotion


def attempts(promotion: HostedPromotion) -> int:
    return promotion.status.retry.attempts if promotion.status.retry else 0


@dataclass
class LostRace(Fault):
    """A commit of others that lands on the base as the merge is asked for, and is what the host reports."""

    repository: GitRepository | None = None

    def meets(self, method: str, path: str) -> bool:
        found = super().meets(method, path)
        if found and self.repository is not None:
            overlay = f"environments/{DEV}/kustomization.yaml"
            self.repository.commit({overlay: self.repository.read(overlay).replace("1.0.0", "1.0.5")})
        return found


async def test_transient_failure_is_waited_for_however_often_it_comes(promotions: Promotions, site: GitHubSite) -> None:
    fault = Fault("POST", PULLS, status=502, times=FOR_EVER)
    promotion = await met(promotions, site, fault)
    await promotion.until(lambda: fault.met > OFTEN)
    assert (promotion.status.state, attempts(promotion) >= OFTEN) == ("Promoting", True)
    fault.times = 0
    await promotion.until(lambda: promotion.waits)


async def test_failure_a_person_must_mend_is_held_however_long_it_takes(
    promotions: Promotions, site: GitHubSite
) -> None:
    denied = {"message": "Resource not accessible by personal access token"}
    fault = Fault("POST", PULLS, status=403, body=denied, times=FOR_EVER)
    promotion = await met(promotions, site, fault)
    await promotion.until(lambda: fault.met > OFTEN)
    assert promotion.held == ("True", "Blocked")
    fault.times = 0
    await promotion.until(lambda: promotion.waits)


async def test_an_answer_that_nothing_is_known_of_is_met_three_times(promotions: Promotions, site: GitHubSite) -> None:
    fault = Fault("POST", PULLS, status=418, times=FOR_EVER)
    promotion = await met(promotions, site, fault)
    await promotion.until(lambda: promotion.failed)
    assert fault.met == 3


async def test_unknown_at_the_host_is_asked_for_a_minute(promotions: Promotions, site: GitHubSite) -> None:
    unknown = {"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}
    fault = Fault("POST", PULLS, status=422, body=unknown, times=FOR_EVER)
    promotion = await met(promotions, site, fault)
    begun = promotions.clock.now()
    await promotion.until(lambda: promotion.failed)
    assert timedelta(seconds=50) < promotions.clock.now() - begun < timedelta(minutes=4)
    assert 3 < fault.met < 12


async def test_final_refusal_of_a_host_is_asked_once(promotions: Promotions, site: GitHubSite) -> None:
    fault = Fault("POST", PULLS, status=422, body=BASE, times=FOR_EVER)
    promotion = await met(promotions, site, fault)
    assert promotion.failed is not None
    assert fault.met == 1


async def test_a_conflict_that_a_host_reports_at_the_merge_is_met_however_often_it_comes(
    promotions: Promotions, site: GitHubSite
) -> None:
    fault = Fault("PUT", MERGE, status=405, body=CONFLICT, times=FOR_EVER)
    promotion = await met(promotions, site, fault, approval="auto", pr=True)
    await promotion.until(lambda: fault.met > OFTEN)
    assert attempts(promotion) >= OFTEN
    assert f"{site.host} answered 405 to merge: Merge conflict" in promotion.message
    fault.times = 0
    await promotion.until(lambda: promotion.landed)


async def test_a_proposal_that_conflicts_at_the_merge_is_made_again_and_merged(
    promotions: Promotions, site: GitHubSite
) -> None:
    fault = LostRace("PUT", MERGE, status=405, body=CONFLICT, repository=site.repository)
    promotion = await met(promotions, site, fault, approval="auto", pr=True)
    await promotion.until(lambda: promotion.landed)
    assert fault.met == 1
    assert [one.state for one in site.proposals().values()] == ["merged"]
    assert "1.1.0" in site.repository.read(f"environments/{DEV}/kustomization.yaml")


async def test_an_answer_that_is_too_large_is_met_once(promotions: Promotions, site: GitHubSite) -> None:
    fault = Fault("POST", PULLS, status=201, body=TOO_LARGE, times=FOR_EVER)
    promotion = await met(promotions, site, fault)
    assert promotion.failed is not None
    assert "is larger than 4 MiB" in promotion.message
    assert fault.met == 1


async def test_a_list_that_is_too_large_is_asked_for_in_smaller_pages(promotions: Promotions, site: GitHubSite) -> None:
    fault = Fault("GET", PULLS, status=200, body=TOO_LARGE)
    promotion = await met(promotions, site, fault)
    assert promotion.waits
    assert fault.met == 1
    assert promotion.status.retry is None
