"""Holidays of a ConfigMap: who can write it, and what a gate does without it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal.promotion.kinds import POLICY_GATE
from kardinal_controller.program import ControlPlane
from tests.bundles.scripted_agent import controller
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, POLICIES, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

__all__ = ["controller"]

INSTANCE = f"app-1-{DEV}-holiday"
TODAY = "2026-03-03"


def says(reason: str, *, ready: bool = False) -> Any:
    def holds(obj: JsonObject) -> bool:
        status = obj.get("status", {})
        return status.get("ready") is ready and reason in status.get("reason", "")

    return holds


def holidays(dates: str, namespace: str = POLICIES) -> JsonObject:
    metadata = {"name": "holidays", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"dates": dates}}


async def allow(world: World, namespace: str = POLICIES) -> None:
    """Let the controller read the ConfigMap, as its Role in deploy/ does."""
    for document in documents_of("holidays/namespace.yaml"):
        placed = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
        await world.client.apply(RESOURCES[document["kind"]], placed, field_manager="test")


async def write(world: World, config_map: JsonObject) -> None:
    await world.client.apply(CONFIG_MAP, config_map, field_manager="test", force=True)


async def promote(world: World) -> None:
    held = gate(
        "holiday", "!schedule.isHoliday", applies_to=DEV, namespace=POLICIES, holidays="holidays", recheckInterval="1m"
    )
    await world.apply(pipeline("file:///repo"), held)
    await world.settle()
    await world.apply(bundle("app-1"))


@pytest.mark.virtual_time("minutes until an edit is noticed")
async def test_gate_follows_the_dates_of_its_config_map(world: World) -> None:
    await allow(world)
    await write(world, holidays("2026-12-25\n"))
    await start_controller(world, standalone=False)
    await promote(world)
    opened = await world.wait_for(POLICY_GATE, INSTANCE, says("schedule.isHoliday = false", ready=True))
    # Who edits the ConfigMap is not seen at once: the answer counts for two intervals.
    assert opened["status"]["nextTransitionAt"] == "2026-03-03T10:02:00Z"
    await write(world, holidays(f"{TODAY}\n"))
    await world.live(timedelta(minutes=1))
    await world.wait_for(POLICY_GATE, INSTANCE, says("schedule.isHoliday = true"))


@pytest.mark.virtual_time("minutes until a correction is noticed")
@pytest.mark.parametrize(
    ("dates", "reason"),
    [(None, "does not exist"), ("today", "line 1 is no date"), (f"{TODAY}\n" * 2001, "2,000")],
)
async def test_config_map_that_is_missing_or_malformed_closes_the_gate(
    world: World, dates: str | None, reason: str
) -> None:
    await allow(world)
    if dates is not None:
        await write(world, holidays(dates))
    await start_controller(world, standalone=False)
    await promote(world)
    await world.wait_for(POLICY_GATE, INSTANCE, says(reason))
    await write(world, holidays(""))
    await world.live(timedelta(minutes=1))
    await world.wait_for(POLICY_GATE, INSTANCE, says("schedule.isHoliday = false", ready=True))


async def test_config_map_of_the_team_answers_no_gate_of_the_organisation(world: World) -> None:
    await allow(world)
    await allow(world, TEAM)
    await write(world, holidays("", namespace=TEAM))
    await start_controller(world, standalone=False)
    await promote(world)
    await world.wait_for(POLICY_GATE, INSTANCE, says(f"ConfigMap {POLICIES}/holidays does not exist"))


async def test_controller_without_the_role_closes_the_gate_and_says_which(
    world: World, controller: ControlPlane
) -> None:
    await promote(world)
    await world.wait_for(POLICY_GATE, INSTANCE, says("deploy/holidays/namespace.yaml allows it"))


async def test_template_with_an_unknown_time_zone_is_invalid(world: World, controller: ControlPlane) -> None:
    await world.apply(
        pipeline("file:///repo"), gate("zone", "schedule.hour > 3", applies_to=DEV, timeZone="Mars/Phobos")
    )
    await world.settle()
    status = (await world.get(POLICY_GATE, "zone"))["status"]
    assert [(each["status"], each["reason"]) for each in status["conditions"]] == [("False", "InvalidTimeZone")]
    await world.apply(bundle("app-1"))
    await world.wait_for(POLICY_GATE, f"app-1-{DEV}-zone", says("there is no time zone Mars/Phobos"))
