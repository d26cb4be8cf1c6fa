"""What becomes of definitions: names taken, versions moved, objects judged by what they were, the end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.definitions import INTEGER, TEXT, definition, fields, items, rule, schema_of
from tests.local.contract.examples import JsonObject
from tests.local.contract.wire import DEFINITIONS, Api

covers = pytest.mark.covers


def at(api: Api, name: str = "", *, version: str = "v1", subresource: str = "", plural: str = "widgets") -> str:
    return api.path(plural, name, group=api.group, version=version, subresource=subresource)


def of(api: Api, plural: str = "widgets") -> str:
    return f"{DEFINITIONS}/{plural}.{api.group}"


async def has_condition(api: Api, path: str, kind: str, status: str) -> None:
    async def found() -> bool:
        body = (await api.silent.get(path)).body
        return any(
            (condition["type"], condition["status"]) == (kind, status)
            for condition in body.get("status", {}).get("conditions") or []
        )

    await api.until(found)


def replaced(document: JsonObject, schema: JsonObject) -> JsonObject:
    """The patch that gives a definition of one version another schema."""
    version = document["spec"]["versions"][0] | {"schema": {"openAPIV3Schema": schema}}
    return {"spec": {"versions": [version]}}


async def redefine(api: Api, document: JsonObject, schema: JsonObject, *, told_by: JsonObject) -> None:
    """Change the schema and wait until writes are judged by it: until `told_by` is refused."""
    changed = await api.silent.merge(of(api), replaced(document, schema))
    assert changed.status == 200, changed.body

    async def refuses() -> bool:
        return (await api.silent.post(at(api), told_by, dryRun="All")).status == 422

    await api.until(refuses)


@covers("crds", "get", "success")
async def test_an_object_is_answered_in_the_version_that_is_asked_for(api: Api) -> None:
    document = definition(api, schema_of(a=TEXT))
    first = document["spec"]["versions"][0]
    extra = {"openAPIV3Schema": schema_of(a=TEXT, extra=TEXT | {"default": "later"})}
    document["spec"]["versions"] += [
        first | {"name": "v2beta1", "storage": False, "deprecated": True, "schema": extra},
        first | {"name": "v1alpha1", "storage": False, "deprecated": True, "deprecationWarning": "use v1, please"},
        first | {"name": "v0", "storage": False, "served": False},
    ]
    await api.define(document)
    await api.post(at(api), api.widget("a", a="x"))
    for version in ("v1", "v2beta1", "v1alpha1", "v0"):
        await api.get(at(api, "a", version=version))
    await api.get(at(api, version="v2beta1"))
    later = api.widget("b", a="y", extra="e") | {"apiVersion": f"{api.group}/v2beta1"}
    await api.post(at(api, version="v2beta1"), later)
    assert "extra" not in (await api.get(at(api, "b"))).body["spec"]
    assert (await api.post(at(api), later)).status == 400

    moved = [version | {"storage": version["name"] == "v2beta1"} for version in document["spec"]["versions"]]
    answer = await api.silent.merge(of(api), {"spec": {"versions": moved}})
    api.note("stored versions", answer.body["status"]["storedVersions"])
    assert (await api.merge(of(api), {"spec": {"versions": moved[1:]}})).status == 422
    answer = await api.silent.merge(f"{of(api)}/status", {"status": {"storedVersions": ["v2beta1"]}})
    api.note("stored versions", answer.body["status"]["storedVersions"])


@covers("crds", "patch", "success")
async def test_status_and_scale_are_written_apart(api: Api) -> None:
    schema = schema_of(a=TEXT, replicas=INTEGER)
    schema["properties"]["status"] = fields(phase=TEXT, replicas=INTEGER, selector=TEXT)
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    await api.define(definition(api, schema, subresources={"status": {}, "scale": scale}))
    created = await api.post(at(api), api.widget("a", a="x") | {"status": {"phase": "x"}})
    assert "status" not in created.body
    status, scaled = at(api, "a", subresource="status"), at(api, "a", subresource="scale")
    await api.get(scaled)
    await api.merge(status, {"status": {"phase": 1}})
    await api.merge(status, {"status": "x"})
    await api.merge(status, {"status": {"replicas": -1}})
    await api.merge(at(api, "a"), {"spec": {"replicas": -1}})
    patched = await api.merge(
        status, {"status": {"phase": "y", "replicas": 3, "selector": "a=b"}, "spec": {"replicas": 7}}
    )
    assert "replicas" not in patched.body["spec"]
    await api.merge(at(api, "a"), {"spec": {"replicas": 2}})
    await api.get(scaled)
    await api.merge(scaled, {"spec": {"replicas": 5}})
    assert (await api.silent.get(at(api, "a"))).body["spec"]["replicas"] == 5
    assert (await api.merge(scaled, {"spec": {"replicas": -5}})).status == 422


@covers("crds", "list", "success")
async def test_objects_are_selected_by_the_fields_that_the_definition_names(api: Api) -> None:
    schema = schema_of(a=TEXT, n=INTEGER)
    await api.define(definition(api, schema, selectableFields=[{"jsonPath": ".spec.a"}]))
    for name, text in (("a", "x"), ("b", "y"), ("c", "x")):
        await api.silent.post(at(api), api.widget(name, a=text, n=1))
    found = await api.get(at(api), fieldSelector="spec.a=x")
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["a", "c"]
    await api.get(at(api), fieldSelector="spec.a!=x")
    assert (await api.get(at(api), fieldSelector="spec.n=1")).status == 400


@covers("crds", "update", "success")
async def test_what_was_wrong_before_and_stays_as_it_was_may_stay(api: Api) -> None:
    loose = schema_of(
        a=TEXT, b=TEXT, n=INTEGER, of=fields(x=TEXT, y=TEXT), keyed=items(fields(k=TEXT, v=TEXT)), plain=items(TEXT)
    )
    document = definition(api, loose)
    await api.define(document)
    stored: dict[str, Any] = {
        "a": "long", "b": "b", "n": 9, "of": {"x": "ok", "y": "y"},
        "keyed": [{"k": "1", "v": "long"}, {"k": "2", "v": "s"}], "plain": ["long", "s"],
    }  # fmt: skip
    await api.silent.post(at(api), api.widget("a", **stored))
    short = TEXT | {"maxLength": 2}
    keyed = items(fields(k=TEXT, v=short) | {"required": ["k"]}) | {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    strict = schema_of(
        a=short,
        b=TEXT | rule("self == 'c'", message="has to be c"),
        n=INTEGER | {"maximum": 5},
        of=fields(x=short, y=TEXT) | rule("self.x.size() < 3") | {"required": ["x"]},
        keyed=keyed,
        plain=items(short),
    )
    await redefine(api, document, strict, told_by=api.widget("z", a="long"))
    fresh = await api.silent.post(at(api), api.widget("z", **stored), dryRun="All")
    assert {"spec.a", "spec.n", "spec.keyed[0].v", "spec.plain[0]"} <= {told for _, told in fresh.causes}
    assert (await api.merge(at(api, "a"), {"metadata": {"labels": {"l": "1"}}})).status == 200
    for change in (
        {"a": "longer"},
        {"a": "ok"},
        {"b": "d"},
        {"b": "c"},
        {"n": 8},
        {"of": {"y": "z"}},
        {"of": {"x": "longer"}},
        {"keyed": [{"k": "2", "v": "s"}, {"k": "1", "v": "long"}]},
        {"keyed": [{"k": "1", "v": "long"}, {"k": "2", "v": "long"}]},
        {"plain": ["long", "t"]},
        {"plain": ["s", "long"]},
    ):
        await api.merge(at(api, "a"), {"spec": change}, dryRun="All")


@covers("crds", "get", "success")
async def test_a_default_of_today_is_read_in_an_object_of_yesterday(api: Api) -> None:
    document = definition(api, schema_of(a=TEXT))
    await api.define(document)
    await api.silent.post(at(api), api.widget("a", a="x"))
    later = schema_of(a=TEXT | {"maxLength": 2}, b=TEXT | {"default": "later"}, of=fields(c=TEXT | {"default": "c"}))
    await redefine(api, document, later, told_by=api.widget("z", a="long"))
    assert (await api.get(at(api, "a"))).body["spec"]["b"] == "later"
    await api.get(at(api))
    changed = await api.merge(at(api, "a"), {"spec": {"of": {}}})
    assert changed.body["spec"]["of"] == {"c": "c"}


@covers("crds", "update", "success")
async def test_a_definition_in_a_group_of_kubernetes_says_whether_it_was_approved(api: Api) -> None:
    document = definition(api, schema_of(a=TEXT))
    group = document["spec"]["group"] = f"{api.group}.k8s.io"
    path = f"{DEFINITIONS}/widgets.{group}"
    url = "https://github.com/kubernetes/enhancements/pull/1111"
    document["metadata"] = {"name": f"widgets.{group}", "annotations": {"api-approved.kubernetes.io": url}}
    await api.define(document)
    for said, status in ((url, "True"), ("unapproved, an experiment", "False")):
        await api.silent.merge(path, {"metadata": {"annotations": {"api-approved.kubernetes.io": said}}})
        await has_condition(api, path, "KubernetesAPIApprovalPolicyConformant", status)
        conditions = (await api.silent.get(path)).body["status"]["conditions"]
        told = [[one["type"], one["status"], one["reason"], one["message"]] for one in conditions]
        api.note("conditions", sorted(told))
    for wrong in ("never mind", None):
        answer = await api.merge(path, {"metadata": {"annotations": {"api-approved.kubernetes.io": wrong}}})
        assert answer.status == 422


@covers("crds", "create", "conflict")
async def test_names_that_are_taken_are_not_served(api: Api) -> None:
    document = definition(api, schema_of(a=TEXT))
    document["spec"]["names"]["shortNames"] = ["wd"]
    await api.define(document)
    gadgets = definition(api, schema_of(a=TEXT), plural="gadgets", kind="Gadget")
    gadgets["spec"]["names"] |= {"listKind": "WidgetList", "shortNames": ["wd", "gd"], "singular": "widget"}
    things = definition(api, schema_of(a=TEXT), plural="things", kind="Widget")
    for plural, other in (("gadgets", gadgets), ("things", things)):
        assert (await api.post(DEFINITIONS, other)).status == 201
        api.scope.defined(other["metadata"]["name"])
        await has_condition(api, of(api, plural), "NamesAccepted", "False")
        await api.get(of(api, plural))
        assert (await api.get(at(api, plural=plural))).status == 404
    await api.merge(of(api), {"spec": {"group": "x.example.com", "scope": "Cluster", "names": {"kind": "Foo"}}})
    await api.merge(of(api), {"spec": {"names": {"shortNames": ["wd", "wz"]}}})


@covers("crds", "get", "success")
async def test_columns_are_those_of_the_definition(api: Api) -> None:
    columns = [
        {"name": "A", "type": "string", "jsonPath": ".spec.a"},
        {"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1, "description": "n", "format": "int32"},
        {"name": "Wrong", "type": "integer", "jsonPath": ".spec.a"},
        {"name": "None", "type": "boolean", "jsonPath": ".spec.none"},
        {"name": "Each", "type": "string", "jsonPath": ".spec.of[*].x"},
    ]
    schema = schema_of(a=TEXT, n=INTEGER, of=items(fields(x=TEXT)))
    await api.define(definition(api, schema, additionalPrinterColumns=columns))
    await api.silent.post(at(api), api.widget("a", a="x", n=3, of=[{"x": "1"}, {"x": "2"}]))
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    await api("GET", at(api), headers=table)
    await api("GET", at(api, "a"), headers=table)


@covers("crds", "delete", "success")
async def test_a_definition_goes_after_its_objects(api: Api) -> None:
    await api.define(definition(api, schema_of(a=TEXT)))
    await api.silent.post(at(api), api.widget("b", a="x"))
    held = api.widget("a", a="x")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.silent.post(at(api), held)
    await api.delete(of(api))
    await api.gone(at(api, "b"))
    await has_condition(api, of(api), "Terminating", "True")
    assert (await api.post(at(api), api.widget("c", a="x"))).status in (403, 405)
    await api.get(at(api, "a"))
    await api.merge(at(api, "a"), {"metadata": {"finalizers": None}})
    await api.gone(of(api))
    # Off the tape: whether the path is known a moment longer is up to chance.
    assert (await api.silent.get(at(api, "a"))).status == 404
    assert (await api.get(of(api))).status == 404
