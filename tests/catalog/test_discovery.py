"""Which packages, components and instances a catalog has, and at which versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.catalog.errors import CatalogError
from tests.catalog.hierarchies import Hierarchy, component

INSTANCES = "{v: 1, w: 2, _metadata: {multi_instance: true}}"


@pytest.fixture
def hierarchy(tmp_path: Path) -> Hierarchy:
    made = Hierarchy(tmp_path)
    made.commit("nginx", component("nginx", defaults=INSTANCES))
    made.commit("other", component("other"))
    return made


def cluster(applications: str, parameters: str = "") -> str:
    """Return a class with these applications and with URLs of the components `nginx` and `other`."""
    return f"""
applications: [{applications}]
parameters:
  components:
    nginx: {{url: "${{ROOT}}/nginx.git", version: main}}
    other: {{url: "${{ROOT}}/other.git", version: main}}
  {parameters}
"""


async def refusal(hierarchy: Hierarchy) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        await hierarchy.compile()
    return caught.value


async def test_one_component_is_one_instance(hierarchy: Hierarchy) -> None:
    hierarchy.configure(cluster("nginx"))
    compiled = await hierarchy.compile()

    assert compiled.instances == ("nginx",)
    assert sorted(compiled.files) == ["catalog.lock.yaml", "manifests/nginx/parameters.json"]
    parameters = (await hierarchy.parameters())["nginx"]
    assert parameters["cluster"] == {
        "name": "c-one",
        "display_name": "One",
        "catalog_url": "https://git.example.com/c",
        "tenant": "t-acme",
        "tenant_display_name": "Acme Ltd",
    }
    assert parameters["facts"] == {"distribution": "k3s", "cloud": "exo"}
    assert parameters["_base_directory"] == "dependencies/nginx"
    assert parameters["kapitan"] == {"vars": {"target": "nginx"}}


async def test_instances_see_their_own_values_over_those_of_the_component(hierarchy: Hierarchy) -> None:
    hierarchy.configure(cluster("nginx, nginx as b-x", "nginx: {v: 5}\n  b_x: {w: 9}"))
    found = await hierarchy.parameters()

    assert sorted(found) == ["b-x", "nginx"]
    assert (found["b-x"]["nginx"]["v"], found["b-x"]["nginx"]["w"], found["b-x"]["_instance"]) == (5, 9, "b-x")
    assert (found["nginx"]["nginx"]["v"], found["nginx"]["nginx"]["w"]) == (5, 2)


async def test_only_an_alias_is_only_that_instance(hierarchy: Hierarchy) -> None:
    hierarchy.configure(cluster("nginx as b"))
    assert (await hierarchy.compile()).instances == ("b",)


async def test_components_outside_of_applications_are_not_fetched(hierarchy: Hierarchy) -> None:
    more = '  components:\n    nowhere: {url: "${ROOT}/nowhere.git", version: main}'
    hierarchy.configure(cluster("nginx").replace("  components:", more))
    assert (await hierarchy.compile()).instances == ("nginx",)


async def test_an_instance_of_another_version(hierarchy: Hierarchy) -> None:
    versions = "{v: 1, _metadata: {multi_instance: true, multi_version: true}}"
    hierarchy.commit("nginx", component("nginx", defaults=versions), tag="v1")
    hierarchy.commit("nginx", component("nginx", defaults=versions.replace("v: 1", "v: 2")), tag="v2")
    text = cluster("nginx, nginx as b").replace("main}", "v1}", 1)
    hierarchy.configure(text.replace("  components:", "  components:\n    b: {version: v2}"))
    found = await hierarchy.parameters()

    assert (found["nginx"]["nginx"]["v"], found["b"]["nginx"]["v"]) == (1, 2)


async def test_a_component_in_a_directory(hierarchy: Hierarchy) -> None:
    files = component("deep", defaults="{v: 3}")
    hierarchy.commit("mono", {f"sub/dir/{path}": content for path, content in files.items()})
    deep = '{url: "${ROOT}/mono.git", version: main, path: /sub/dir}'
    hierarchy.configure(f"applications: [deep]\nparameters: {{components: {{deep: {deep}}}}}")
    found = (await hierarchy.parameters())["deep"]

    assert found["deep"]["v"] == 3
    assert found["_base_directory"] == "dependencies/deep/sub/dir"


async def test_a_package_adds_applications_and_another_package(hierarchy: Hierarchy) -> None:
    hierarchy.commit(
        "mon", {"main.yml": "classes: [.params]\napplications: [pkg.more]\n", "params.yml": "parameters: {x: 7}"}
    )
    hierarchy.commit("more", {"main.yml": "applications: [other]\n"})
    hierarchy.configure(
        """
        classes: [mon.main, more.main]
        applications: [pkg.mon]
        parameters:
          components:
            other: {url: "${ROOT}/other.git", version: main}
          packages:
            mon: {url: "${ROOT}/mon.git", version: main}
            more: {url: "${ROOT}/more.git", version: main}
        """
    )
    assert (await hierarchy.parameters())["other"]["x"] == 7


@pytest.mark.parametrize(
    ("applications", "parameters", "words"),
    [
        ("ngnix", "", ["unknown component 'ngnix'", "Did you mean nginx?"]),
        ("nginx, other as nginx", "", ["component 'other' aliases existing component 'nginx'"]),
        ("nginx as x, other as x", "", ["duplicate alias 'x'", "'nginx', 'other'"]),
        ("other as o", "", ["instance o", "component other does not support instances", "multi_instance"]),
        ("nginx as cluster", "", ["no instance may be called cluster"]),
        ("pkg.global", "", ["a package may not be called global"]),
        ("pkg.t-x", "", ["package t-x", "tenants"]),
        ("pkg.mon", "", ["unknown package 'mon'"]),
        ("'a b'", "", ["'a b' is no name of a component"]),
        ("nginx", "component_versions: {nginx: {version: v1}}", ["component nginx stands in both"]),
        ("nginx", "packages: {mon: {version: v1}}", ["a version without a URL: package 'mon'"]),
        (
            "nginx, nginx as b",
            "b: {_metadata: {}}\n  component_versions: {b: {version: x}}",
            ["no branch, tag or commit x"],
        ),
    ],
)
async def test_applications_are_refused(
    hierarchy: Hierarchy, applications: str, parameters: str, words: list[str]
) -> None:
    hierarchy.configure(cluster(applications, parameters))
    error = await refusal(hierarchy)

    assert [word for word in words if word not in str(error)] == []


async def test_an_override_without_url_names_the_nearest_component(hierarchy: Hierarchy) -> None:
    hierarchy.configure(cluster("nginx").replace("  components:", "  components:\n    ngin: {version: v2}"))
    error = await refusal(hierarchy)

    assert "component 'ngin'" in error.message
    assert error.remedy == "Did you mean nginx?"


async def test_a_component_that_is_a_class_has_to_be_an_application(hierarchy: Hierarchy) -> None:
    hierarchy.configure("classes: [components.nginx]\n" + cluster(""))
    assert "add nginx to applications" in (await refusal(hierarchy)).remedy


@pytest.mark.parametrize("file", ["class/nginx.yml", "class/defaults.yml"])
async def test_a_component_without_a_class_is_refused(hierarchy: Hierarchy, file: str) -> None:
    hierarchy.commit("nginx", {file: None})
    hierarchy.configure(cluster("nginx"))
    error = await refusal(hierarchy)

    assert (error.where.repository[:16], error.where.file) == ("component nginx@", file)


async def test_a_deprecated_component_is_a_notice(hierarchy: Hierarchy) -> None:
    deprecated = "{_metadata: {deprecated: true, replaced_by: new, deprecation_notice: See there.}}"
    hierarchy.commit("other", component("other", defaults=deprecated))
    hierarchy.configure(cluster("other"))
    assert (await hierarchy.compile()).notices == (
        "Component other is deprecated. Use component new instead. See there.",
    )
