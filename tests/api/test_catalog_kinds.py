"""An API server accepts a CatalogTenant and a CatalogCluster, and refuses facts without the required ones."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.catalog.kinds import CATALOG_CLUSTER, CATALOG_TENANT, CatalogCluster, CatalogTenant
from kardinal.kube import Invalid
from tests.support.names import TEAM
from tests.support.world import World

JsonObject = dict[str, Any]

FACTS = {"distribution": "k3s", "cloud": "exoscale"}


def tenant(**spec: object) -> JsonObject:
    repository = {"url": "ssh://git@git.example.com/acme/inventory.git"}
    return {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "CatalogTenant",
        "metadata": {"name": "t-acme", "namespace": TEAM},
        "spec": {"global": repository, "inventory": repository, **spec},
    }


def cluster(**spec: object) -> JsonObject:
    return {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "CatalogCluster",
        "metadata": {"name": "c-one", "namespace": TEAM, "labels": {"wave": "canary"}},
        "spec": {"tenant": "t-acme", "facts": FACTS, **spec},
    }


async def test_a_tenant_is_stored_as_it_is_written(world: World) -> None:
    written = tenant(
        displayName="Acme Ltd",
        componentBaseURL="ssh://git@git.example.com/components/",
        sources=["ssh://git@git.example.com/"],
        secretRefs=["git-a", "git-b"],
        refPrefixes=["t-acme/"],
    )
    stored = await world.client.create(CATALOG_TENANT, written)
    assert stored["spec"] == written["spec"]
    spec = CatalogTenant.model_validate(stored).spec
    assert (spec.global_.url, spec.component_base_url) == (
        "ssh://git@git.example.com/acme/inventory.git",
        "ssh://git@git.example.com/components/",
    )


async def test_a_cluster_keeps_dynamic_facts_of_any_shape(world: World) -> None:
    dynamic = {"kubernetes": {"major": 1, "minor": "33"}, "nodes": [{"ready": True}], "empty": {}}
    stored = await world.client.create(
        CATALOG_CLUSTER,
        cluster(dynamicFacts=dynamic, catalog={"url": "ssh://git@git.example.com/acme/catalog.git"}),
    )
    assert stored["spec"]["dynamicFacts"] == dynamic
    spec = CatalogCluster.model_validate(stored).spec
    assert spec.dynamic_facts == dynamic
    assert spec.catalog is not None
    assert (spec.catalog.branch, spec.catalog.path) == ("main", None)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"cloud": "exoscale"}, "the fact distribution is required"),
        ({"distribution": "k3s", "cloud": ""}, "the fact cloud is required"),
        (FACTS | {f"fact-{number}": "x" * 500 for number in range(9)}, "has more than 4,096 characters"),
        (FACTS | {"region": "x" * 513}, "Too long"),
        (FACTS | {"region": 7}, "must be of type string"),
    ],
    ids=["absent", "empty", "together too long", "one too long", "no text"],
)
async def test_facts_that_no_catalog_can_be_compiled_from_are_refused(
    world: World, facts: dict[str, object], said: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await world.client.create(CATALOG_CLUSTER, cluster(facts=facts))
    assert said in refused.value.message
    assert any(field.startswith("spec.facts") for field in refused.value.fields)
