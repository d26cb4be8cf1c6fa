"""The kinds of carto.run: names, scopes, and what an API server refuses by their definitions alone."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kardinal.kube import ApiError, Client, load_connection
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject, ResourceType
from kardinal_local.stack import until_served
from kardinal_supplychain.api import kinds
from kardinal_supplychain.api.crds import definitions

CHAIN = """
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: web}
spec:
  selector: {type: web}
  resources:
    - name: source
      templateRef:
        kind: ClusterSourceTemplate
        options:
          - {name: git, selector: {matchFields: [{key: spec.source.git, operator: Exists}]}}
          - {name: image, selector: {matchFields: [{key: spec.source.image, operator: Exists}]}}
    - name: image
      templateRef: {kind: ClusterImageTemplate, name: kpack}
      params: [{name: builder, value: {size: 1}}]
      sources: [{name: source, resource: source}]
"""
TEMPLATE = """
apiVersion: carto.run/v1alpha1
kind: ClusterImageTemplate
metadata: {name: kpack}
spec:
  imagePath: status.latestImage
  healthRule: {alwaysHealthy: {}}
  params: [{name: port, default: 8080}]
  template: {anything: [goes, {here: "$(params.port)$"}]}
"""


DEFINITIONS = definitions()  # reads files, which no event loop may wait for


@pytest.fixture
def served() -> dict[str, JsonObject]:
    return {each["spec"]["names"]["kind"]: each for each in DEFINITIONS}


@pytest.mark.parametrize(
    ("kind", "short_name", "scope", "has_status"),
    [
        ("Workload", "wld", "Namespaced", True),
        ("Deliverable", "dlv", "Namespaced", True),
        ("Runnable", "run", "Namespaced", True),
        ("ClusterSupplyChain", "csc", "Cluster", True),
        ("ClusterDelivery", "cd", "Cluster", True),
        ("ClusterSourceTemplate", "cst", "Cluster", False),
        ("ClusterImageTemplate", "cit", "Cluster", False),
        ("ClusterConfigTemplate", "cct", "Cluster", False),
        ("ClusterDeploymentTemplate", "cdt", "Cluster", False),
        ("ClusterTemplate", "ct", "Cluster", False),
        ("ClusterRunTemplate", "crt", "Cluster", False),
    ],
)
def test_a_kind_has_its_names_scope_and_subresource(
    served: dict[str, JsonObject], kind: str, short_name: str, scope: str, has_status: bool
) -> None:
    spec = served[kind]["spec"]
    (version,) = spec["versions"]
    assert spec["group"] == "carto.run"
    assert spec["names"]["shortNames"] == [short_name]
    assert spec["scope"] == scope
    assert version.get("subresources", {}) == ({"status": {}} if has_status else {})


@pytest.mark.parametrize(("kind", "blueprint"), [("Workload", "SupplyChain"), ("Deliverable", "Delivery")])
def test_an_owner_is_in_the_category_all_and_shows_its_blueprint(
    served: dict[str, JsonObject], kind: str, blueprint: str
) -> None:
    spec = served[kind]["spec"]
    assert spec["names"]["categories"] == ["all"]
    shown = [column["name"] for column in spec["versions"][0]["additionalPrinterColumns"]]
    assert shown == ["Source", blueprint, "Ready", "Reason", "Age"]


def _at(document: Any, path: list[str | int], value: object) -> None:
    for part in path[:-1]:
        document = document[part]
    if value is None:
        del document[path[-1]]
    else:
        document[path[-1]] = value


OPTIONS: list[str | int] = ["spec", "resources", 0, "templateRef", "options"]
HEALTH: list[str | int] = ["spec", "healthRule"]
PASS = {"passThrough": "source", "selector": {}}
RESOURCES = [{"name": f"r{n}", "templateRef": {"kind": "ClusterTemplate", "name": "t"}} for n in range(101)]


async def test_an_api_server_refuses_what_is_neither_one_thing_nor_the_other(api_server: Any) -> None:
    broken: list[tuple[str, ResourceType, list[str | int], object, str]] = [
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, [*OPTIONS[:-1], "name"], "git", "either name or options"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, OPTIONS, None, "either name or options"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, [*OPTIONS, 0, "passThrough"], "x", "either name or passThrough"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, OPTIONS, [PASS], "options"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, OPTIONS, [PASS, PASS], "only one"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, ["spec", "resources", 1, "name"], "source", "Duplicate value"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, ["spec", "resources"], RESOURCES, "at most 100"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, ["spec", "resources", 1, "params", 0, "default"], 1, "params"),
        (CHAIN, kinds.CLUSTER_SUPPLY_CHAIN, ["spec", "resources", 1, "params", 0, "value"], None, "params"),
        (
            CHAIN,
            kinds.CLUSTER_SUPPLY_CHAIN,
            ["spec", "resources", 1, "templateRef", "kind"],
            "ClusterDeploymentTemplate",
            "Unsupported value",
        ),
        (TEMPLATE, kinds.CLUSTER_IMAGE_TEMPLATE, ["spec", "ytt"], "x: 1", "either template or ytt"),
        (TEMPLATE, kinds.CLUSTER_IMAGE_TEMPLATE, ["spec", "template"], None, "either template or ytt"),
        (
            TEMPLATE,
            kinds.CLUSTER_IMAGE_TEMPLATE,
            ["spec", "healthRule", "singleConditionType"],
            "Ready",
            "write one of",
        ),
        (TEMPLATE, kinds.CLUSTER_IMAGE_TEMPLATE, ["spec", "retentionPolicy"], {"maxFailedRuns": 0}, "maxFailedRuns"),
    ]
    async with Client(await load_connection(api_server.kubeconfig), user_agent="kardinal-test") as client:
        for each in DEFINITIONS:
            await client.apply(CUSTOM_RESOURCE_DEFINITION, each, field_manager="kardinal-test", force=True)
        await until_served(client, {each["metadata"]["name"] for each in DEFINITIONS})
        for text, resource, path, value, said in broken:
            document = yaml.safe_load(text)
            _at(document, path, value)
            with pytest.raises(ApiError) as refused:
                await client.create(resource, document)
            assert said in str(refused.value), path
        chain = await client.create(kinds.CLUSTER_SUPPLY_CHAIN, yaml.safe_load(CHAIN))
        template = await client.create(kinds.CLUSTER_IMAGE_TEMPLATE, yaml.safe_load(TEMPLATE))
        await client.delete(kinds.CLUSTER_SUPPLY_CHAIN, "web")
        await client.delete(kinds.CLUSTER_IMAGE_TEMPLATE, "kpack")
    assert chain["spec"]["resources"][1]["params"] == [{"name": "builder", "value": {"size": 1}}]
    assert template["spec"]["template"] == {"anything": ["goes", {"here": "$(params.port)$"}]}
    assert template["spec"]["lifecycle"] == "mutable"
