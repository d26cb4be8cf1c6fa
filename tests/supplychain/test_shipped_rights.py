"""The program with the rights of deploy/supplychain and nothing more."""

from __future__ import annotations

import pytest

from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, JsonObject
from kardinal_supplychain.api.kinds import WORKLOAD
from tests.supplychain.chains import Chains, blueprint, condition, config_map, resource, template, workload
from tests.supplychain.test_stamped_kinds import BODY, DEFINITION
from tests.support.accounts import allow, lend, rule
from tests.support.identities import RESOURCES
from tests.support.names import TEAM
from tests.support.permissions import hold_to_permissions
from tests.support.world import World

DEV = {"name": "dev"}
MAY = rule("*", on="configmaps")


@pytest.fixture
async def shipped(world: World) -> Chains:
    """Return a world in which the program runs with the rights that are shipped."""
    return await Chains.start(world, identity="supplychain")


async def until_reason(chains: Chains, reason: str) -> tuple[str, str, str]:
    def has_reason(owner: JsonObject) -> bool:
        resources = (owner.get("status") or {}).get("resources") or ()
        return any(condition(each, "ResourceSubmitted")[1] == reason for each in resources)

    found = await chains.world.wait_for(WORKLOAD, "web", has_reason)
    return condition(found["status"]["resources"][0], "ResourceSubmitted")


async def test_shipped_rights_are_enough(shipped: Chains) -> None:
    hold_to_permissions(shipped.world, "supplychain")
    await shipped.account("dev", MAY)
    await shipped.apply(
        template("c", config_map("c", a="b")), blueprint(resource("c"), serviceAccountRef=DEV), workload()
    )
    assert condition(await shipped.status(), "Ready")[0] == "True"


async def test_kind_that_the_program_may_not_watch_is_not_stamped(shipped: Chains) -> None:
    """Cartographer stamps such an object, and never hears of it."""
    await shipped.world.client.create(CUSTOM_RESOURCE_DEFINITION, DEFINITION)
    await shipped.account("dev", rule("*", on="widgets", group="example.com"))
    making = template("w", BODY, kind="ClusterTemplate", params=[{"name": "v", "default": "1"}])
    await shipped.apply(making, blueprint(resource("w", kind="ClusterTemplate"), serviceAccountRef=DEV), workload())
    message = (await until_reason(shipped, "WatchForbidden"))[2]
    assert "widgets.example.com" in message
    assert 'kardinal.io/aggregate-to-supplychain: "true"' in message
    metadata = {"name": "widgets", "labels": {"kardinal.io/aggregate-to-supplychain": "true"}}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list", "watch"]}],
    }
    await shipped.world.client.apply(RESOURCES["ClusterRole"], role, field_manager="test", force=True)
    await until_reason(shipped, "ResourceSubmissionComplete")


async def test_account_counts_once_the_tenant_lends_it(shipped: Chains) -> None:
    await allow(shipped.world, "default", MAY)
    await shipped.apply(template("c", config_map("c", a="b")), blueprint(resource("c")), workload())
    status, reason, message = condition(await shipped.resource("c"), "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateRejectedByAPIServer")
    assert f"the verb impersonate on serviceaccounts [default] by a Role in namespace [{TEAM}]" in message
    await lend(shipped.world, "default", to="supplychain")
    await shipped.world.until(lambda: shipped.world.find(CONFIG_MAP, "c"))
