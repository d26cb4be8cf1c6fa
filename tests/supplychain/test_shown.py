"""`kardinal get` and `kardinal explain` on the kinds of supply chains, on objects with statuses that are given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.cli.table import text_width
from kardinal.kube import PatchType
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject, ResourceType
from kardinal_local.stack import until_served
from kardinal_supplychain.api import kinds
from kardinal_supplychain.api.crds import definitions
from tests.cli.in_process import InProcess, cli
from tests.support import identities
from tests.support.names import POLICIES, TEAM
from tests.support.people import people_of
from tests.support.world import World

__all__ = ["cli"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "supply-chain"
DEFINITIONS = definitions()
RESOURCES = {each.kind: each for each in vars(kinds).values() if isinstance(each, ResourceType)}
URL = "https://git.example.com/my-team/shop"
WAITING = "waiting to read value [status.latestImage] from object [images.kpack.io/shop] in namespace [my-team]"


@pytest.fixture
async def installed(world: World) -> World:
    """Return a world with the kinds of supply chains and the chain and the templates of the example."""
    for each in DEFINITIONS:
        await world.client.apply(CUSTOM_RESOURCE_DEFINITION, each, field_manager="test", force=True)
    await until_served(world.client, {each["metadata"]["name"] for each in DEFINITIONS})
    for name in ("templates.yaml", "supply-chain.yaml"):
        for document in yaml.safe_load_all((EXAMPLE / name).read_bytes()):
            await store(world, document)
    return world


async def store(world: World, document: JsonObject, *, status: JsonObject | None = None) -> None:
    resource = RESOURCES[document["kind"]]
    created = await world.client.create(resource, document)
    if status is not None:
        metadata = created["metadata"]
        await world.client.patch(
            resource,
            metadata["name"],
            metadata.get("namespace"),
            {"status": status},
            kind=PatchType.MERGE,
            subresource="status",
        )


def workload(name: str = "shop", *, namespace: str = TEAM, labels: dict[str, str] | None = None) -> JsonObject:
    document: JsonObject = yaml.safe_load((EXAMPLE / "workload.yaml").read_bytes())
    document["metadata"] |= {"name": name, "namespace": namespace}
    if labels is not None:
        document["metadata"]["labels"] = labels
    return document


def chain(name: str, **spec: Any) -> JsonObject:
    resources = [{"name": "source", "templateRef": {"kind": "ClusterSourceTemplate", "name": "git"}}]
    return {
        "apiVersion": "carto.run/v1alpha1",
        "kind": "ClusterSupplyChain",
        "metadata": {"name": name},
        "spec": {"resources": resources, **spec},
    }


def condition(type_: str, status: str, reason: str, message: str = "") -> JsonObject:
    times = {"lastTransitionTime": "2026-03-03T10:00:00Z"}
    return {"type": type_, "status": status, "reason": reason, "message": message, **times}


def waiting_status() -> JsonObject:
    waits = condition("ResourceSubmitted", "Unknown", "MissingValueAtPath", WAITING)
    return {
        "observedGeneration": 1,
        "supplyChainRef": {"kind": "ClusterSupplyChain", "name": "web"},
        "conditions": [
            condition("SupplyChainReady", "True", "Ready"),
            {**waits, "type": "ResourcesSubmitted"},
            {**waits, "type": "Ready"},
        ],
        "resources": [
            {
                "name": "image",
                "stampedRef": {
                    "apiVersion": "kpack.io/v1alpha2",
                    "kind": "Image",
                    "namespace": TEAM,
                    "name": "shop",
                    "resource": "images.kpack.io",
                },
                "conditions": [waits, {**waits, "type": "Ready"}],
            }
        ],
    }


async def test_lists_show_source_blueprint_and_readiness(installed: World, cli: InProcess) -> None:
    await store(installed, workload(), status=waiting_status())
    await store(installed, workload("other", namespace=POLICIES))

    table = [line.split() for line in (await cli("get", "workloads")).splitlines()]
    assert table[0] == ["NAME", "SOURCE", "SUPPLYCHAIN", "READY", "REASON", "AGE"]
    assert [row[:-1] for row in table[1:]] == [["shop", URL, "web", "Unknown", "MissingValueAtPath"]]
    everywhere = [line.split() for line in (await cli("get", "workloads", "-A")).splitlines()]
    assert everywhere[0][:2] == ["NAMESPACE", "NAME"]
    assert sorted(row[:3] for row in everywhere[1:]) == [[POLICIES, "other", URL], [TEAM, "shop", URL]]
    assert "waiting to read value" in await cli("get", "workloads", "-o", "wide")
    assert await cli("get", "workloads", "other", "-n", POLICIES, "-o", "name") == "workload.carto.run/other\n"
    (as_json,) = json.loads(await cli("get", "workloads", "shop", "-o", "json"))["items"]
    (as_yaml,) = yaml.safe_load(await cli("get", "workloads", "-o", "yaml"))["items"]
    assert as_json == as_yaml
    assert as_json["metadata"]["name"] == "shop"


async def test_deliverables_and_runnables_have_columns_of_their_own(installed: World, cli: InProcess) -> None:
    deliverable: JsonObject = {
        "apiVersion": "carto.run/v1alpha1",
        "kind": "Deliverable",
        "metadata": {"name": "shop", "namespace": TEAM},
        "spec": {"source": {"image": "registry.example.com/shop"}},
    }
    runnable = {**deliverable, "kind": "Runnable", "spec": {"runTemplateRef": {"name": "tests"}}}
    reference = {"kind": "ClusterDelivery", "name": "kapp"}
    await store(
        installed, deliverable, status={"deliveryRef": reference, "conditions": [condition("Ready", "True", "R")]}
    )
    await store(installed, runnable)

    shown = [line.split() for line in (await cli("get", "deliverables")).splitlines()]
    assert shown[0] == ["NAME", "SOURCE", "DELIVERY", "READY", "REASON", "AGE"]
    assert shown[1][:-1] == ["shop", "registry.example.com/shop", "kapp", "True", "R"]
    shown = [line.split() for line in (await cli("get", "runnables")).splitlines()]
    assert shown[0] == ["NAME", "TEMPLATE", "READY", "REASON", "AGE"]
    assert shown[1][:2] == ["shop", "tests"]


async def test_a_wrong_name_or_kind_is_told_the_right_one(installed: World, cli: InProcess) -> None:
    await store(installed, workload())
    for arguments, code, said in (
        (("get", "workloads", "shpo"), 1, "no Workload shpo in namespace"),
        (("get", "workloads", "shpo"), 1, "Did you mean shop?"),
        (("get", "workloads", "x", "-n", POLICIES), 1, "kardinal get workloads -A"),
        (("get", "workload"), 2, "Did you mean workloads?"),
        (("get", "workloads", "shop", "-A"), 2, "leave out the name"),
        (("explain", "workload/shpo"), 1, "Did you mean shop?"),
        (("explain", "worklod/shop"), 2, "did you mean workload/shop?"),
        (("explain", "workload/"), 2, "write KIND/NAME"),
        (("explain", "/shop"), 2, "write KIND/NAME"),
        (("explain", "pod/shop"), 2, "there are graph, deliverable, workload"),
        (("explain", "workload/shop", "--env", "prod"), 2, "not about a workload"),
    ):
        done = await cli.attempt(*arguments)
        assert (done.code, said in done.err) == (code, True), (arguments, done.err)
    assert await cli("get", "deliverables") == ""


async def test_a_cluster_without_the_kinds_is_told_how_to_install_them(world: World, cli: InProcess) -> None:
    for arguments in (("get", "workloads"), ("explain", "deliverable/shop")):
        done = await cli.attempt(*arguments)
        assert (done.code, "kubectl apply -f crds/supplychain/" in done.err) == (1, True), done.err


async def test_explain_shows_each_chain_each_option_and_each_param(installed: World, cli: InProcess) -> None:
    await store(installed, chain("images", selector={"type": "web", "from": "image"}))
    await store(installed, workload(), status=waiting_status())

    found = json.loads(await cli("explain", "workload/shop", "-o", "json"))
    assert found["blueprints"] == [
        {"kind": "ClusterSupplyChain", "name": "web", "verdict": "Chosen", "score": 1},
        {
            "kind": "ClusterSupplyChain",
            "name": "images",
            "verdict": "NotMatched",
            "score": 0,
            "failing": {"requirement": "from = image"},
        },
    ]
    resources = {each["name"]: each for each in found["resources"]}
    assert list(resources) == ["source", "image", "app"]
    assert resources["image"]["templateRef"] == {"kind": "ClusterImageTemplate", "name": "kpack"}
    assert [(each["name"], each["verdict"]) for each in resources["image"]["options"]] == [
        ("kpack", "Chosen"),
        ("kpack-with-env", "NotMatched"),
    ]
    assert resources["image"]["params"]["registry"] == {"value": "registry.example.com/apps", "from": "blueprint"}
    assert resources["image"]["stampedRef"]["name"] == "shop"
    assert resources["app"]["params"]["replicas"] == {"value": 3, "from": "owner"}
    assert [each["type"] for each in found["conditions"]] == ["SupplyChainReady", "ResourcesSubmitted", "Ready"]
    assert found["result"] == f"WAITING: MissingValueAtPath: {WAITING}"

    shown = await cli("explain", "workload/shop")
    assert shown.splitlines()[-1] == f"RESULT: {found['result']}"
    for words in ("from = image does not hold", "ClusterImageTemplate/kpack", "Image/shop", "kpack-with-env"):
        assert words in shown


async def test_explain_fits_a_terminal_and_names_every_part(installed: World, cli: InProcess) -> None:
    await store(installed, chain("images", selector={"type": "web", "from": "image"}))
    await store(installed, workload(), status=waiting_status())
    for arguments in (("explain", "workload/shop"), ("get", "workloads"), ("get", "workloads", "-A", "-o", "wide")):
        for columns in (80, 100, 200):
            lines = await cli.on_screen(*arguments, columns=columns)
            assert [line for line in lines if text_width(line) > columns] == []
            assert {"shop", "MissingValueAtPath"} <= set(" ".join(lines).replace(":", " ").replace("/", " ").split())


@pytest.mark.parametrize(
    ("selectors", "labels", "expected", "result"),
    [
        ({"a": {"type": "web"}}, None, {"a": "Tied", "web": "Tied"}, "NOT MATCHED: workload may only match a single"),
        ({}, {"type": "job"}, {"web": "NotMatched"}, "NOT MATCHED: no supply chain found"),
        ({}, {}, {"web": "NotMatched"}, "NOT MATCHED: workload has no labels"),
        (
            {"a": {"type": "web", "team": "x"}},
            {"type": "web", "team": "x"},
            {"a": "Chosen", "web": "Outscored"},
            "PENDING: no controller",
        ),
        ({"a": {}}, None, {"web": "Chosen", "a": "Empty"}, "PENDING: no controller"),
    ],
)
async def test_explain_says_why_a_chain_is_chosen_or_not(
    installed: World,
    cli: InProcess,
    *,
    selectors: dict[str, dict[str, str]],
    labels: dict[str, str] | None,
    expected: dict[str, str],
    result: str,
) -> None:
    for name, selector in selectors.items():
        await store(installed, chain(name, selector=selector))
    await store(installed, workload(labels=labels))

    found = json.loads(await cli("explain", "workload/shop", "-o", "json"))
    assert {each["name"]: each["verdict"] for each in found["blueprints"]} == expected
    assert found["result"].startswith(result)
    assert (found["resources"] == []) is result.startswith("NOT MATCHED")


async def test_explain_names_what_is_missing_or_broken(installed: World, cli: InProcess) -> None:
    broken = [{"key": "spec.source[?(", "operator": "Exists"}]
    await store(installed, chain("broken", selector={"type": "web"}, selectorMatchFields=broken))
    resources = [
        {"name": "gone", "templateRef": {"kind": "ClusterTemplate", "name": "nowhere"}},
        {
            "name": "tied",
            "templateRef": {
                "kind": "ClusterTemplate",
                "options": [
                    {"name": name, "selector": {"matchLabels": {"type": "web"}}} for name in ("deployment", "other")
                ],
            },
        },
    ]
    await store(installed, chain("two", selector={"type": "web", "x": "y"}, resources=resources))
    await store(installed, workload(labels={"type": "web", "x": "y"}))

    found = json.loads(await cli("explain", "workload/shop", "-o", "json"))
    failing = {each["name"]: each.get("failing") for each in found["blueprints"]}
    assert failing["two"] is None
    assert failing["broken"]["error"]
    errors = {each["name"]: each["error"] for each in found["resources"]}
    assert errors["gone"] == "there is no ClusterTemplate nowhere"
    assert "found [2] matching options [deployment, other]" in errors["tied"]
    assert "cannot be evaluated" in await cli("explain", "workload/shop")


async def test_explain_says_when_the_status_is_of_an_earlier_generation(installed: World, cli: InProcess) -> None:
    await store(installed, workload(), status={**waiting_status(), "observedGeneration": 0})
    found = json.loads(await cli("explain", "workload/shop", "-o", "json"))
    assert found["result"].startswith("PENDING: the controller has not seen")


async def test_explain_needs_a_role_that_reads_blueprints(installed: World) -> None:
    await store(installed, workload())
    for document in identities.documents_of("supplychain/roles.yaml"):
        await installed.client.apply(identities.RESOURCES["ClusterRole"], document, field_manager="test", force=True)
    home = installed.new_directory("home")
    home.mkdir()
    async with people_of(installed) as people:
        kardinal = InProcess(await people.kubeconfig_of_account("dana", home), home)
        user = f"system:serviceaccount:{TEAM}:dana"
        await people.bind(user, "view")
        await people.until_allowed(user, ("get", "workloads.carto.run"))
        assert "shop" in await kardinal("get", "workloads")
        refused = await kardinal.attempt("explain", "workload/shop")
        assert (refused.code, "kardinal-supplychain-reader" in refused.err) == (1, True), refused.err
        await people.bind(user, "kardinal-supplychain-reader", namespace=None)
        await people.until_allowed(user, ("get", "clustertemplates.carto.run"), namespace="")
        assert "RESULT: PENDING" in await kardinal("explain", "workload/shop")


async def test_explain_names_the_resource_that_is_not_healthy(installed: World, cli: InProcess) -> None:
    status = waiting_status()
    status["conditions"][-1] = condition("Ready", "False", "HealthyConditionRule")
    status["resources"][0]["conditions"][-1] = condition("Ready", "False", "ReadyCondition", "no builder")
    await store(installed, workload(), status=status)
    found = json.loads(await cli("explain", "workload/shop", "-o", "json"))
    assert found["result"] == "FAILED: HealthyConditionRule: resource image: ReadyCondition: no builder"


async def test_values_of_others_cannot_write_to_the_terminal(installed: World, cli: InProcess) -> None:
    document = workload()
    document["spec"]["params"].append({"name": "evil", "value": "red\x1b[31m\n" + "x" * 4000})
    await store(installed, document)
    shown = await cli("explain", "workload/shop")
    assert all(line.isprintable() for line in shown.splitlines())
    assert "x" * 300 not in shown
