"""Events: one object in two groups."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.conftest import Cluster
from tests.local.contract.wire import Api
from tests.support.clock import VirtualClock
from tests.support.store import Etcd

covers = pytest.mark.covers


def new(api: Api, **change: Any) -> dict[str, Any]:
    """An event as today's recorders write it."""
    return {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Widget", "name": "a", "namespace": api.namespace},
        "reason": "Done",
        "note": "all is well",
        "type": "Normal",
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "action": "Do",
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-0",
    } | change


def old(api: Api, **change: Any) -> dict[str, Any]:
    """An event as the recorders of the core group write it."""
    return {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Widget", "name": "a", "namespace": api.namespace, "uid": "u"},
        "reason": "Done",
        "message": "all is well",
        "source": {"component": "tester", "host": "here"},
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:06Z",
        "count": 2,
        "type": "Warning",
    } | change


@covers("events", "create", "success")
async def test_an_event_of_the_new_group_is_seen_in_the_old_one(api: Api) -> None:
    path, core = api.path("events", group="events.k8s.io"), api.path("events")
    assert (await api.post(path, new(api))).status == 201
    assert (await api.get(f"{core}/e")).body["message"] == "all is well"
    listed = await api.get(core, fieldSelector="involvedObject.name=a,type=Normal,reason=Done")
    assert len(listed.body["items"]) == 1
    assert (await api.get(path, fieldSelector="regarding.name=a,reportingController=example.com/tester")).status == 200


@covers("events", "create", "success")
async def test_an_event_of_the_old_group_is_seen_in_the_new_one(api: Api) -> None:
    path, core = api.path("events", group="events.k8s.io"), api.path("events")
    assert (await api.post(core, old(api))).status == 201
    assert (await api.get(f"{path}/e")).body["deprecatedCount"] == 2
    assert (await api.get(core, fieldSelector="source=tester")).status == 200
    assert (await api.get(path, fieldSelector="source=tester")).status == 400


@covers("events", "patch", "success")
async def test_an_event_of_the_old_group_is_counted_on(api: Api) -> None:
    core = api.path("events")
    await api.post(core, old(api))
    patched = await api.strategic(f"{core}/e", {"count": 3, "lastTimestamp": "2026-01-02T03:05:06Z"})
    assert patched.body["count"] == 3


@covers("events", "patch", "success")
async def test_an_event_of_the_new_group_becomes_a_series(api: Api) -> None:
    path = api.path("events", group="events.k8s.io")
    await api.post(path, new(api))
    series = {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000007Z"}
    assert (await api.merge(f"{path}/e", {"series": series})).status == 200
    assert (await api.get(api.path("events", "e"))).body["series"] == series


@covers("events", "update", "refusal")
@pytest.mark.parametrize(
    "change",
    [
        {"note": "other"},
        {"reason": "Other"},
        {"type": "Warning"},
        {"action": "Other"},
        {"reportingInstance": "other"},
        {"eventTime": "2026-01-02T03:04:05.000007Z"},
        {"series": {"count": 0}},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_an_event_of_the_new_group_does_not_change(api: Api, change: dict[str, Any]) -> None:
    path = api.path("events", group="events.k8s.io")
    await api.post(path, new(api))
    await api.merge(f"{path}/e", change)


@covers("events", "create", "refusal")
@pytest.mark.parametrize(
    "change",
    [
        {"eventTime": None},
        {"action": ""},
        {"reason": ""},
        {"type": "Odd"},
        {"reportingController": ""},
        {"reportingController": "not qualified"},
        {"reportingInstance": ""},
        {"note": "x" * 1025},
        {"reason": "x" * 129},
        {"action": "x" * 129},
        {"regarding": {"kind": "Widget", "name": "a", "namespace": "elsewhere"}},
        {"regarding": {"kind": "Node", "apiVersion": "v1", "name": "a"}},
        {"deprecatedCount": 3},
        {"series": {"count": 1}},
    ],
    ids=[
        *("no-time", "no-action", "no-reason", "type", "no-controller", "controller", "no-instance", "long-note"),
        *("long-reason", "long-action", "elsewhere", "nowhere", "count", "series"),
    ],
)
async def test_an_event_of_the_new_group_is_checked(api: Api, change: dict[str, Any]) -> None:
    await api.post(api.path("events", group="events.k8s.io"), new(api, **change))


@covers("events", "create", "refusal")
@pytest.mark.parametrize(
    "change",
    [
        {"involvedObject": {"kind": "Widget", "name": "a"}},
        {"involvedObject": {"kind": "Widget", "name": "a", "namespace": "elsewhere"}},
        {"involvedObject": {"kind": "Node", "apiVersion": "v1", "name": "a"}},
        {"involvedObject": {}},
        {"type": "Odd"},
        {"reason": ""},
        {"eventTime": "2026-01-02T03:04:05.000006Z"},
        {"firstTimestamp": "yesterday"},
    ],
    ids=["no-namespace", "elsewhere", "cluster-wide", "nothing", "type", "reason", "half-new", "moment"],
)
async def test_an_event_of_the_old_group_is_hardly_checked(api: Api, change: dict[str, Any]) -> None:
    await api.post(api.path("events"), old(api, **change))


@covers("events", "create", "success")
async def test_an_event_about_what_is_in_no_namespace_is_in_the_default_one(api: Api) -> None:
    about = {"kind": "Node", "apiVersion": "v1", "name": "a"}
    event = old(api, metadata={"generateName": "contract-"}, involvedObject=about)
    made = await api.post(api.path("events", namespace="default"), event)
    assert made.status == 201
    await api.silent.delete(api.path("events", made.body["metadata"]["name"], namespace="default"))


@covers("events", "delete", "success")
async def test_an_event_is_kept_for_an_hour(api: Api, cluster: Cluster, clock: VirtualClock) -> None:
    path = api.path("events")
    named = {"metadata": {"name": "a"}, "involvedObject": {"namespace": api.namespace}}
    assert (await api.silent.post(path, named)).status == 201
    if api.real:
        store = cluster.kubeconfig.with_name("store-url")
        if not store.is_file():
            pytest.skip("only the store of a server of our own can be asked")
        etcd = Etcd(store.read_text())
        # Leases are shared by what is written at about the same time, and a little longer for that.
        assert 3600 <= etcd.lifetime(f"events/{api.namespace}/a") <= 3600 * 1.05
        etcd.close()
    else:
        await clock.advance(3599)
        assert (await api.silent.get(f"{path}/a")).status == 200
        await clock.advance(1)
        assert (await api.silent.get(f"{path}/a")).status == 404
