"""An environment that is Verified in a cluster out of reach: what follows waits, and no soak is counted."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kardinal.objects.conditions import find_condition
from kardinal.objects.duration import parse_duration
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_local.plane import Authority, LocalPlane
from tests.agent.promotion_steps import deploy
from tests.health.test_clusters import CLUSTER, Elsewhere, elsewhere, put_secret
from tests.health.test_verified import NAME, held, until_step
from tests.support.names import DEV, STAGING
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World

__all__ = ["elsewhere"]

pytestmark = pytest.mark.local_only("the other cluster is a local plane, on the clock of this one")


async def test_a_cluster_that_is_gone_holds_what_follows_and_pauses_the_soak(
    world: World, repository: GitRepository, elsewhere: Elsewhere, authority: Authority, tmp_path: Path
) -> None:
    await start_controller(world)
    await put_secret(world, elsewhere.kubeconfig)
    await deploy(world, client=elsewhere.client)
    proof = {"type": "resource", "resource": {"name": APPLICATION}, "cluster": CLUSTER}
    review = environment(STAGING, approval="pr-review")
    await world.apply(pipeline(repository, environments=[environment(DEV, health=proof), review]), bundle(NAME))
    verified = datetime.fromisoformat((await until_step(world, DEV, state="Verified"))["verifiedAt"])
    await until_step(world, STAGING, state="WaitingForMerge")
    await world.live(timedelta(minutes=5))
    port = elsewhere.plane.port
    await elsewhere.plane.stop()
    status = await until_step(world, DEV, healthy=False)
    unseen = find_condition(status, "Degraded") or {}
    assert (status["state"], unseen["status"], unseen["reason"]) == ("Verified", "Unknown", "CannotBeSeen")
    assert f"cluster {CLUSTER} is unreachable since " in unseen["message"]
    assert timedelta(minutes=5) <= parse_duration(status["healthyFor"]) <= world.clock.now() - verified
    waiting = await world.wait_for(PROMOTION_STEP, f"{NAME}-{STAGING}", lambda obj: bool(held(obj)))
    assert "is unreachable since" in (held(waiting) or "")
    await world.live(timedelta(minutes=10))
    assert await until_step(world, DEV) == status
    plane = await LocalPlane.start(tmp_path / "elsewhere", clock=world.clock, authority=authority, port=port)
    found = await until_step(world, DEV, healthy=True)
    assert found["healthyFor"] == status["healthyFor"]
    await world.wait_for(PROMOTION_STEP, f"{NAME}-{STAGING}", lambda obj: not held(obj))
    await plane.stop()
