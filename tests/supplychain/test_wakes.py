"""Which changes wake which owners, and objects that others write, too."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal_supplychain.api.kinds import CLUSTER_SUPPLY_CHAIN, WORKLOAD
from tests.supplychain.chains import Chains, Requests, blueprint, condition, config_map, resource, template, workload
from tests.support.accounts import rule
from tests.support.names import TEAM

DEV = {"name": "dev"}


def making(name: str, **data: str) -> JsonObject:
    return template(name, config_map(f"$(workload.metadata.name)$-{name}", of=name, **data))


def of_type(name: str, type_: str) -> JsonObject:
    return workload(name, labels={"type": type_})


@pytest.fixture
async def two_chains(chains: Chains) -> Chains:
    """Return a world with the Workloads a1 and a2 of one chain, and b1 of another."""
    await chains.account("dev", rule("*", on="configmaps"))
    first = blueprint(resource("one"), name="a", selector={"type": "a"}, serviceAccountRef=DEV)
    second = blueprint(resource("two"), name="b", selector={"type": "b"}, serviceAccountRef=DEV)
    owners = of_type("a1", "a"), of_type("a2", "a"), of_type("b1", "b")
    await chains.apply(making("one"), making("two"), first, second, *owners)
    return chains


async def test_template_wakes_the_owners_that_use_it(two_chains: Chains) -> None:
    requests = Requests(two_chains)
    await two_chains.apply(making("two", more="x"))
    taken = await requests.take()
    assert taken.reconciles == 1
    assert taken.made == ["patch configmaps", "patch workloads/status"]
    await two_chains.apply(making("unused"))
    assert (await requests.take()).reconciles == 0


async def test_blueprint_wakes_the_owners_that_it_selects_or_selected(two_chains: Chains) -> None:
    requests = Requests(two_chains)
    await two_chains.apply(blueprint(resource("two"), name="c", selector={"type": "c"}, serviceAccountRef=DEV))
    assert (await requests.take()).reconciles == 0
    by_field = [{"key": "metadata.name", "operator": "In", "values": ["b1"]}]
    await two_chains.apply(
        blueprint(
            resource("two"), name="c", selector={"type": "b"}, selectorMatchFields=by_field, serviceAccountRef=DEV
        )
    )
    assert (await requests.take()).reconciles == 1
    assert (await two_chains.status("b1"))["supplyChainRef"]["name"] == "c"
    await two_chains.apply(blueprint(resource("two"), name="c", selector={"type": "no"}, serviceAccountRef=DEV))
    assert (await requests.take()).reconciles == 1
    assert (await two_chains.status("b1"))["supplyChainRef"]["name"] == "b"


async def test_blueprint_of_fields_alone_selects_an_owner_without_labels(two_chains: Chains) -> None:
    """Cartographer looks at no blueprint for a Workload without labels."""
    await two_chains.apply(workload("plain", labels={}))
    assert condition(await two_chains.status("plain"), "Ready")[1] == "WorkloadLabelsMissing"
    fields = [{"key": "metadata.name", "operator": "In", "values": ["plain"]}]
    chain = blueprint(resource("one"), name="f", selector={}, selectorMatchFields=fields, serviceAccountRef=DEV)
    await two_chains.apply(chain)
    assert (await two_chains.status("plain"))["supplyChainRef"]["name"] == "f"


async def test_status_of_a_blueprint_wakes_no_owner(two_chains: Chains) -> None:
    requests = Requests(two_chains)
    status = {"status": {"observedGeneration": 99}}
    await two_chains.world.client.patch(CLUSTER_SUPPLY_CHAIN, "a", None, status, subresource="status")
    assert (await requests.take()).reconciles == 0


async def test_labels_that_were_taken_off_are_put_back(two_chains: Chains) -> None:
    """The object leaves the watch, which selects by label: that is told as a deletion."""
    labels = {"metadata": {"labels": {"carto.run/resource-name": None}}}
    await two_chains.world.client.patch(CONFIG_MAP, "a1-one", TEAM, labels)
    found = await two_chains.get(CONFIG_MAP, "a1-one")
    assert found["metadata"]["labels"]["carto.run/resource-name"] == "one"


async def test_object_without_a_controller_is_taken_over(two_chains: Chains) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a3-one", "namespace": TEAM}}
    await two_chains.apply({**theirs, "data": {"theirs": "kept"}}, of_type("a3", "a"))
    found = await two_chains.get(CONFIG_MAP, "a3-one")
    assert found["data"] == {"of": "one", "theirs": "kept"}
    assert found["metadata"]["ownerReferences"][0]["name"] == "a3"


async def test_object_of_another_controller_is_left_alone(two_chains: Chains) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap"}
    controller = await two_chains.world.client.create(
        CONFIG_MAP, {**body, "metadata": {"name": "boss", "namespace": TEAM}}
    )
    reference = {**body, "name": "boss", "uid": controller["metadata"]["uid"], "controller": True}
    metadata = {"name": "a3-one", "namespace": TEAM, "ownerReferences": [reference]}
    await two_chains.world.client.create(CONFIG_MAP, {**body, "metadata": metadata})
    await two_chains.apply(of_type("a3", "a"))
    refused = condition(await two_chains.resource("one", "a3"), "ResourceSubmitted")
    assert refused[1] == "TemplateRejectedByAPIServer"
    assert refused[2].endswith("already controlled by ConfigMap boss")
    assert "data" not in await two_chains.get(CONFIG_MAP, "a3-one")


@pytest.mark.virtual_time("what is put off is not written before")
async def test_two_programs_that_disagree_do_not_write_without_end(two_chains: Chains) -> None:
    requests = Requests(two_chains)
    for number in range(5):
        drift = {"data": {"of": f"drift-{number}"}}
        await two_chains.world.client.patch(CONFIG_MAP, "a1-one", TEAM, drift)
        await two_chains.world.settle()
    assert (await requests.take()).made.count("patch configmaps") == 1
    await two_chains.world.live(timedelta(seconds=15))
    assert (await two_chains.get(CONFIG_MAP, "a1-one"))["data"] == {"of": "one"}


async def test_objects_go_with_their_owner(two_chains: Chains) -> None:
    await two_chains.world.delete(WORKLOAD, "a1")
    await two_chains.world.until(lambda: _is_gone(two_chains))
    assert await two_chains.world.find(CONFIG_MAP, "a2-one") is not None


async def _is_gone(chains: Chains) -> bool:
    return await chains.world.find(CONFIG_MAP, "a1-one") is None
