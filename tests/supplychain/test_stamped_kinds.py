"""The kinds that templates stamp: installed, removed, not to be watched, and objects of builtin kinds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, JOB, SECRET, JsonObject, ResourceType
from kardinal.runtime.dynamic import LINGER
from kardinal_supplychain.api.kinds import DELIVERABLE, WORKLOAD
from tests.supplychain.chains import (
    Chains,
    Requests,
    blueprint,
    condition,
    conditions,
    config_map,
    deliverable,
    resource,
    template,
    workload,
)
from tests.support.accounts import rule
from tests.support.names import TEAM

WIDGET = ResourceType("example.com", "v1", "Widget", "widgets")
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}
BODY = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"v": "$(params.v)$"}}
PARAMS = [{"name": "v", "default": "1"}]
MAKES = template("w", BODY, kind="ClusterImageTemplate", imagePath="status.latestImage", params=PARAMS)
USES = template("c", config_map("c", image="$(image)$"))
USER = resource("c", images=[{"name": "i", "resource": "w"}])
CHAIN = blueprint(resource("w", kind="ClusterImageTemplate"), USER, serviceAccountRef={"name": "dev"})
MAY = rule("*", on="widgets", group="example.com")


async def install(chains: Chains) -> None:
    await chains.world.client.create(CUSTOM_RESOURCE_DEFINITION, DEFINITION)


async def until_reason(chains: Chains, reason: str) -> None:
    """Wait for a reason of the resource `w`: a kind is served a moment after its definition."""

    def has_reason(owner: JsonObject) -> bool:
        resources = (owner.get("status") or {}).get("resources") or ()
        return any(condition(each, "ResourceSubmitted")[1] == reason for each in resources if each["name"] == "w")

    await chains.world.wait_for(WORKLOAD, "web", has_reason)
    await chains.world.settle()


async def set_status(chains: Chains, **status: Any) -> None:
    await chains.world.client.patch(WIDGET, "w", TEAM, {"status": status}, subresource="status")
    await chains.world.settle()


@pytest.fixture
async def widgets(chains: Chains) -> Chains:
    await chains.account("dev", MAY, rule("*", on="configmaps"))
    await chains.apply(MAKES, USES, CHAIN, workload())
    return chains


async def test_kind_is_installed_removed_and_back(widgets: Chains) -> None:
    """Cartographer watches no definitions: its owners wait for the next resync."""
    assert condition(await widgets.resource("w"), "ResourceSubmitted")[1] == "TemplateRejectedByAPIServer"
    await install(widgets)
    await until_reason(widgets, "MissingValueAtPath")
    await set_status(widgets, latestImage="r@sha256:1")
    assert (await widgets.get(CONFIG_MAP, "c"))["data"] == {"image": "r@sha256:1"}
    await widgets.world.client.delete(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com")
    await until_reason(widgets, "TemplateRejectedByAPIServer")
    assert (await widgets.resource("w"))["stampedRef"]["name"] == "w"
    assert (await widgets.get(CONFIG_MAP, "c"))["data"] == {"image": "r@sha256:1"}
    await install(widgets)
    await until_reason(widgets, "MissingValueAtPath")
    assert (await widgets.get(CONFIG_MAP, "c"))["data"] == {"image": "r@sha256:1"}


async def test_status_of_an_object_flows_in_one_reconcile(widgets: Chains) -> None:
    """Trap: each event of a chain woke every owner of it."""
    await install(widgets)
    await until_reason(widgets, "MissingValueAtPath")
    others = [workload(f"other-{number}", labels={"type": "other"}) for number in range(10)]
    chain = blueprint(resource("o"), name="others", selector={"type": "other"}, serviceAccountRef={"name": "dev"})
    await widgets.apply(template("o", config_map("$(workload.metadata.name)$", a="b")), chain, *others)
    requests = Requests(widgets)
    await set_status(widgets, latestImage="r@sha256:1")
    taken = await requests.take()
    assert (taken.made, taken.reconciles) == (["patch configmaps", "patch workloads/status"], 1)
    await set_status(widgets, latestImage="r@sha256:2")
    taken = await requests.take()
    assert (taken.made, taken.reconciles) == (["patch configmaps", "patch workloads/status"], 1)
    shown = await widgets.resource("w")
    assert [each["preview"] for each in shown["outputs"]] == ["r@sha256:2\n"]


async def test_health_rule_says_when_an_object_is_healthy(widgets: Chains) -> None:
    await install(widgets)
    await widgets.apply({**MAKES, "spec": {**MAKES["spec"], "healthRule": {"singleConditionType": "Ready"}}})
    await until_reason(widgets, "MissingValueAtPath")
    failed = {"type": "Ready", "status": "False", "reason": "No", "message": "base image is gone"}
    await set_status(widgets, conditions=[failed])
    status = await widgets.status()
    assert condition(status, "ResourcesHealthy")[:2] == ("False", "HealthyConditionRule")
    shown = await widgets.resource("w")
    assert condition(shown, "Healthy") == ("False", "ReadyCondition", "base image is gone")
    assert "unhealthy object [widgets.example.com/w]" in condition(shown, "ResourceSubmitted")[2]


@pytest.mark.local_only(
    "a kind is served a moment after its definition, for which a clock that stands still does not wait"
)
async def test_kinds_are_watched_while_an_owner_needs_them(widgets: Chains) -> None:
    """Trap: caches of all Secrets, because a kind was watched for ever once it had been stamped."""
    await install(widgets)
    await until_reason(widgets, "MissingValueAtPath")
    dynamic = widgets.program.manager.dynamic
    assert {each.resource.kind: each.labels for each in dynamic.informers if each.labels} == {
        "Widget": "carto.run/resource-name"
    }
    await widgets.world.delete(WORKLOAD, "web")
    await widgets.world.live(timedelta(seconds=LINGER + 1))
    assert [each.resource.kind for each in dynamic.informers if each.labels] == []


async def test_stamped_secrets_alone_are_cached(chains: Chains) -> None:
    """Trap: a cache of all Secrets of the cluster, whatever was stamped (#984)."""

    def cached() -> set[str]:
        informers = [each for each in chains.program.manager.dynamic.informers if each.resource == SECRET]
        return {obj["metadata"]["name"] for informer in informers for obj in informer.list()}

    await chains.account("dev", rule("*", on="secrets"))
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "stamped"}, "data": {"a": "YQ=="}}
    theirs = {**body, "metadata": {"name": "theirs", "namespace": TEAM}}
    await chains.world.client.create(SECRET, theirs)
    chain = blueprint(resource("s", kind="ClusterTemplate"), serviceAccountRef={"name": "dev"})
    await chains.apply(template("s", body, kind="ClusterTemplate"), chain)
    assert cached() == set()
    await chains.apply(workload())
    assert condition(await chains.resource("s"), "Ready")[0] == "True"
    assert cached() == {"stamped"}


