"""How clients find out what is served."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.wire import Api

covers = pytest.mark.covers

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
BOTH = f"{V2},{V2BETA1},application/json"

SUBRESOURCES = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
}

# Of an object that runs, which nothing here does.
RUNNING = ["attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"]

# What the plane serves; the entry of each is that of the real server.
SERVED = {
    "": "namespaces configmaps secrets serviceaccounts events services pods persistentvolumeclaims",
    "apps": "deployments replicasets statefulsets daemonsets",
    "batch": "jobs cronjobs",
    "autoscaling": "horizontalpodautoscalers",
    "policy": "poddisruptionbudgets",
    "networking.k8s.io": "ingresses networkpolicies",
    "coordination.k8s.io": "leases",
    "events.k8s.io": "events",
    "rbac.authorization.k8s.io": "roles rolebindings clusterroles clusterrolebindings",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "authentication.k8s.io": "tokenreviews selfsubjectreviews",
    "authorization.k8s.io": "subjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews "
    "localsubjectaccessreviews",
    "admissionregistration.k8s.io": "validatingwebhookconfigurations mutatingwebhookconfigurations "
    "validatingadmissionpolicies validatingadmissionpolicybindings",
}


def _definition(api: Api, **version: Any) -> dict[str, Any]:
    definition = api.widgets(subresources=SUBRESOURCES, **version)
    definition["spec"]["names"] |= {"singular": "widget", "categories": ["all", "toys"]}
    return definition


async def _resources(api: Api, version: str) -> Any:
    """What a version of this test's group lists; the digest of a name that is different in each run is left out."""
    found = await api.silent.get(f"/apis/{api.group}/{version}")
    assert len(found.body["resources"][0].pop("storageVersionHash")) == 12
    return found.body


async def _group(api: Api, *, accept: str = V2) -> Any:
    found = await api.silent("GET", "/apis", headers={"Accept": accept})
    return next((one for one in found.body["items"] if one["metadata"]["name"] == api.group), None)


@covers("discovery", "discover", "success")
async def test_the_group_of_a_definition_is_described(api: Api) -> None:
    await api.define(_definition(api))
    assert (await api.get(f"/apis/{api.group}")).status == 200
    assert (await api.get(f"/apis/{api.group}/")).status == 200
    api.note("resources", await _resources(api, "v1"))


@covers("discovery", "discover", "success")
async def test_several_versions_are_described_the_best_first(api: Api) -> None:
    definition = _definition(api)
    first = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [
        first | {"name": name, "storage": name == "v1", "served": name != "v3"}
        for name in ("v1beta1", "v1", "v3", "v1alpha2", "v10", "odd")
    ]
    await api.define(definition)
    assert (await api.get(f"/apis/{api.group}")).status == 200
    api.note("resources", await _resources(api, "v1beta1"))
    assert (await api.get(f"/apis/{api.group}/v3")).status == 404
    await api.until(lambda: _group(api))
    api.note("aggregated", await _group(api))


@covers("discovery", "discover", "success")
async def test_a_definition_is_in_the_aggregated_document(api: Api) -> None:
    await api.define(_definition(api))
    await api.until(lambda: _group(api))
    api.note("aggregated", await _group(api))


@covers("discovery", "discover", "success")
@pytest.mark.parametrize("group", SERVED, ids=lambda group: group or "core")
async def test_built_in_kinds_are_described_as_they_are(api: Api, group: str) -> None:
    root = "/apis" if group else "/api"
    aggregated = await api.silent("GET", root, headers={"Accept": V2})
    item = next(one for one in aggregated.body["items"] if one["metadata"].get("name", "") == group)
    version = item["versions"][0]
    listed = await api.silent.get(f"/apis/{group}/{version['version']}" if group else "/api/v1")
    for plural in SERVED[group].split():
        found = next(one for one in version["resources"] if one["resource"] == plural)
        below = [one for one in found.pop("subresources", ()) if one["subresource"] not in RUNNING]
        api.note(f"{plural}, aggregated", found)
        api.note(f"below {plural}, aggregated", below)
        names = {plural, *(f"{plural}/{one['subresource']}" for one in below)}
        entries = [one for one in listed.body["resources"] if one["name"] in names]
        api.note(f"{plural}, listed", sorted(entries, key=lambda entry: str(entry["name"])))


@covers("discovery", "discover", "success")
@pytest.mark.differs("nothing-runs")
async def test_what_only_a_running_pod_has_is_not_described(api: Api) -> None:
    listed = await api.silent.get("/api/v1")
    below = {one["name"] for one in listed.body["resources"] if one["name"].startswith("pods/")}
    api.note("below pods", sorted(below))
    if api.real:
        assert {f"pods/{name}" for name in RUNNING} < below
    else:
        assert below == {"pods/status"}


@covers("discovery", "discover", "success")
async def test_the_core_group_has_one_version(api: Api) -> None:
    assert (await api.get("/api")).body["versions"] == ["v1"]


@covers("discovery", "discover", "success")
@pytest.mark.parametrize(
    "accept",
    [BOTH, V2, f"application/json;q=0.5,{V2}", f"application/vnd.kubernetes.protobuf,{V2}", "application/json", "*/*"],
    ids=["both", "v2", "worse-json", "protobuf", "json", "any"],
)
async def test_the_form_is_the_one_that_is_asked_for(api: Api, accept: str) -> None:
    found = await api.silent("GET", "/apis", headers={"Accept": accept})
    api.note("answer", [found.status, found.headers["Content-Type"], found.body["kind"], found.body["apiVersion"]])
    api.note("varies with", found.headers.getall("Vary", []))


@covers("discovery", "discover", "refusal")
@pytest.mark.parametrize("accept", [V2BETA1, f"{V2BETA1},application/json"], ids=["alone", "with-json"])
async def test_the_old_aggregated_form_is_gone(api: Api, accept: str) -> None:
    found = await api.silent("GET", "/apis", headers={"Accept": accept})
    api.note("answer", [found.status, found.headers["Content-Type"]])
    if found.status != 200:
        api.note("refusal", found.body)


@covers("discovery", "discover", "success")
@pytest.mark.parametrize("path", ["/apis", "/api"])
async def test_an_unchanged_document_is_not_sent_again(api: Api, path: str) -> None:
    silent = api.silent
    first = await silent("GET", path, headers={"Accept": V2})
    again = await silent("GET", path, headers={"Accept": V2, "If-None-Match": first.headers["ETag"]})
    other = await silent("GET", path, headers={"Accept": V2, "If-None-Match": '"other"'})
    assert (again.status, again.body, other.status) == (304, b"", 200)
    assert len(first.headers["ETag"]) == 130
    api.note("caching", first.headers.getall("Cache-Control", []))


@covers("discovery", "discover", "success")
async def test_the_document_changes_with_what_is_served(api: Api) -> None:
    silent = api.silent
    before = await silent("GET", "/apis", headers={"Accept": V2})
    await api.define(_definition(api))
    await api.until(lambda: _group(api))
    after = await silent("GET", "/apis", headers={"Accept": V2, "If-None-Match": before.headers["ETag"]})
    assert after.status == 200
    assert after.headers["ETag"] != before.headers["ETag"]
    await silent.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{api.group}")

    async def gone() -> bool:
        return await _group(api) is None

    await api.until(gone)


@covers("discovery", "discover", "refusal")
@pytest.mark.parametrize("path", ["/apis/no.where", "/apis/no.where/v1", "/apis/apps/v9", "/api/v9", "/apis/apps/v1/x"])
async def test_what_is_not_served_is_not_described(api: Api, path: str) -> None:
    assert (await api.get(path)).status == 404
