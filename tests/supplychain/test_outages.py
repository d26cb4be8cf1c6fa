"""Outages: the kind of the runs, the Git host, or the registry is away for a while."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject
from kardinal.promotion.kinds import BUNDLE
from kardinal_supplychain.api.kinds import WORKLOAD
from tests.supplychain.chains import Chains, blueprint, condition, resource, template, workload
from tests.supplychain.shop import MAY, bundle_template, identities, is_ready, shop
from tests.supplychain.widgets import WIDGET, install_widgets, widget_body
from tests.support.accounts import rule
from tests.support.names import TEAM

MANY = 100
DEV = {"name": "dev"}
HEALTH: JsonObject = {"singleConditionType": "Ready"}
IN_IMAGES = [{"name": "image", "resource": "build"}]
IN_SOURCES = [{"name": "source", "resource": "source"}]


@pytest.fixture
async def building(chains: Chains) -> Chains:
    await install_widgets(chains)
    await chains.account("dev", rule("*", on="widgets", group="example.com"), *MAY)
    return chains


def chain_of_widgets() -> Sequence[JsonObject]:
    """Return a chain whose run is a Widget, and has finished at once."""
    body = widget_body("$(workload.metadata.name)$-", image="shop:$(params.value)$")
    spec = {"imagePath": "spec.image", "lifecycle": "tekton", "healthRule": {"alwaysHealthy": {}}}
    resources = (
        resource("build", kind="ClusterImageTemplate"),
        resource("bundle", kind="ClusterTemplate", images=IN_IMAGES),
    )
    build = template("build", body, kind="ClusterImageTemplate", **spec)
    return build, bundle_template(), blueprint(*resources, serviceAccountRef=DEV)


@pytest.mark.timeout(170)
@pytest.mark.parametrize("restarted", [False, True], ids=["alive", "restarted"])
async def test_finished_runs_are_not_repeated_when_their_kind_is_removed_and_back(
    building: Chains, *, restarted: bool
) -> None:
    """A server deletes the objects of a kind that is removed."""
    await building.apply(*chain_of_widgets(), *(shop(name=f"shop-{index}") for index in range(MANY)))
    world = building.world
    bundles = await identities(world, BUNDLE)
    assert (len(await identities(world, WIDGET)), len(bundles)) == (MANY, MANY)
    await world.client.delete(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com")

    def is_missed(owner: JsonObject) -> bool:
        return condition(owner["status"], "Ready")[1] == "TemplateRejectedByAPIServer"

    await world.wait_for(WORKLOAD, f"shop-{MANY - 1}", is_missed)
    await world.settle()
    if restarted:
        await building.restart()
    await install_widgets(building)
    await world.wait_for(WORKLOAD, f"shop-{MANY - 1}", is_ready(1))
    await world.settle()
    assert await identities(world, WIDGET) == frozenset()
    assert await identities(world, BUNDLE) == bundles
    await building.apply(shop("b", "shop-0"))
    await world.wait_for(WORKLOAD, "shop-0", is_ready(2))
    [run] = await world.objects(WIDGET)
    assert run["spec"]["image"] == "shop:b"
    assert bundles < await identities(world, BUNDLE)


def chain_of_hosts() -> Sequence[JsonObject]:
    """Return a chain of a source, a builder, and a run that tests each revision."""
    source = template(
        "source",
        named("source"),
        kind="ClusterSourceTemplate",
        urlPath="status.url",
        revisionPath="status.revision",
        healthRule=HEALTH,
    )
    build = template(
        "build",
        named("build", revision="$(source.revision)$"),
        kind="ClusterImageTemplate",
        imagePath="status.image",
        healthRule=HEALTH,
    )
    test = template(
        "test",
        widget_body("test-", revision="$(source.revision)$"),
        kind="ClusterTemplate",
        lifecycle="tekton",
        healthRule={"alwaysHealthy": {}},
    )
    resources = (
        resource("source", kind="ClusterSourceTemplate"),
        resource("test", kind="ClusterTemplate", sources=IN_SOURCES),
        resource("build", kind="ClusterImageTemplate", sources=IN_SOURCES),
        resource("bundle", kind="ClusterTemplate", images=IN_IMAGES),
    )
    return source, build, test, bundle_template(), blueprint(*resources, serviceAccountRef=DEV), workload()


def named(name: str, **spec: str) -> JsonObject:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


async def report(chains: Chains, name: str, ready: str, message: str = "", **fields: Any) -> None:
    """Write the status of the source or the builder, as what stands in for its controller does at each try."""
    entry = {"type": "Ready", "status": ready, "reason": "Tried", "message": message}
    status = {"conditions": [entry], "tried": chains.world.clock.now().isoformat(), **fields}
    await chains.world.client.patch(WIDGET, name, TEAM, {"status": status})


async def stay_away(chains: Chains, name: str, message: str) -> None:
    """Let an hour pass in which each try of a minute fails."""
    for _ in range(60):
        await report(chains, name, "False", message)
        await chains.world.live(timedelta(minutes=1))


async def published(chains: Chains, revision: str) -> None:
    """Let a revision become an image."""
    await report(chains, "source", "True", url=f"http://source/{revision}", revision=revision)
    await chains.world.settle()
    await report(chains, "build", "True", image=f"shop:{revision}")
    await chains.world.settle()


@pytest.mark.virtual_time("two hours")
async def test_hour_without_the_git_host_or_the_registry_makes_nothing(building: Chains) -> None:
    world = building.world
    await building.apply(*chain_of_hosts())
    await published(building, "r1")
    before = await identities(world, WIDGET, BUNDLE)
    assert len(before) == 4
    await stay_away(building, "source", "dial tcp: connection refused")
    status = await building.status()
    assert condition(status, "ResourcesHealthy")[0] == "False"
    assert "connection refused" in condition(await building.resource("source"), "Healthy")[2]
    assert await identities(world, WIDGET, BUNDLE) == before
    await published(building, "r1")
    assert condition(await building.status(), "Ready")[0] == "True"
    assert await identities(world, WIDGET, BUNDLE) == before

    await report(building, "source", "True", url="http://source/r2", revision="r2")
    await stay_away(building, "build", "registry: 503")
    assert "registry: 503" in condition(await building.resource("build"), "Healthy")[2]
    tested = await identities(world, WIDGET, BUNDLE)
    assert before < tested
    assert len(tested) == len(before) + 1
    await building.restart()
    assert await identities(world, WIDGET, BUNDLE) == tested
    await published(building, "r2")
    assert condition(await building.status(), "Ready")[0] == "True"
    after = await identities(world, WIDGET, BUNDLE)
    assert tested < after
    assert [kind for kind, _, _ in after - tested] == ["Bundle"]