def job(image: str) -> JsonObject:
    container = {"name": "c", "image": image}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": pod}}


async def test_mutable_job_says_which_lifecycle_it_needs(chains: Chains) -> None:
    await chains.account("dev", rule("*", on="jobs", group="batch"))
    chain = blueprint(resource("j", kind="ClusterTemplate"), serviceAccountRef={"name": "dev"})
    await chains.apply(template("j", job("a:1"), kind="ClusterTemplate"), chain, workload())
    assert condition(await chains.resource("j"), "Ready")[0] == "True"
    uid = (await chains.get(JOB, "j"))["metadata"]["uid"]
    await chains.apply(template("j", job("a:2"), kind="ClusterTemplate"))
    status, reason, message = condition(await chains.resource("j"), "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateRejectedByAPIServer")
    assert "lifecycle: immutable" in message
    assert (await chains.get(JOB, "j"))["metadata"]["uid"] == uid
    await chains.apply(template("j", job("a:1"), kind="ClusterTemplate"))
    assert condition(await chains.resource("j"), "Ready")[0] == "True"


async def test_values_that_the_server_writes_otherwise_are_applied_once(chains: Chains) -> None:
    """Trap: an object that the server stores with other values was written again in each reconcile."""
    await chains.account("dev", rule("*", on="deployments", group="apps"))
    container = {"name": "c", "image": "a:1", "resources": {"requests": {"cpu": "1000m"}}}
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    chain = blueprint(resource("d", kind="ClusterTemplate"), serviceAccountRef={"name": "dev"})
    await chains.apply(template("d", body, kind="ClusterTemplate"), chain, workload())
    requests = Requests(chains)
    labels = {"type": "web", "other": "x"}
    await chains.apply(workload(labels=labels))
    assert [each for each in (await requests.take()).made if "deployments" in each] == []
    await chains.restart()
    assert len([each for each in (await requests.take()).made if "deployments" in each]) <= 1
    await chains.apply(workload())
    assert [each for each in (await requests.take()).made if "deployments" in each] == []


