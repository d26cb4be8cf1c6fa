"""Only so many finished Bundles of a Pipeline are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE
from kardinal_controller.pipelines.history import surplus
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import REPOSITORY, gone, phase
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support import objects
from tests.support.names import DEV
from tests.support.objects import bundle, pipeline
from tests.support.world import World

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)


async def test_the_history_limit_deletes_the_oldest_finished_bundles(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV], historyLimit=2))
    for number in range(1, 5):
        await world.apply(bundle(f"app-{number}"))
        if number == 3:
            await agent.step(f"app-3-{DEV}", state="Failed", message="broken")
            await world.wait_for(BUNDLE, "app-3", phase("Failed"))
        else:
            await agent.verify(f"app-{number}-{DEV}")
            await world.wait_for(BUNDLE, f"app-{number}", phase("Verified"))
        await world.live(timedelta(seconds=2))
    await world.apply(bundle("app-5"))
    await world.wait_for(BUNDLE, "app-5", phase("Promoting"))
    await world.settle()
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(BUNDLE)) == ["app-3", "app-4", "app-5"]
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(GRAPH)) == ["app-3", "app-4", "app-5"]


async def test_a_bundle_that_an_environment_runs_is_never_deleted(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV], historyLimit=1))
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    for number in (2, 3):
        await world.live(timedelta(seconds=2))
        await world.apply(bundle(f"app-{number}"))
        await agent.step(f"app-{number}-{DEV}", state="Failed", message="broken")
        await world.wait_for(BUNDLE, f"app-{number}", phase("Failed"))
    await world.live(timedelta(seconds=2))
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(BUNDLE)) == ["app-1", "app-3"]


async def test_a_superseded_bundle_is_deleted_when_its_last_step_has_finished(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV], historyLimit=1), bundle("app-1"))
    await agent.step(f"app-1-{DEV}", state="WaitingForMerge")
    await world.live(timedelta(seconds=2))
    await world.apply(bundle("app-2"))
    await agent.verify(f"app-2-{DEV}")
    await world.wait_for(BUNDLE, "app-2", phase("Verified"))
    await world.settle()
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Superseded"
    await agent.step(f"app-1-{DEV}", state="Failed", message="superseded")
    await world.until(lambda: gone(world, BUNDLE, "app-1"))
    assert await world.find(BUNDLE, "app-2") is not None


async def test_a_lower_limit_holds_at_once(world: World, controller: ControlPlane, agent: ScriptedAgent) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    for name in ("app-1", "app-2"):
        await world.apply(bundle(name))
        await agent.verify(f"{name}-{DEV}")
        await world.wait_for(BUNDLE, name, phase("Verified"))
        await world.live(timedelta(seconds=2))
    await world.apply(pipeline(REPOSITORY, environments=[DEV], historyLimit=1))
    await world.until(lambda: gone(world, BUNDLE, "app-1"))
    assert await world.find(BUNDLE, "app-2") is not None


def stored(number: int, ended: str, *, restores: int = 0, tag: str = "1.1.0", **verified: int) -> JsonObject:
    """Return a Bundle of a phase; `verified` says for environments how many minutes ago they were Verified with it."""
    made = objects.bundle(f"app-{number}", tag=tag)
    made["metadata"] |= {"creationTimestamp": NOW.isoformat(), "uid": f"uid-{number}"}
    if restores:
        identity = {"name": f"app-{restores}", "uid": f"uid-{restores}"}
        made["spec"]["intent"] = {"rollback": {"environments": ["dev"], "of": identity, "restores": identity}}
    environments = {
        name: {"state": "Verified", "verifiedAt": (NOW - timedelta(minutes=ago)).isoformat()}
        for name, ago in verified.items()
    }
    made["status"] = {"phase": ended, "sequence": number, "environments": environments}
    return made


@pytest.mark.parametrize(
    ("bundles", "limit", "expected"),
    [
        pytest.param([stored(1, "Failed"), stored(2, "Failed")], 2, [], id="as many as the limit"),
        pytest.param([stored(3, "Failed"), stored(1, "Superseded"), stored(2, "SkipDenied")], 1, [1, 2], id="oldest"),
        pytest.param([stored(1, "Failed"), stored(2, "Promoting"), stored(3, "Available")], 1, [], id="unfinished"),
        pytest.param([stored(1, "Verified", dev=2), stored(2, "Verified", dev=1)], 1, [1], id="replaced"),
        pytest.param([stored(1, "Verified", dev=1, prod=1), stored(2, "Failed", dev=0)], 1, [], id="runs in prod"),
        pytest.param([stored(1, "Verified", dev=1), stored(2, "Failed"), stored(3, "Failed")], 1, [2], id="runs"),
        pytest.param([stored(1, "Verified", dev=0), stored(2, "Verified", dev=1)], 1, [], id="rolled back to"),
        pytest.param([stored(1, "Verified", dev=2), stored(2, "Promoting", dev=1)], 0, [1], id="overtaken"),
        pytest.param(
            [stored(1, "Verified", tag="1", dev=3), stored(2, "Verified", tag="2", dev=2), stored(3, "Failed")],
            1,
            [],
            id="would be restored",
        ),
        pytest.param(
            [stored(number, "Verified", tag=str(number), dev=9 - number) for number in (1, 2, 3)],
            1,
            [1],
            id="two versions ago",
        ),
        pytest.param(
            [stored(1, "Verified"), stored(2, "Superseded"), stored(3, "Promoting", restores=1)],
            0,
            [2],
            id="is being restored",
        ),
    ],
)
def test_the_surplus_of_finished_bundles(bundles: list[JsonObject], limit: int, expected: list[int]) -> None:
    assert [bundle["status"]["sequence"] for bundle in surplus(bundles, limit=limit)] == expected
