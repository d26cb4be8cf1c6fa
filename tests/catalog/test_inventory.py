"""The documents CatalogTenant and CatalogCluster, and the two shapes of a hierarchy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.inventory import find_cluster, read_inventory
from tests.catalog.hierarchies import NO_LOCKS, Hierarchy, component


@pytest.fixture
def hierarchy(tmp_path: Path) -> Hierarchy:
    made = Hierarchy(tmp_path)
    made.commit("nginx", component("nginx", defaults="{v: default}"))
    return made


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"facts": {"distribution": "k3s"}}, "spec.facts.cloud: this fact is required"),
        ({"facts": {"distribution": "k3s", "cloud": ""}}, "spec.facts.cloud: this fact is required"),
        ({"facts": {"distribution": "k3s", "cloud": "exo", "n": 1}}, "spec.facts.n: Input should be a valid string"),
        ({"dynamicFacts": {"x": "y" * 5_000}}, "spec.dynamicFacts: has 5,"),
        ({"tenant": "t-acne"}, "Did you mean t-acme"),
        ({"fact": {}}, "spec.fact: unknown field. Did you mean facts?"),
        ({"global": {}}, "spec.global.url: Field required"),
    ],
)
def test_a_cluster_is_refused(hierarchy: Hierarchy, cluster: dict[str, Any], words: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_inventory(hierarchy.documents(**cluster))
    assert words in str(caught.value)


def test_two_documents_of_one_name_are_refused(hierarchy: Hierarchy) -> None:
    with pytest.raises(CatalogError, match="two documents of this name"):
        read_inventory(hierarchy.documents() * 2)


def test_an_unknown_cluster_suggests_the_nearest(hierarchy: Hierarchy) -> None:
    with pytest.raises(CatalogError) as caught:
        find_cluster(read_inventory(hierarchy.documents()), "c-on")
    assert caught.value.remedy == "Did you mean c-one?"


async def test_repositories_of_a_cluster_replace_those_of_its_tenant(hierarchy: Hierarchy) -> None:
    hierarchy.configure("applications: []")
    components = f'{{nginx: {{url: "{hierarchy.url("nginx")}"}}}}'
    hierarchy.commit("own", {"c-one.yml": f"applications: [nginx]\nparameters: {{components: {components}}}"})
    compiled = await hierarchy.compile(inventory={"url": hierarchy.url("own")})

    assert compiled.instances == ("nginx",)


async def test_a_revision_is_a_branch(hierarchy: Hierarchy) -> None:
    hierarchy.configure("applications: []\nparameters: {}\n")
    hierarchy.commit("global", {"common.yml": "applications: [none]\n"}, branch="other")
    with pytest.raises(CatalogError, match="unknown component 'none'"):
        await hierarchy.compile(NO_LOCKS, **{"global": {"url": hierarchy.url("global"), "revision": "other"}})


def older(hierarchy: Hierarchy, **files: str) -> None:
    """Write a hierarchy of the older shape, in which each class sets `nginx.v` and the next one wins."""
    names = ("common", "distribution/k3s", "cloud/exo")
    classes = {f"{name}.yml": f"parameters: {{nginx: {{v: {name}}}, seen: [{name}]}}\n" for name in names}
    classes["common.yml"] = "applications: [nginx]\n" + classes["common.yml"]
    hierarchy.commit("global", classes | files)
    hierarchy.commit("t-acme", {"c-one.yml": "parameters: {seen: [cluster]}\n"})


async def test_older_shape_merges_common_distribution_cloud_and_cluster(hierarchy: Hierarchy) -> None:
    urls = f'components: [{{name: nginx, url: "{hierarchy.url("nginx")}"}}]\n'
    older(hierarchy, **{"commodore.yml": urls})
    parameters = (await hierarchy.parameters())["nginx"]

    assert parameters["nginx"]["v"] == "cloud/exo"
    assert parameters["seen"] == ["common", "distribution/k3s", "cloud/exo", "cluster"]


async def test_older_shape_names_the_missing_file(hierarchy: Hierarchy) -> None:
    older(hierarchy)
    hierarchy.commit("global", {"cloud/exo.yml": None, "cloud/other.yml": "{}\n"})
    with pytest.raises(CatalogError) as caught:
        await hierarchy.compile()
    assert (caught.value.where.repository[:7], caught.value.where.file) == ("global@", "cloud/exo.yml")


async def test_a_mixture_of_both_shapes_is_refused(hierarchy: Hierarchy) -> None:
    older(hierarchy, **{"commodore.yml": "components: []\nclasses: [global.common]\n"})
    with pytest.raises(CatalogError, match="components stands beside classes"):
        await hierarchy.compile()
