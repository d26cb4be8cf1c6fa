"""CustomResourceDefinitions: refused when they cannot be served in full, served once established."""

from __future__ import annotations

from kardinal.objects import JsonObject
from tests.local.plane.wire import DEFINITIONS, WIDGETS, Http, until, widget, widget_definition

PATH = f"{DEFINITIONS}/widgets.example.com"


async def test_a_changed_definition_holds_for_the_next_write(http: Http, widgets: str) -> None:
    assert (await http.post(widgets, widget("a", size=1))).status == 201
    definition = (await http.get(PATH)).body
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"] = {"type": "integer", "minimum": 5}
    assert (await http.put(PATH, definition)).status == 200
    assert (await http.post(widgets, widget("b", size=1))).status == 422


async def test_two_versions_are_two_names_of_the_same_objects(http: Http) -> None:
    definition = widget_definition()
    second = definition["spec"]["versions"][0] | {"name": "v2", "storage": False}
    definition["spec"]["versions"].append(second)
    await http.define(definition)
    await http.post(WIDGETS, widget("a"))
    path = WIDGETS.replace("/v1/", "/v2/")
    found = await http.get(f"{path}/a")
    assert found.body["apiVersion"] == "example.com/v2"
    changed = await http.merge(f"{path}/a", {"spec": {"size": 8}})
    assert changed.body["apiVersion"] == "example.com/v2"
    stored = await http.get(f"{WIDGETS}/a")
    assert (stored.body["apiVersion"], stored.body["spec"]["size"]) == ("example.com/v1", 8)
    assert stored.body["metadata"]["generation"] == 2


async def test_a_kind_that_is_taken_is_not_accepted(http: Http, widgets: str) -> None:
    other = widget_definition()
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Widget"}
    await http.post(DEFINITIONS, other)

    async def refused() -> bool:
        found = await http.get(f"{DEFINITIONS}/gadgets.example.com")
        conditions = {one["type"]: one["status"] for one in found.body["status"]["conditions"]}
        return conditions == {"NamesAccepted": "False", "Established": "False"}

    await until(refused)
    assert (await http.get("/apis/example.com/v1/gadgets")).status == 404


async def test_a_deleted_definition_takes_its_objects_with_it(http: Http, widgets: str) -> None:
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await http.post(widgets, held)
    await http.post(widgets, widget("free"))
    await http.delete(PATH)
    await http.gone(f"{widgets}/free")
    assert (await http.get(PATH)).status == 200
    await http.merge(f"{widgets}/held", {"metadata": {"finalizers": None}})
    await http.gone(PATH)
    assert (await http.get(widgets)).status == 404
    await http.define(widget_definition())
    assert (await http.get(widgets)).body["items"] == []


async def test_a_definition_is_discovered(http: Http, widgets: str) -> None:
    groups = await http.get("/apis")
    assert "example.com" in [group["name"] for group in groups.body["groups"]]
    assert (await http.get("/apis/example.com")).body["preferredVersion"]["groupVersion"] == "example.com/v1"
    resources = (await http.get("/apis/example.com/v1")).body["resources"]
    assert [one["name"] for one in resources] == ["widgets", "widgets/status"]
    assert resources[0]["shortNames"] == ["wd"]


async def test_every_shipped_definition_is_accepted(http: Http, definitions: list[JsonObject]) -> None:
    for definition in definitions:
        await http.define(definition)
    assert (await http.get("/apis/kardinal.io/v1alpha1/bundles")).status == 200
