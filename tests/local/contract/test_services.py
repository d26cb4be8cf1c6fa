"""Services: what the server makes of their addresses and families, what it drops, and what it refuses.

Whatever is stored here is headless or an external name, so that no address is drawn and every answer can be recorded;
the rest is asked as a dry run of something that is refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.wire import Api

covers = pytest.mark.covers

PORTS = [{"name": "http", "port": 80}]
HEADLESS: dict[str, Any] = {"clusterIP": "None", "selector": {"app": "web"}, "ports": PORTS}
EVERYWHERE: dict[str, Any] = {"clusterIP": "None", "ports": PORTS}
EXTERNAL: dict[str, Any] = {"type": "ExternalName", "externalName": "example.com"}
REACHED: dict[str, Any] = {**HEADLESS, "externalIPs": ["192.0.2.1"]}
CONDITION = {"type": "Ready", "status": "True", "reason": "Seen", "message": ""}
TIME = {"lastTransitionTime": "2026-01-01T00:00:00Z"}


def service(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", **metadata}, "spec": spec}


MADE: dict[str, dict[str, Any]] = {
    "headless": HEADLESS,
    "headless-for-everybody": EVERYWHERE,
    "headless-of-one-family": {**EVERYWHERE, "ipFamilyPolicy": "SingleStack"},
    "headless-of-the-other-family": {**EVERYWHERE, "ipFamilies": ["IPv6"]},
    "headless-preferring-two-families": {**HEADLESS, "ipFamilyPolicy": "PreferDualStack"},
    "headless-by-both-fields": {**HEADLESS, "clusterIPs": ["None"]},
    "reached-from-outside": REACHED,
    "external-name": EXTERNAL,
}


@covers("built-in", "create", "success")
@pytest.mark.parametrize("case", MADE)
async def test_addresses_and_families_of_a_service_are_completed(api: Api, case: str) -> None:
    made = await api.post(api.path("services"), service(MADE[case]))
    assert made.status == 201, made.body


REFUSED: dict[str, dict[str, Any]] = {
    "one-field-of-two": {"ports": PORTS, "clusterIPs": ["None"]},
    "fields-disagree": {"ports": PORTS, "clusterIP": "10.0.0.9", "clusterIPs": ["None"]},
    "none-and-more": {**HEADLESS, "clusterIPs": ["None", "here"]},
    "no-address": {"ports": PORTS, "clusterIP": "here"},
    "three-addresses": {"ports": PORTS, "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "10.0.0.8", "10.0.0.7"]},
    "two-addresses-of-a-family": {"ports": PORTS, "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "10.0.0.8"]},
    "two-addresses-and-no-policy": {"ports": PORTS, "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "fd00::1"]},
    "family-that-is-not-there": {"ports": PORTS, "clusterIP": "fd00::1"},
    "address-of-another-family": {"ports": PORTS, "clusterIP": "10.0.0.9", "ipFamilies": ["IPv6"]},
    "families": {"ports": PORTS, "ipFamilies": ["IPv5", "IPv5"]},
    "families-that-are-not-there": {**HEADLESS, "ipFamilies": ["IPv6"]},
    "policy": {"ports": PORTS, "ipFamilyPolicy": "Sometimes"},
    "policy-empty": {"ports": PORTS, "ipFamilyPolicy": ""},
    "policy-of-two-families": {**HEADLESS, "ipFamilyPolicy": "RequireDualStack"},
    "two-families-and-policy-of-one": {**HEADLESS, "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "SingleStack"},
    "headless-balancer": {**HEADLESS, "type": "LoadBalancer"},
    "headless-at-nodes": {**HEADLESS, "type": "NodePort"},
    "external-name-with-address": {**EXTERNAL, "clusterIP": "None"},
    "external-name-with-families": {**EXTERNAL, "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"},
    "external-name-that-is-none": {**EXTERNAL, "externalName": "A_b"},
    "external-addresses": {
        **HEADLESS,
        "externalIPs": ["here", "::", "127.0.0.1", "169.254.1.1", "224.0.0.1", "192.0.2.1"],
    },
    "traffic-from-outside": {**HEADLESS, "externalTrafficPolicy": "Local"},
    "traffic": {**REACHED, "externalTrafficPolicy": "a", "internalTrafficPolicy": "b", "trafficDistribution": "c"},
    "health-check": {**HEADLESS, "healthCheckNodePort": 30001},
    "balancing": {
        **HEADLESS,
        "allocateLoadBalancerNodePorts": True,
        "loadBalancerClass": "example.com/a",
        "loadBalancerSourceRanges": ["here"],
    },
    "ports": {**HEADLESS, "ports": [{"port": 80, "nodePort": 30001, "appProtocol": "a b"}]},
    "affinity": {
        **HEADLESS,
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}},
    },
    "another-type": {**HEADLESS, "type": "Sometimes"},
}


@covers("built-in", "create", "refusal")
@pytest.mark.parametrize("case", REFUSED)
async def test_what_a_service_cannot_be_is_refused(api: Api, case: str) -> None:
    refused = await api.post(api.path("services"), service(REFUSED[case]), dryRun="All")
    assert refused.status == 422, refused.body


CHANGED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "address-unsaid": (HEADLESS, {"clusterIP": None, "clusterIPs": None}),
    "families-unsaid": (HEADLESS, {"ipFamilies": None, "ipFamilyPolicy": None}),
    "selector-gone": (HEADLESS, {"selector": None}),
    "selector-and-families-gone": (HEADLESS, {"selector": None, "ipFamilies": None, "ipFamilyPolicy": None}),
    "one-family-of-two": (EVERYWHERE, {"ipFamilyPolicy": "SingleStack"}),
    "other-order": (EVERYWHERE, {"ipFamilies": ["IPv6", "IPv4"]}),
    "outside-gone": (REACHED, {"externalIPs": None}),
    "outside-unsaid": (REACHED, {"externalTrafficPolicy": None}),
    "outside-new": (HEADLESS, {"externalIPs": ["192.0.2.1"]}),
    "external-name": (HEADLESS, EXTERNAL),
    "no-external-name": (EXTERNAL, {"type": "ClusterIP", "clusterIP": "None", "externalName": None}),
}


@covers("built-in", "update", "success")
@pytest.mark.parametrize("case", CHANGED)
async def test_a_change_drops_what_it_leaves_without_a_use(api: Api, case: str) -> None:
    before, change = CHANGED[case]
    await api.silent.post(api.path("services"), service(before))
    changed = await api.merge(api.path("services", "a"), {"spec": change})
    assert changed.status == 200, changed.body


UNCHANGEABLE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "address": (HEADLESS, {"clusterIP": "10.0.0.200"}),
    "address-is-none": (HEADLESS, {"clusterIP": "here"}),
    "second-family-silently": (EVERYWHERE, {"ipFamilies": ["IPv4"]}),
    "two-families": (HEADLESS, {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}),
    "selector-of-two-families": (EVERYWHERE, {"selector": {"app": "web"}}),
    "outside-gone-but-its-policy-changed": (REACHED, {"externalIPs": None, "externalTrafficPolicy": "Local"}),
    "external-name-with-a-new-policy": (HEADLESS, {**EXTERNAL, "ipFamilyPolicy": "PreferDualStack"}),
    "ports-of-a-new-type": (EXTERNAL, {"type": "ClusterIP"}),
}


@covers("built-in", "update", "refusal")
@pytest.mark.parametrize("case", UNCHANGEABLE)
async def test_what_of_a_service_cannot_change_is_refused(api: Api, case: str) -> None:
    before, change = UNCHANGEABLE[case]
    await api.silent.post(api.path("services"), service(before))
    refused = await api.merge(api.path("services", "a"), {"spec": change}, dryRun="All")
    assert refused.status == 422, refused.body


@covers("built-in", "update", "success")
async def test_a_status_of_a_service_that_is_not_there_makes_one_without_status_and_address(api: Api) -> None:
    path = api.path("services", "a", subresource="status")
    reported = service({"ports": PORTS}, labels={"app": "web"}) | {"status": {"conditions": [CONDITION | TIME]}}
    assert (await api.put(path, reported, dryRun="All")).status == 201
    made = await api.apply(path, reported, fieldManager="reporter")
    assert made.status == 201, made.body
    assert made.body["status"] == {"loadBalancer": {}}
    assert "clusterIP" not in made.body["spec"]


@covers("built-in", "update", "refusal")
async def test_a_status_alone_makes_no_service(api: Api) -> None:
    path = api.path("services", "a", subresource="status")
    assert (await api.put(path, service({}))).status == 422
    assert (await api.put(path, service(HEADLESS))).status == 422
    assert (await api.apply(path, service({}), fieldManager="reporter")).status == 422
    assert (await api.merge(path, {"status": {}})).status == 404


@covers("built-in", "update", "refusal")
async def test_only_a_balancer_reports_where_it_lets_in(api: Api) -> None:
    await api.silent.post(api.path("services"), service(HEADLESS))
    path = api.path("services", "a", subresource="status")
    refused = await api.merge(path, {"status": {"loadBalancer": {"ingress": [{"hostname": "example.com"}]}}})
    assert refused.status == 422


@covers("built-in", "update", "conflict")
async def test_a_put_that_makes_a_service_heeds_a_uid_and_no_resource_version(api: Api) -> None:
    path = api.path("services", "a")
    another = "11111111-2222-3333-4444-555555555555"
    assert (await api.put(path, service(HEADLESS, uid=another))).status == 409
    assert (await api.put(path, service({}, resourceVersion="1"))).status == 422
    assert (await api.put(path, service(HEADLESS, resourceVersion="1"))).status == 201


@covers("built-in", "create", "refusal")
async def test_a_resource_version_is_refused_once_there_is_nothing_else_to_refuse(api: Api) -> None:
    assert (await api.post(api.path("services"), service({}, resourceVersion="1"))).status == 422
    assert (await api.post(api.path("services"), service(HEADLESS, resourceVersion="1"))).status == 500


@covers("apply", "apply", "conflict")
async def test_an_apply_that_creates_is_asked_for_its_uid_before_its_name(api: Api) -> None:
    path = api.path("services", "a")
    another = service(HEADLESS, name="another", uid="11111111-2222-3333-4444-555555555555")
    assert (await api.apply(path, another, fieldManager="author")).status == 409
    del another["metadata"]["uid"]
    assert (await api.apply(path, another, fieldManager="author")).status == 400


@covers("built-in", "update", "refusal")
async def test_an_empty_map_is_a_change_of_what_is_immutable(api: Api) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "immutable": True}
    await api.silent.post(api.path("configmaps"), config | {"data": {"a": "b"}})
    refused = await api.merge(api.path("configmaps", "a"), {"binaryData": {}})
    assert refused.status == 422
