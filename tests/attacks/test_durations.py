"""Attacks by durations that have no sum with a moment."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from kardinal.kube import Invalid
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject
from kardinal.objects.duration import DurationError, parse_duration
from kardinal.promotion.kinds import PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.main import main
from tests.agent.promotion_steps import create, promotion_step, reached, start_agent
from tests.bundles.reading import condition
from tests.support.names import DEV, TEAM
from tests.support.objects import environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

ENDLESS = "999999999h"
A_YEAR = "8760h"
REPOSITORY = "https://git.example.com/acme/gitops.git"


def with_timeout(timeout: str) -> JsonObject:
    return pipeline(REPOSITORY, provider="git", environments=[environment(DEV, health={"timeout": timeout})])


def with_interval(interval: str) -> JsonObject:
    return gate("guard", "schedule.hour < 25", namespace=TEAM, recheckInterval=interval)


def with_limit(limit: str) -> JsonObject:
    step = {"uses": "git-clone", "timeout": limit}
    return pipeline(REPOSITORY, provider="git", environments=[environment(DEV, steps=[step])])


@pytest.mark.parametrize("made", [with_timeout, with_interval, with_limit])
async def test_a_duration_of_more_than_a_year_is_refused(world: World, made: Any) -> None:
    resource = POLICY_GATE if made is with_interval else PIPELINE
    for text in (ENDLESS, "8760h1ms", "999999999h999999999h", "1s999999999m", "999999999.5m1s", "100000h"):
        with pytest.raises(Invalid, match="must be at most 8760h"):
            await world.client.create(resource, made(text))
    for text in (A_YEAR, "1.123456789h", "525600m", "999999999ms"):
        await world.client.apply(resource, made(text), field_manager="test")


@pytest.mark.parametrize("text", [ENDLESS, "8760h0.001s", "525601m"])
def test_a_duration_of_more_than_a_year_is_none_to_the_parser(text: str) -> None:
    with pytest.raises(DurationError, match="write at most 8760h"):
        parse_duration(text)
    assert parse_duration(A_YEAR) == timedelta(days=365)


@pytest.mark.parametrize("option", ["--git-transfer-max", "--scm-poll-interval"])
def test_an_option_of_more_than_a_year_is_refused(option: str) -> None:
    done = CliRunner().invoke(main, [option, ENDLESS])
    assert done.exit_code == 2
    assert "write at most 8760h" in done.output


@asynccontextmanager
async def earlier_schemas(world: World) -> AsyncIterator[None]:
    """Let the API server take what it did before it knew of the bound."""
    kept = {
        name: await world.client.get(CUSTOM_RESOURCE_DEFINITION, name)
        for name in (f"{resource.plural}.{resource.group}" for resource in (PIPELINE, POLICY_GATE, PROMOTION_STEP))
    }
    for name, definition in kept.items():
        spec = without_bounds(copy.deepcopy(definition["spec"]))
        await world.client.patch(CUSTOM_RESOURCE_DEFINITION, name, None, {"spec": spec})
    await world.settle()
    yield
    for name, definition in kept.items():
        await world.client.patch(CUSTOM_RESOURCE_DEFINITION, name, None, {"spec": definition["spec"]})
    await world.settle()


def without_bounds(node: Any) -> Any:
    if isinstance(node, list):
        return [without_bounds(item) for item in node]
    if not isinstance(node, dict):
        return node
    rules = node.get("x-kubernetes-validations")
    if isinstance(rules, list) and any("duration(self)" in rule["rule"] for rule in rules):
        node.pop("x-kubernetes-validations")
    return {key: without_bounds(value) for key, value in node.items()}


async def test_stored_duration_beyond_the_bound_goes_on_with_a_message(world: World) -> None:
    async with earlier_schemas(world):
        await world.apply(with_timeout(ENDLESS), with_interval(ENDLESS))
    await start_controller(world, standalone=False)
    told = await world.wait_for(PIPELINE, "my-app", lambda obj: condition(obj, "DurationTooLong") is not None)
    warned = condition(told, "DurationTooLong")
    assert warned is not None
    assert warned["message"].startswith("spec.environments[0].health.timeout is longer than 8760h and counts as 8760h")
    found = await world.wait_for(POLICY_GATE, "guard", lambda obj: condition(obj, "Valid") is not None)
    valid = condition(found, "Valid")
    assert valid is not None
    assert valid["reason"] == "Ineffective"
    assert "spec.recheckInterval is longer than 8760h" in valid["message"]
    # The field alone has to be mended, and the rest of the object may be changed before.
    await world.client.patch(PIPELINE, "my-app", TEAM, {"spec": {"historyLimit": 3}})
    await world.apply(with_timeout(A_YEAR))
    await world.wait_for(PIPELINE, "my-app", lambda obj: condition(obj, "DurationTooLong") is None)


async def test_a_step_that_was_stored_with_more_is_carried_out(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    health = {"type": "resource", "timeout": ENDLESS}
    made = promotion_step(repository)
    made["spec"]["health"] |= health
    async with earlier_schemas(world):
        await create(world, made)
    await reached(world, "HealthChecking")
    step = await world.get(PROMOTION_STEP, "my-app-1-" + DEV)
    assert step["status"]["healthDeadline"] < "2100"
