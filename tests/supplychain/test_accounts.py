"""The accounts of owners: whose rights objects are stamped with, and what happens without them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import CONFIG_MAP, SERVICE_ACCOUNT, JsonObject
from kardinal_local.plane import LoggedRequest
from kardinal_supplychain.api.kinds import WORKLOAD
from tests.supplychain.chains import Chains, Requests, blueprint, condition, config_map, resource, template, workload
from tests.support.accounts import allow, rule
from tests.support.identities import RESOURCES
from tests.support.names import POLICIES, TEAM

TEMPLATE = template("only", config_map("$(workload.metadata.name)$", of="web"))
CHAIN = blueprint(resource("only"))
MAY = rule("*", on="configmaps")


async def submitted(chains: Chains) -> tuple[str, str, str]:
    return condition(await chains.resource("only"), "ResourceSubmitted")


async def writers(chains: Chains) -> set[str]:
    """Return who has written the ConfigMaps of the team, by the managers of their fields."""
    found = await chains.world.client.get(CONFIG_MAP, "web", TEAM)
    return {entry["manager"] for entry in found["metadata"]["managedFields"]}


async def test_owner_names_the_account(chains: Chains) -> None:
    seen: list[str] = []
    await chains.account("mine", MAY)

    def note(request: LoggedRequest) -> None:
        if request.resource == "configmaps" and request.verb == "patch":
            seen.append(request.user)

    chains.world.audit.subscribe(note)
    chain = blueprint(resource("only"), serviceAccountRef={"name": "other"})
    await chains.apply(TEMPLATE, chain, workload(serviceAccountName="mine"))
    assert (await submitted(chains))[0] == "True"
    assert set(seen) == {f"system:serviceaccount:{TEAM}:mine"}
    assert await writers(chains) == {"kardinal-supplychain/only"}


async def test_blueprint_names_an_account_of_another_namespace(chains: Chains) -> None:
    await chains.account("deployer", namespace=POLICIES)
    await allow(chains.world, "deployer", MAY, namespace=TEAM, home=POLICIES)
    reference = {"name": "deployer", "namespace": POLICIES}
    await chains.apply(TEMPLATE, blueprint(resource("only"), serviceAccountRef=reference), workload())
    assert (await submitted(chains))[0] == "True"


@pytest.mark.parametrize("name", ["other:default", "../x", "a/b", "Upper"])
async def test_name_that_would_be_another_account_is_refused(chains: Chains, name: str) -> None:
    requests = Requests(chains)
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName=name))
    status = await chains.status()
    assert [each["type"] for each in status["conditions"]] == ["SupplyChainReady", "ResourcesSubmitted", "Ready"]
    assert condition(status, "ResourcesSubmitted")[:2] == ("False", "ServiceAccountError")
    assert name in condition(status, "Ready")[2]
    assert (await requests.take()).made == ["patch clustersupplychains/status", "patch workloads/status"]


async def test_new_account_wakes_its_owners(chains: Chains) -> None:
    """Trap: an account that was made after the Workload was never looked at again."""
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName="late"))
    assert condition(await chains.status(), "Ready")[1] == "ServiceAccountError"
    await chains.account("late", MAY)
    await chains.world.until(lambda: chains.world.find(CONFIG_MAP, "web"))
    assert (await submitted(chains))[0] == "True"
    await chains.world.client.delete(SERVICE_ACCOUNT, "late", TEAM)
    assert condition(await chains.status(), "Ready")[1] == "ServiceAccountError"
    assert await chains.world.find(CONFIG_MAP, "web") is not None


async def test_new_right_wakes_the_owners_that_lack_it(chains: Chains) -> None:
    """Trap: a Role that was changed after the refusal was not noticed."""
    await chains.account("poor")
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName="poor"))
    status, reason, message = await submitted(chains)
    assert (status, reason) == ("False", "TemplateRejectedByAPIServer")
    assert "configmaps" in message
    began = chains.world.clock.monotonic()
    await allow(chains.world, "poor", MAY)
    await chains.world.until(lambda: chains.world.find(CONFIG_MAP, "web"))
    assert chains.world.clock.monotonic() - began < 60
    assert (await submitted(chains))[0] == "True"


async def bind_in_all_namespaces(chains: Chains, account: str) -> None:
    """Give an account of the team the right to ConfigMaps everywhere."""
    version = "rbac.authorization.k8s.io/v1"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "config-maps"}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": TEAM}
    role: JsonObject = {
        "apiVersion": version,
        "kind": "ClusterRole",
        "metadata": {"name": "config-maps"},
        "rules": [MAY],
    }
    binding: JsonObject = {"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": account}}
    for obj in (role, binding | {"roleRef": reference, "subjects": [subject]}):
        await chains.world.client.apply(RESOURCES[obj["kind"]], obj, field_manager="test", force=True)


async def test_right_in_all_namespaces_wakes_the_owners_that_lack_it(chains: Chains) -> None:
    await chains.account("poor")
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName="poor"))
    await chains.world.idle(timedelta(hours=1))
    began = chains.world.clock.monotonic()
    await bind_in_all_namespaces(chains, "poor")
    await chains.world.until(lambda: chains.world.find(CONFIG_MAP, "web"))
    assert chains.world.clock.monotonic() - began < 30
    assert (await submitted(chains))[0] == "True"


async def test_account_without_a_right_is_tried_again_less_and_less(chains: Chains) -> None:
    await chains.account("poor")
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName="poor"))
    await chains.world.idle(timedelta(hours=1))
    requests = Requests(chains)
    await chains.world.idle(timedelta(hours=1))
    assert len((await requests.take()).made) <= 6


@pytest.mark.virtual_time("a watch goes on for a while after it is closed")
async def test_deletion_of_an_owner_that_lacks_rights_closes_its_watches(chains: Chains) -> None:
    await chains.account("poor")
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName="poor"))
    await chains.world.delete(WORKLOAD, "web")
    await chains.world.idle(timedelta(minutes=2))
    watched = {informer.resource.kind for informer in chains.program.manager.dynamic.informers}
    assert watched & {"Role", "RoleBinding", "ClusterRoleBinding", "ConfigMap"} == set()


async def test_right_that_is_taken_away_leaves_the_objects(chains: Chains) -> None:
    await chains.account("mine", MAY)
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName="mine"))
    await allow(chains.world, "mine", rule("get", on="configmaps"))
    await chains.apply(template("only", config_map("$(workload.metadata.name)$", a="b")))
    assert (await submitted(chains))[1] == "TemplateRejectedByAPIServer"
    only = await chains.resource("only")
    assert (only["stampedRef"]["name"], condition(only, "Healthy")[0]) == ("web", "True")
    await allow(chains.world, "mine", MAY)

    async def is_written() -> bool:
        return bool((await chains.world.get(CONFIG_MAP, "web"))["data"] == {"a": "b"})

    await chains.world.until(is_written)


def forged(owner: JsonObject, **metadata: object) -> JsonObject:
    """Return a ConfigMap with all marks of an owner but the uid of its controller."""
    labels = {"carto.run/workload-name": "web", "carto.run/resource-name": "only"}
    reference = {
        "apiVersion": "carto.run/v1alpha1",
        "kind": "Workload",
        "name": "web",
        "uid": "forged",
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": TEAM, "labels": labels, "ownerReferences": [reference], **metadata},
    }


async def test_forged_marks_wake_no_owner_and_take_no_object(chains: Chains) -> None:
    await chains.account("mine", MAY)
    await chains.apply(TEMPLATE, CHAIN, workload(serviceAccountName="mine"))
    owner = await chains.get(WORKLOAD, "web")
    requests = Requests(chains)
    await chains.apply(forged(owner, name="theirs"))
    taken = await requests.take()
    assert (taken.made, taken.reconciles) == ([], 0)
    assert await chains.world.get(WORKLOAD, "web") == owner
