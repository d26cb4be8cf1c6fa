"""The log of a promotion: at info each change, at debug each decision with its reason, and no secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
import structlog

from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.bundles.reading import phase
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World

LATER = "schedule.hour >= 11"


@pytest.fixture
def lines() -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the lines of the log so far, with what is bound to their task."""
    capture = structlog.testing.LogCapture()
    before = structlog.get_config()["processors"]
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, capture]
    )
    yield capture.entries
    structlog.configure(processors=before)


@pytest.mark.virtual_time("a gate that time opens")
async def test_a_promotion_can_be_read_from_the_log_alone(
    world: World, repository: GitRepository, lines: Sequence[Mapping[str, Any]]
) -> None:
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    way = pipeline(repository, provider="git", environments=[DEV, environment(PROD)])
    await world.apply(way, gate("late", LATER), bundle("app-1"))
    await world.wait_for(POLICY_GATE, f"app-1-{PROD}-late", lambda found: found.get("status", {}).get("ready") is False)
    await world.live(timedelta(hours=1, minutes=1))
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.settle()

    told = [line for line in lines if line["log_level"] == "info" and line.get("namespace") == TEAM]
    promotions = [
        (line["environment"], line["before"], line["state"])
        for line in told
        if line["event"] == "promotion changed its state"
    ]
    for name in (DEV, PROD):
        assert [states for where, *states in promotions if where == name][-1] == ["HealthChecking", "Verified"]
    assert promotions.index((DEV, "HealthChecking", "Verified")) < min(
        index for index, (name, *_) in enumerate(promotions) if name == PROD
    )
    gates = [(line["event"], line["environment"]) for line in told if line["event"].startswith("gate ")]
    assert gates == [("gate closed", PROD), ("gate opened", PROD)]
    phases = [(line["before"], line["phase"]) for line in told if line["event"] == "Bundle changed its phase"]
    assert [phases[0][0], phases[-1][1]] == [None, "Verified"]
    applied = [line["object"] for line in told if line["event"] == "an object of a Graph was applied"]
    assert any(f"app-1-{PROD}" in name for name in applied)

    decisions = [line for line in lines if line["event"] == "decided"]
    assert {line["controller"] for line in decisions} >= {"bundle", "promotionstep"}
    assert all(line["log_level"] == "debug" and line["reason"] for line in decisions)
    evaluated = [line for line in lines if line["event"] == "gate evaluated"]
    assert {line["result"] for line in evaluated} == {"fail", "pass"}
    assert all(line["log_level"] == "debug" for line in lines if line["event"] in ("walked", "reconciled"))
