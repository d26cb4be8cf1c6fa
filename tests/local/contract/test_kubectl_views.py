"""What kubectl shows: get in all its forms, describe, explain, events, wait, discovery and rights."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest
import yaml

from tests.local.contract.wire import Api
from tests.support.kubectl import Kubectl


def cells(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


async def test_get_prints_the_columns_of_the_definition(run: Kubectl, api: Api, widgets: str) -> None:
    await api.silent.post(api.path("widgets", group=api.group), api.widget("a", size=7))
    assert cells(await run("get", widgets)) == [["NAME", "SIZE"], ["a", "7"]]
    assert await run("get", widgets, "-o", "name") == f"{widgets}/a\n"
    found = yaml.safe_load(await run("get", widgets, "a", "-o", "yaml"))
    assert (found["kind"], found["spec"]["size"]) == ("Widget", 7)
    columns = await run("get", widgets, "-o", "custom-columns=N:.metadata.name,S:.spec.size,X:.spec.nothing")
    assert cells(columns) == [["N", "S", "X"], ["a", "7", "<none>"]]
    assert await run("get", widgets, "-o", "jsonpath={.items[*].spec.size}") == "7"
    everywhere = cells(await run("get", widgets, "--all-namespaces"))
    assert everywhere == [["NAMESPACE", "NAME", "SIZE"], [run.namespace, "a", "7"]]
    assert cells(await run("get", widgets, "--show-labels")) == [["NAME", "SIZE", "LABELS"], ["a", "7", "<none>"]]


async def test_get_prints_built_in_kinds_as_people_know_them(run: Kubectl, api: Api) -> None:
    await run("create", "deployment", "web", "--image=example/web:1", "--replicas=0")
    await run("create", "configmap", "cm", "--from-literal=a=b")
    await run("create", "secret", "generic", "s", "--from-literal=a=b")
    await run("create", "service", "clusterip", "svc", "--tcp=80:8080")
    deployments = cells(await run("get", "deployments"))
    assert deployments[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert deployments[1][:4] == ["web", "0/0", "0", "0"]
    wide = cells(await run("get", "deployments", "-o", "wide"))
    assert wide[0][5:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1][5:] == ["web", "example/web:1", "app=web"]
    assert [row[:2] for row in cells(await run("get", "cm", "cm"))] == [["NAME", "DATA"], ["cm", "1"]]
    assert [row[:3] for row in cells(await run("get", "secret", "s"))] == [
        ["NAME", "TYPE", "DATA"],
        ["s", "Opaque", "1"],
    ]
    services = cells(await run("get", "service", "svc"))
    assert services[0] == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert (services[1][1], services[1][3:5]) == ("ClusterIP", ["<none>", "80/TCP"])


async def test_get_watches(run: Kubectl, api: Api, widgets: str) -> None:
    path = api.path("widgets", group=api.group)
    await api.silent.post(path, api.widget("a", size=1))
    process = await run.start("get", widgets, "-w", "--no-headers")
    assert process.stdout is not None
    assert (await process.stdout.readline()).split() == [b"a", b"1"]
    await api.silent.merge(f"{path}/a", {"spec": {"size": 2}})
    assert (await process.stdout.readline()).split() == [b"a", b"2"]
    await api.silent.post(path, api.widget("b", size=3))
    assert (await process.stdout.readline()).split() == [b"b", b"3"]
    process.terminate()
    await process.communicate()


async def test_describe_shows_an_object_and_its_events(run: Kubectl, api: Api, widgets: str) -> None:
    created = await api.silent.post(api.path("widgets", group=api.group), api.widget("a", size=7))
    regarding = {"kind": "Widget", "name": "a", "namespace": api.namespace, "uid": created.body["metadata"]["uid"]}
    event = {
        "metadata": {"name": "a.1"},
        "regarding": regarding | {"apiVersion": f"{api.group}/v1"},
        "reason": "Polished",
        "note": "it shines",
        "type": "Normal",
        "eventTime": created.body["metadata"]["creationTimestamp"].replace("Z", ".000000Z"),
        "action": "Polish",
        "reportingController": "example.com/polisher",
        "reportingInstance": "polisher-0",
    }
    posted = await api.silent.post(api.path("events", group="events.k8s.io"), event)
    assert posted.status == 201, posted.body
    described = await run("describe", widgets, "a")
    assert "Size:  7" in described
    assert "it shines" in described
    assert "Polished" in await run("events")
    await run("create", "deployment", "web", "--image=example/web:1", "--replicas=0")
    assert "example/web:1" in await run("describe", "deployment", "web")


async def test_wait_returns_when_the_condition_holds(run: Kubectl, api: Api, widgets: str) -> None:
    path = api.path("widgets", group=api.group)
    await api.silent.post(path, api.widget("a"))
    for environment in ({}, {"KUBE_FEATURE_WatchListClient": "true"}):
        waiter = replace(run, environment=environment)
        waiting = asyncio.create_task(waiter("wait", "--for=jsonpath={.status.phase}=Up", f"{widgets}/a"))
        await api.silent.merge(f"{path}/a/status", {"status": {"phase": "Up"}})
        assert await waiting == f"{widgets}/a condition met\n"
        await api.silent.merge(f"{path}/a/status", {"status": {"phase": "Down"}})
    await run("wait", "--for=condition=Established", f"crd/widgets.{api.group}")
    late = await run.attempt("wait", "--for=condition=Ready", f"{widgets}/a", "--timeout=1s")
    assert late.code == 1
    assert "timed out waiting for the condition" in late.err
    gone = asyncio.create_task(run("wait", "--for=delete", f"{widgets}/a"))
    await api.silent.delete(f"{path}/a")
    await gone


async def test_explain_reads_the_schema(run: Kubectl, api: Api, widgets: str) -> None:
    async def published() -> bool:
        return (await run.attempt("explain", widgets.replace("widget.", "widgets."))).code == 0

    # The schemas of custom kinds are published a moment after they are served.
    await api.until(published)
    explained = await run("explain", "widgets.spec", f"--api-version={api.group}/v1")
    assert "KIND:       Widget" in explained
    assert "colour" in explained
    assert "minimum" not in explained
    recursive = await run("explain", "deployment.spec", "--recursive")
    for field in ("maxUnavailable", "containerPort", "minReadySeconds", "topologySpreadConstraints"):
        assert field in recursive


async def test_the_server_says_what_it_serves(run: Kubectl, api: Api, widgets: str) -> None:
    served = cells(await run("api-resources", f"--api-group={api.group}", "--no-headers"))
    assert served == [["widgets", "wd", f"{api.group}/v1", "true", "Widget"]]
    names = set((await run("api-resources", "-o", "name")).split())
    assert {"configmaps", "deployments.apps", "leases.coordination.k8s.io", f"widgets.{api.group}"} <= names
    assert f"{api.group}/v1" in (await run("api-versions")).split()
    version = orjson.loads(await run("version", "-o", "json"))["serverVersion"]
    assert (version["major"], version["minor"]) == ("1", "36")


async def test_rights_are_shown_and_kept(run: Kubectl, api: Api) -> None:
    assert await run("auth", "can-i", "create", "pods") == "yes\n"
    refused = await run.attempt("auth", "can-i", "create", "pods", "--as=somebody")
    assert (refused.code, refused.out) == (1, "no\n")
    await run("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    await run("create", "rolebinding", "reader", "--role=reader", "--user=somebody")
    await api.until(lambda: _may(run, "list", "configmaps"))
    listed = await run("auth", "can-i", "--list", "--as=somebody")
    assert ["configmaps", "[]", "[]", "[get", "list]"] in cells(listed)
    forbidden = await run.attempt("get", "secrets", "--as=somebody")
    assert forbidden.err == (
        'Error from server (Forbidden): secrets is forbidden: User "somebody" cannot list resource "secrets" '
        f'in API group "" in the namespace "{api.namespace}"\n'
    )


async def _may(run: Kubectl, verb: str, resource: str) -> bool:
    return (await run.attempt("auth", "can-i", verb, resource, "--as=somebody")).code == 0


@pytest.mark.parametrize("verb", ["get", "describe", "delete"])
async def test_what_is_not_there_is_said_so(run: Kubectl, verb: str) -> None:
    missing = await run.attempt(verb, "configmap", "nothing")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): configmaps "nothing" not found\n')
    unknown = await run.attempt(verb, "nothings")
    assert 'the server doesn\'t have a resource type "nothings"' in unknown.err