DEPLOYS = template(
    "d",
    {**BODY, "spec": {"url": "$(deployment.url)$", "revision": "$(deployment.revision)$"}},
    kind="ClusterDeploymentTemplate",
    observedMatches=[{"input": "spec.revision", "output": "status.deployed"}],
)
SOURCE = template("s", config_map("s", url="u", rev="$(params.rev)$"), kind="ClusterSourceTemplate")
SOURCE["spec"] |= {"urlPath": "data.url", "revisionPath": "data.rev", "params": [{"name": "rev", "default": "r1"}]}
AFTER = template("c", config_map("c", revision="$(source.revision)$"))
DELIVERY = blueprint(
    resource("s", kind="ClusterSourceTemplate"),
    resource("d", kind="ClusterDeploymentTemplate", deployment={"resource": "s"}),
    resource("c", sources=[{"name": "in", "resource": "d"}]),
    name="delivery",
    kind="ClusterDelivery",
    serviceAccountRef={"name": "dev"},
)


async def test_delivery_waits_until_each_revision_is_deployed(chains: Chains) -> None:
    await chains.account("dev", MAY, rule("*", on="configmaps"))
    await install(chains)
    await chains.apply(DEPLOYS, SOURCE, AFTER, DELIVERY, deliverable())

    def is_made(owner: JsonObject) -> bool:
        return "ConditionNotMet" in str(owner.get("status"))

    await chains.world.wait_for(DELIVERABLE, "web", is_made)
    status = await chains.status("web", DELIVERABLE)
    assert condition(status, "ResourcesSubmitted")[:2] == ("Unknown", "ConditionNotMet")
    assert next(each["type"] for each in status["conditions"]) == "DeliveryReady"
    assert status["deliveryRef"] == {"kind": "ClusterDelivery", "name": "delivery"}
    await set_status(chains, deployed="r1")
    assert (await chains.get(CONFIG_MAP, "c"))["data"] == {"revision": "r1"}
    assert condition(await chains.status("web", DELIVERABLE), "Ready")[0] == "True"
    await chains.apply(deliverable(params=[{"name": "rev", "value": "r2"}]))
    waiting = await chains.resource("d", kind=DELIVERABLE)
    assert condition(waiting, "ResourceSubmitted")[1] == "ConditionNotMet"
    assert (await chains.get(CONFIG_MAP, "c"))["data"] == {"revision": "r1"}
    await set_status(chains, deployed="r2")
    assert (await chains.get(CONFIG_MAP, "c"))["data"] == {"revision": "r2"}
    assert conditions(await chains.resource("c", kind=DELIVERABLE))[-1] == ("Ready", "True", "Ready")


async def test_template_for_ytt_says_how_to_get_it(chains: Chains) -> None:
    await chains.account("dev", rule("*", on="configmaps"))
    ytt = template("c", {})
    ytt["spec"] = {"ytt": "a: 1\n", "configPath": "data"}
    await chains.apply(ytt, blueprint(resource("c"), serviceAccountRef={"name": "dev"}), workload())
    status, reason, message = condition(await chains.resource("c"), "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateStampFailure")
    assert "ytt is not installed" in message
