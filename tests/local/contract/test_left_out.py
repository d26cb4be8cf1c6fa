"""What the local plane leaves out: each case holds both sides, what a real server does and what the plane does instead.

Every one is a row of the ledger. A case that passes on the plane as it does on a real server fails: the row goes then.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.local.contract.conftest import Cluster
from tests.local.contract.connection import Connection
from tests.local.contract.definitions import TEXT, definition, items, rule, schema_of, try_definition
from tests.local.contract.examples import config_map
from tests.local.contract.manifests import manifest
from tests.local.contract.wire import Answer, Api

covers, differs = pytest.mark.covers, pytest.mark.differs

PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def pod(api: Api, **spec: Any) -> dict[str, Any]:
    """A pod that no node would run."""
    found = manifest("pods").placed(api, "a")
    return found | {"spec": {"containers": [{"name": "one", "image": "one"}], "schedulerName": "nobody", **spec}}


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


@covers("discovery", "discover", "refusal")
@differs("kinds-of-nodes")
async def test_what_belongs_to_machines_is_not_served(api: Api) -> None:
    for path in ("/api/v1/nodes", "/apis/resource.k8s.io/v1/resourceslices", "/apis/storage.k8s.io/v1/csinodes"):
        answer = await api.silent.get(path)
        api.note(path, answer.status)
        assert answer.status == (200 if api.real else 404)


@covers("discovery", "discover", "refusal")
@differs("aggregation")
async def test_no_api_of_another_server_is_taken_in(api: Api) -> None:
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    service = {"metadata": {"name": f"v1.{api.group}"}, "spec": {"group": api.group, "version": "v1"}}
    wanted = service | {"spec": service["spec"] | {"groupPriorityMinimum": 1, "versionPriority": 1}}
    answer = await api.silent.post(path, wanted, dryRun="All")
    api.note("registered", answer.status)
    assert answer.status == (201 if api.real else 404)


@covers("discovery", "discover", "refusal")
@differs("flow-control")
async def test_nobody_waits_for_a_turn(api: Api) -> None:
    answer = await api.silent.get("/api/v1/namespaces/default")
    schemas = await api.silent.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas")
    told = ["X-Kubernetes-Pf-Flowschema-Uid" in answer.headers, schemas.status]
    api.note("priority and fairness", told)
    assert told == ([True, 200] if api.real else [False, 404])


@covers("accounts", "get", "refusal")
@differs("client-certificates")
async def test_nobody_gets_in_by_a_certificate(api: Api) -> None:
    # The administrator of the real server has a certificate and no token, that of the plane a token alone.
    bare = replace(api.silent, connection=replace(api.connection, token=""))
    found = (await bare.get("/api/v1/namespaces/default")).status
    requests = (await api.silent.get("/apis/certificates.k8s.io/v1/certificatesigningrequests")).status
    api.note("without a token", [found, requests])
    assert [found, requests] == ([200, 200] if api.real else [401, 404])


@covers("negotiation", "get", "success")
@differs("http-2")
async def test_connections_speak_http_1(api: Api, cluster: Cluster) -> None:
    connection = Connection.load(cluster.kubeconfig)
    connection.tls.set_alpn_protocols(["h2", "http/1.1"])
    address = urlsplit(connection.server)
    _, writer = await asyncio.open_connection(address.hostname, address.port, ssl=connection.tls)
    spoken = writer.get_extra_info("ssl_object").selected_alpn_protocol()
    writer.transport.abort()
    api.note("spoken", spoken)
    assert spoken == ("h2" if api.real else "http/1.1")


@covers("built-in", "create", "refusal")
@differs("quotas")
async def test_a_quota_limits_nothing(api: Api) -> None:
    hard = {"hard": {"count/configmaps": "0"}}
    path = api.path("resourcequotas")
    await api.silent.post(path, {"metadata": {"name": "none"}, "spec": hard})
    # What a controller would work out.
    await api.silent.merge(f"{path}/none/status", {"status": hard | {"used": {"count/configmaps": "0"}}})
    if api.real:
        await api.until(lambda: _refused(api))
    created = await api.silent.post(api.path("configmaps"), config_map("a"))
    api.note("created", created.status)
    assert created.status == (403 if api.real else 201)


async def _refused(api: Api) -> bool:
    probe = {"metadata": {"generateName": "probe-"}}
    return (await api.silent.post(api.path("configmaps"), probe, dryRun="All")).status == 403


@covers("delete", "delete", "success")
@differs("pods-without-nodes")
async def test_a_pod_goes_without_its_grace_period(api: Api) -> None:
    path = api.path("pods")
    await api.silent.post(path, pod(api, nodeName="nowhere"))
    deleted = await api.silent.delete(f"{path}/a", gracePeriodSeconds=20)
    left = await api.silent.get(f"{path}/a")
    api.note("seconds", [deleted.body["metadata"].get("deletionGracePeriodSeconds"), left.status])
    # On a real server it stays until the node has seen it off, or somebody says that nobody will.
    assert left.status == (200 if api.real else 404)
    await api.silent.delete(f"{path}/a", gracePeriodSeconds=0)


@covers("built-in", "create", "refusal")
@differs("admission-of-pods")
async def test_a_pod_is_admitted_as_it_is(api: Api) -> None:
    unknown = await api.silent.post(api.path("pods"), pod(api, priorityClassName="nobody"), dryRun="All")
    api.note("a priority class that is not there", unknown.status)
    assert unknown.status == (403 if api.real else 201)


@covers("crds", "create", "refusal")
@differs("cel-cost")
async def test_a_rule_may_cost_what_it_likes(api: Api) -> None:
    costly = rule("self.all(x, self.exists(y, x == y))")
    answer = await try_definition(api, definition(api, schema_of(of=items(TEXT, **costly))))
    assert answer.status == (422 if api.real else 201)
    assert not api.real or "estimated rule cost exceeds budget" in answer.message
    # With bounds it is cheap enough for both, which is what an author should write.
    bounded = items(TEXT | {"maxLength": 10}, maxItems=10, **costly)
    assert (await try_definition(api, definition(api, schema_of(of=bounded)))).status == 201


@covers("built-in", "create", "refusal")
@differs("built-in-validation")
async def test_what_is_seldom_wrong_with_a_built_in_kind_is_not_found(api: Api) -> None:
    contradiction = {"privileged": True, "allowPrivilegeEscalation": False}
    for document in (
        pod(api, dnsPolicy="None"),
        pod(api, containers=[{"name": "one", "image": "one", "securityContext": contradiction}]),
    ):
        answer = await api.silent.post(api.path("pods"), document, dryRun="All")
        api.note("created", answer.status)
        assert answer.status == (422 if api.real else 201)


@covers("built-in", "create", "conflict")
@differs("service-addresses")
async def test_addresses_and_ports_of_services_are_nobodys(api: Api) -> None:
    path = api.path("services")
    first = await api.silent.post(path, service("a", type="NodePort"))
    spec = first.body["spec"]
    taken = {"clusterIP": spec["clusterIP"]}, {"type": "NodePort", "ports": spec["ports"]}, {"clusterIP": "192.0.2.1"}
    answers = [await api.silent.post(path, service(f"b{number}", **one)) for number, one in enumerate(taken)]
    api.note("what is taken, and what is out of range", [answer.status for answer in answers])
    assert [answer.status for answer in answers] == ([422] * 3 if api.real else [201] * 3)
    # What is drawn is an address within, and a port where node ports are.
    assert 30_000 <= spec["ports"][0]["nodePort"] < 32_768
    assert spec["clusterIP"].startswith("10.")


@covers("limits", "create", "refusal")
@differs("nesting")
async def test_an_object_is_nested_some_two_hundred_levels_deep(api: Api) -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await api.define(definition(api, schema_of(free=anything)))
    nested: dict[str, Any] = {}
    for _ in range(300):
        nested = {"a": nested}
    text = str(api.widget("a", free=nested)).replace("'", '"').encode()
    answer = await api.silent("POST", api.path("widgets", group=api.group), text)
    api.note("300 levels", answer.status)
    assert answer.status == (201 if api.real else 400)


@covers("negotiation", "create", "refusal")
@differs("protobuf-of-custom-kinds")
async def test_a_custom_kind_in_protobuf_is_refused(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    heard: Answer | None
    try:
        heard = await api.silent("POST", path, b"k8s\0\x0a\x00", content_type=PROTOBUF)
    except aiohttp.ServerDisconnectedError:
        heard = None
    api.note("answer", None if heard is None else heard.status)
    # The real server has no decoder for it, and breaks off in the middle of looking for one.
    assert heard is None if api.real else heard is not None and heard.status == 400


@covers("tables", "list", "success")
@differs("column-descriptions")
async def test_columns_of_built_in_kinds_are_hardly_described(api: Api) -> None:
    table = await api.silent("GET", api.path("services"), headers=TABLE)
    described = {column["name"]: bool(column["description"]) for column in table.body["columnDefinitions"]}
    api.note("described", described)
    assert described["Name"]
    assert all(described.values()) == api.real
