"""Label and field selectors: what they choose, and what is said of those that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Answer, Api

covers = pytest.mark.covers

LONG = "x" * 64


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def fill(api: Api) -> str:
    """Config maps of several labels, and where they are."""
    path = api.path("configmaps")
    for number in range(5):
        labels = {"parity": "even" if number % 2 == 0 else "odd", "number": str(number), "in": "x"}
        await api.silent.post(path, config_map(f"m{number}", labels=labels))
    await api.silent.post(path, config_map("plain", labels={"example.com/empty": ""}))
    return path


@covers("selectors", "list", "success")
async def test_labels_select(api: Api) -> None:
    path = await fill(api)
    numbered = ["m0", "m1", "m2", "m3", "m4"]
    chosen = {
        "parity=even": ["m0", "m2", "m4"],
        "parity==odd": ["m1", "m3"],
        "parity!=odd": ["m0", "m2", "m4", "plain"],
        " parity = even , number != 2 ": ["m0", "m4"],
        "number in (1, 2),parity=odd": ["m1"],
        "number in(1,1)": ["m1"],
        "number notin (1,2,3)": ["m0", "m4", "plain"],
        "parity": numbered,
        "!parity": ["plain"],
        "! parity": ["plain"],
        "missing!=x": [*numbered, "plain"],
        "example.com/empty=": ["plain"],
        "example.com/empty": ["plain"],
        "parity in ()": [],
        "parity in (,)": [],
        "parity in (,even)": ["m0", "m2", "m4"],
        "parity in (even,)": ["m0", "m2", "m4"],
        "example.com/empty in (,x)": ["plain"],
        "number>2": ["m3", "m4"],
        "number < 1": ["m0"],
        "number>1,number<3": ["m2"],
        "parity>2": [],
        "in": numbered,
        "in=x": numbered,
        "in in (x)": numbered,
        "in notin (x)": ["plain"],
        "notin": [],
        "": [*numbered, "plain"],
    }
    for selector, expected in chosen.items():
        assert names(await api.get(path, labelSelector=selector)) == expected, selector


@covers("selectors", "list", "refusal")
async def test_a_label_selector_that_cannot_be_read_is_refused(api: Api) -> None:
    path = api.path("configmaps")
    broken = [
        *("=", ",", "a,", "a=b,,c=d", "a in b", "a b", "(a)", "!!a", "a=b c", "a=b c=d", "a = = b", "a=!b", "a=(b)"),
        *(
            "a in (b",
            "a in (b,",
            "a notin",
            "a in b)",
            "a in (b=c)",
            "a in (b c)",
            "a=b)",
            "!a=b",
            "a>=2",
            "a=<2",
            "a;b",
        ),
        *("a=-b", "a/b/c=1", "/a=1", "a/=1", "A.B/c=1", f"{LONG}=1", f"a={LONG}", "ä=1", "a=ä", "a=''", "a in (ä,-)"),
        *("a>x", "a>1.5", "a>-1", "a>-x", "a>", "a<", f"a>{'9' * 20}", "a in (!)"),
    ]
    for selector in broken:
        refused = await api.get(path, labelSelector=selector)
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest"), selector


@covers("selectors", "list", "success")
async def test_fields_select_by_name_and_namespace(api: Api) -> None:
    path = await fill(api)
    others = ["m0", "m2", "m3", "m4", "plain"]
    chosen = {
        "metadata.name=m1": ["m1"],
        "metadata.name==m1": ["m1"],
        "metadata.name!=m1": others,
        "metadata.name=none": [],
        "metadata.name=": [],
        "metadata.name=m1,metadata.name=m2": [],
        "metadata.name!=m1,metadata.name!=m2": ["m0", "m3", "m4", "plain"],
        f"metadata.name=m1,metadata.namespace={api.namespace}": ["m1"],
        "metadata.namespace=other": [],
        "metadata.name=m1,": ["m1"],
        ",": ["m0", "m1", "m2", "m3", "m4", "plain"],
        r"metadata.name=m\,1": [],
        r"metadata.name=m\=1": [],
        r"metadata.name=m\\1": [],
        "metadata.name= m1": [],
    }
    for selector, expected in chosen.items():
        assert names(await api.get(path, fieldSelector=selector)) == expected, selector
    both = await api.get(path, fieldSelector="metadata.name!=m0", labelSelector="parity=even")
    assert names(both) == ["m2", "m4"]


@covers("selectors", "list", "refusal")
async def test_a_field_selector_that_cannot_be_read_is_refused(api: Api) -> None:
    path = api.path("configmaps")
    broken = [
        *("data.key=value", "metadata.uid=1", "metadata.labels.x=1", "type=Opaque", "=m1", " metadata.name=m1"),
        *("metadata.name", "!metadata.name", "metadata.name in (m1)", "b=1,a=2", "metadata.name=m1,data.x=1"),
        *("metadata.name=a=b", "metadata.name!==m1", r"metadata.name=m\1", "metadata.name=m1\\"),
    ]
    for selector in broken:
        refused = await api.get(path, fieldSelector=selector)
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest"), selector


BUILTIN = [
    ("pods", "", True, "spec.nodeName spec.host spec.restartPolicy spec.schedulerName spec.serviceAccountName"),
    ("pods", "", True, "spec.hostNetwork status.phase status.podIP status.podIPs status.nominatedNodeName"),
    ("pods", "", False, "metadata.uid spec.containers"),
    ("events", "", True, "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid"),
    ("events", "", True, "involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath"),
    ("events", "", True, "reason reportingComponent source type"),
    ("events", "", False, "regarding.kind action involvedObject.x"),
    ("events", "events.k8s.io", True, "regarding.kind regarding.name reason reportingController type"),
    ("events", "events.k8s.io", False, "involvedObject.kind note reportingComponent"),
    ("secrets", "", True, "type"),
    ("services", "", True, "spec.clusterIP spec.type"),
    ("services", "", False, "spec.selector"),
    ("jobs", "batch", True, "status.successful"),
    ("jobs", "batch", False, "status.succeeded"),
    ("deployments", "apps", False, "status.replicas"),
    ("leases", "coordination.k8s.io", False, "spec.holderIdentity"),
    ("serviceaccounts", "", False, "secrets"),
]


@covers("selectors", "list", "success")
@pytest.mark.parametrize(("plural", "group", "known", "fields"), BUILTIN)
async def test_some_kinds_are_selected_by_more(api: Api, plural: str, group: str, known: bool, fields: str) -> None:
    path = api.path(plural, group=group)
    for field in fields.split():
        found = await api.get(path, fieldSelector=f"{field}=zzz")
        assert found.status == (200 if known else 400), field


@covers("selectors", "list", "refusal")
async def test_kinds_outside_namespaces_have_their_own_fields(api: Api) -> None:
    roles = api.path("clusterroles", group="rbac.authorization.k8s.io", namespace=None)
    for path, field, status in (
        ("/api/v1/namespaces", "metadata.namespace", 400),
        ("/api/v1/namespaces", "name", 400),
        (roles, "metadata.namespace", 200),
        (roles, "rules", 400),
    ):
        found = await api.get(path, fieldSelector=f"{field}=zzz")
        assert found.status == status, field


@covers("selectors", "list", "success")
async def test_events_and_secrets_are_selected_by_what_they_say(api: Api) -> None:
    secrets, events = api.path("secrets"), api.path("events")
    await api.post(secrets, {"metadata": {"name": "opaque"}})
    await api.post(secrets, {"metadata": {"name": "own"}, "type": "example.com/own"})
    assert names(await api.get(secrets, fieldSelector="type=example.com/own")) == ["own"]
    assert names(await api.get(secrets, fieldSelector="type!=example.com/own,metadata.name!=x")) == ["opaque"]
    for name, reason in (("e1", "Promoted"), ("e2", "Blocked")):
        about = {"kind": "ConfigMap", "namespace": api.namespace, "name": "a", "apiVersion": "v1"}
        event = {"metadata": {"name": name}, "involvedObject": about, "reason": reason, "type": "Normal"}
        await api.post(events, event | {"source": {"component": "tester"}})
    for selector, expected in (
        ("reason=Blocked", ["e2"]),
        ("involvedObject.name=a,reason=Promoted", ["e1"]),
        ("source=tester", ["e1", "e2"]),
        ("involvedObject.kind=Pod", []),
    ):
        assert names(await api.get(events, fieldSelector=selector)) == expected, selector
    newer = api.path("events", group="events.k8s.io")
    assert names(await api.get(newer, fieldSelector="regarding.name=a,reason=Blocked")) == ["e2"]


def selectable(api: Api) -> dict[str, Any]:
    properties = {
        "colour": {"type": "string"},
        "size": {"type": "integer"},
        "hot": {"type": "boolean"},
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    fields = [{"jsonPath": f".spec.{name}"} for name in properties]
    return api.widgets(schema={"openAPIV3Schema": schema}, selectableFields=fields)


@covers("selectors", "list", "success")
async def test_a_custom_kind_is_selected_by_the_fields_that_it_names(api: Api) -> None:
    await api.define(selectable(api))
    path = api.path("widgets", group=api.group)
    await api.post(path, api.widget("a", colour="red", size=1, hot=True))
    await api.post(path, api.widget("b", colour="green", size=2, hot=False))
    await api.post(path, api.widget("c"))
    for selector, expected in (
        ("spec.colour=red", ["a"]),
        ("spec.colour!=red", ["b", "c"]),
        ("spec.colour=", ["c"]),
        ("spec.size=2", ["b"]),
        ("spec.hot=true", ["a"]),
        ("spec.hot=false", ["b"]),
        ("spec.colour=green,metadata.name=b", ["b"]),
    ):
        assert names(await api.get(path, fieldSelector=selector)) == expected, selector
    for selector in (".spec.colour=red", "spec.shape=round", "status.phase=x"):
        assert (await api.get(path, fieldSelector=selector)).status == 400


@covers("selectors", "watch", "success")
async def test_a_watch_follows_a_selected_field(api: Api) -> None:
    await api.define(selectable(api))
    path = api.path("widgets", group=api.group)
    created = await api.post(path, api.widget("a", colour="red"))
    async with api.watch(path, fieldSelector="spec.colour=red", resourceVersion=created.revision) as watch:
        await api.merge(f"{path}/a", {"spec": {"colour": "green"}})
        await api.merge(f"{path}/a", {"spec": {"colour": "red"}})
        kind, left = await watch.next()
        assert (kind, left["spec"]["colour"]) == ("DELETED", "red")
        assert await watch.names(1) == [("ADDED", "a")]


@covers("selectors", "deletecollection", "success")
async def test_a_selection_is_deleted_and_no_more(api: Api) -> None:
    path = await fill(api)
    await api.delete(path, labelSelector="parity=even")
    assert names(await api.get(path)) == ["m1", "m3", "plain"]
    for query in ({"labelSelector": "="}, {"fieldSelector": "data.key=x"}):
        refused = await api.delete(path, **query)
        assert refused.status == 400
    assert names(await api.get(path)) == ["m1", "m3", "plain"]
