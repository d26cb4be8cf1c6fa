"""A chain on a server with faults: conflicts, refusals, lost answers, watches that break off and lag."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal_supplychain.api.kinds import WORKLOAD
from tests.supplychain.chains import Chains, blueprint, conditions, config_map, resource, template, workload
from tests.supplychain.shop import is_ready, made, once_each, shop, start
from tests.support.accounts import rule
from tests.support.names import TEAM

LENGTH = 5
SEEDS = range(3)


def chain() -> list[JsonObject]:
    """Return a chain of ConfigMaps, each of which copies the one before it, with its templates."""
    templates = [template("r0", config_map("$(workload.metadata.name)$-r0", v="$(params.v)$"))]
    resources = [resource("r0")]
    for number in range(1, LENGTH):
        name = f"r{number}"
        templates.append(template(name, config_map(f"$(workload.metadata.name)$-{name}", v="$(config.v)$")))
        resources.append(resource(name, configs=[{"name": "x", "resource": f"r{number - 1}"}]))
    return [*templates, blueprint(*resources, serviceAccountRef={"name": "dev"})]


def web(value: str) -> JsonObject:
    return workload(params=[{"name": "v", "value": value}])


async def until_copied(chains: Chains, value: str) -> None:
    last = f"web-r{LENGTH - 1}"

    def is_ready(owner: JsonObject) -> bool:
        found = conditions(owner.get("status") or {})
        return len(found) == 4 and all(status == "True" for _, status, _ in found)

    await chains.world.wait_for(CONFIG_MAP, last, lambda obj: obj["data"]["v"] == value)
    await chains.world.wait_for(WORKLOAD, "web", is_ready, within=timedelta(hours=2))


@pytest.mark.local_only("only the local plane injects faults")
@pytest.mark.usefixtures("fault_seed")
@pytest.mark.parametrize("fault_seed", SEEDS)
async def test_faulty_server_ends_in_the_same_state(chains: Chains) -> None:
    await chains.account("dev", rule("*", on="configmaps"))
    for obj in chain():
        await chains.apply(obj)
    for value in ("first", "second"):
        await chains.apply(web(value))
        await until_copied(chains, value)
    made = await chains.world.objects(CONFIG_MAP, TEAM, labels="carto.run/workload-name=web")
    assert [each["metadata"]["name"] for each in made] == [f"web-r{number}" for number in range(LENGTH)]


@pytest.mark.local_only("only the local plane injects faults")
@pytest.mark.usefixtures("fault_seed")
@pytest.mark.parametrize("fault_seed", SEEDS)
async def test_faulty_server_makes_no_run_and_no_bundle_twice(chains: Chains) -> None:
    await start(chains)
    await chains.world.wait_for(WORKLOAD, "web", is_ready(1), within=timedelta(hours=2))
    values = ["a"]
    for value in "bac":
        before = await made(chains.world)
        values.append(value)
        await chains.apply(shop(value))
        await chains.restart()
        await chains.world.wait_for(WORKLOAD, "web", is_ready(len(values)), within=timedelta(hours=2))
        await chains.world.settle()
        after = await made(chains.world)
        assert before.objects <= after.objects
        assert after.images == once_each(*values)
