"""The conditions of ClusterSupplyChains and ClusterDeliveries, as operators see them."""

from __future__ import annotations

import pytest

from kardinal.objects import ResourceType
from kardinal_supplychain.api.kinds import CLUSTER_CONFIG_TEMPLATE, CLUSTER_DELIVERY, CLUSTER_SUPPLY_CHAIN
from tests.supplychain.chains import Chains, blueprint, condition, conditions, config_map, resource, template

FOUND = [("TemplatesReady", "True", "Ready"), ("Ready", "True", "Ready")]


@pytest.mark.parametrize("kind", [CLUSTER_SUPPLY_CHAIN, CLUSTER_DELIVERY], ids=lambda each: str(each.kind))
async def test_blueprint_is_ready_once_its_templates_exist(chains: Chains, kind: ResourceType) -> None:
    await chains.apply(blueprint(resource("a"), resource("b"), kind=kind.kind), template("a", config_map("a")))
    found = await chains.status("chain", kind)
    assert condition(found, "Ready") == condition(found, "TemplatesReady")
    assert condition(found, "Ready")[:2] == ("False", "TemplatesNotFound")
    assert "[b]" in condition(found, "Ready")[2]
    await chains.apply(template("b", config_map("b")))
    found = await chains.status("chain", kind)
    assert (found["observedGeneration"], conditions(found)) == (1, FOUND)
    await chains.world.client.delete(CLUSTER_CONFIG_TEMPLATE, "a")
    assert condition(await chains.status("chain", kind), "Ready")[1] == "TemplatesNotFound"


async def test_missing_template_of_an_option_is_not_found(chains: Chains) -> None:
    options = [{"name": name, "selector": {"matchLabels": {"x": name}}} for name in ("a", "b")]
    await chains.apply(blueprint(resource("r", templateRef={"options": options})), template("a", config_map("a")))
    assert "[r]" in condition(await chains.status("chain", CLUSTER_SUPPLY_CHAIN), "Ready")[2]


async def test_invalid_blueprint_names_the_field(chains: Chains) -> None:
    looping = resource("a", configs=[{"name": "x", "resource": "a"}])
    await chains.apply(template("a", config_map("a")), blueprint(looping))
    found = await chains.status("chain", CLUSTER_SUPPLY_CHAIN)
    assert conditions(found) == [("TemplatesReady", "True", "Ready"), ("Ready", "False", "InvalidBlueprint")]
    assert "spec.resources[0].configs[0].resource" in condition(found, "Ready")[2]


async def test_tag_in_the_path_of_an_output_makes_its_blueprints_invalid(chains: Chains) -> None:
    """Cartographer evaluates the path as it stands, and waits for a value for ever."""
    await chains.apply(template("a", config_map("a"), configPath="$(data)$"), blueprint(resource("a")))
    found = await chains.status("chain", CLUSTER_SUPPLY_CHAIN)
    assert condition(found, "Ready")[1] == "InvalidBlueprint"
    assert "ClusterConfigTemplate a: spec.configPath" in condition(found, "Ready")[2]
    await chains.apply(template("a", config_map("a")))
    assert conditions(await chains.status("chain", CLUSTER_SUPPLY_CHAIN)) == FOUND


async def test_blueprint_without_a_selector_is_invalid_and_hurts_no_other(chains: Chains) -> None:
    await chains.apply(
        template("a", config_map("a")),
        blueprint(resource("a"), name="bad", selector={}),
        blueprint(resource("a"), name="good"),
    )
    assert condition(await chains.status("bad", CLUSTER_SUPPLY_CHAIN), "Ready")[1] == "InvalidBlueprint"
    assert conditions(await chains.status("good", CLUSTER_SUPPLY_CHAIN)) == FOUND
