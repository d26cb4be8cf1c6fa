"""What a definition has to be: names, versions, paths, and everything else beside its schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.local.contract.definitions import TEXT, definition, fields, refused_definitions, schema_of, try_definition
from tests.local.contract.examples import JsonObject
from tests.local.contract.wire import DEFINITIONS, Api

covers = pytest.mark.covers
Change = Callable[[JsonObject], object]


def put(*path: str | int, value: Any) -> Change:
    """Set one member; None takes it away."""

    def change(document: JsonObject) -> None:
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        if value is None:
            place.pop(path[-1], None)
        else:
            place[path[-1]] = value

    return change


def version(**members: Any) -> JsonObject:
    schema = {"openAPIV3Schema": schema_of(a=TEXT)}
    return {"name": "v1", "served": True, "storage": True, "schema": schema, **members}


def first(**members: Any) -> Change:
    return lambda document: document["spec"]["versions"][0].update(members)


@covers("crds", "create", "refusal")
async def test_a_definition_is_named_after_its_plural_and_group(api: Api) -> None:
    def group(name: str) -> Change:
        def change(document: JsonObject) -> None:
            document["spec"]["group"] = name
            document["metadata"]["name"] = f"widgets.{name}"

        return change

    names = ("spec", "names")
    await refused_definitions(
        api,
        [
            lambda document: document.pop("spec"),
            put("spec", "group", value=None),
            group("flat"),
            group("Large.example.com"),
            put("metadata", "name", value="other.example.com"),
            put("metadata", "name", value="Other_x"),
            put("spec", "scope", value=None),
            put("spec", "scope", value="Everywhere"),
            put(*names, value=None),
            put(*names, "plural", value=None),
            put(*names, "kind", value=None),
            put(*names, "kind", value="Wid_get"),
            put(*names, "listKind", value="Widget"),
            put(*names, "shortNames", value=["W", "ok"]),
            put(*names, "categories", value=["A b"]),
            put(*names, "singular", value="W"),
            group("things.k8s.io"),
            lambda document: (
                group("things.k8s.io")(document),
                document["metadata"].update(annotations={"api-approved.kubernetes.io": "by me"}),
            ),
        ],
    )


@covers("crds", "create", "refusal")
async def test_a_definition_has_versions_one_of_which_is_stored(api: Api) -> None:
    await refused_definitions(
        api,
        [
            put("spec", "versions", value=[]),
            first(name="V1"),
            first(storage=False),
            put("spec", "versions", value=[version(), version(name="v2", schema={"openAPIV3Schema": fields(b=TEXT)})]),
            put("spec", "versions", value=[version(), version(storage=False)]),
            put("spec", "versions", 0, "schema", value=None),
            put("spec", "versions", 0, "schema", value={}),
            put("spec", "preserveUnknownFields", value=True),
            first(deprecationWarning="old"),
            first(deprecated=True, deprecationWarning=""),
            first(deprecated=True, deprecationWarning="x" * 257),
            put("spec", "conversion", value={"strategy": "Other"}),
            put("spec", "conversion", value={"strategy": "Webhook"}),
            put("spec", "conversion", value={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        ],
    )


@covers("crds", "create", "refusal")
async def test_the_paths_of_a_definition_lead_somewhere(api: Api) -> None:
    columns: list[JsonObject] = [{"jsonPath": ".a"}, {"name": "x", "type": "string", "format": "foo", "jsonPath": ""}]
    scale = {"specReplicasPath": "spec.x", "statusReplicasPath": ".spec.y", "labelSelectorPath": ".x"}
    paths = [".spec.a", ".spec.a", ".spec", ".spec['a']", "spec.a", ".metadata.name", ".spec.b", ""]
    two = [version(), version(name="v2", storage=False, schema={"openAPIV3Schema": schema_of(b=TEXT)})]
    shared = [{**one, "selectableFields": [{"jsonPath": ".spec.a"}]} for one in two]
    apart = [version(selectableFields=[{"jsonPath": ".spec.a"}]), version(name="v2", storage=False)]
    many = [f"f{index}" for index in range(9)]
    await refused_definitions(
        api,
        [
            first(additionalPrinterColumns=columns),
            first(additionalPrinterColumns=[{"name": "x", "type": "thing", "jsonPath": "x"}]),
            first(subresources={"scale": scale}),
            first(subresources={"scale": {}}),
            first(selectableFields=[{"jsonPath": path} for path in paths]),
            put("spec", "versions", value=shared),
            put("spec", "versions", value=apart),
            first(
                schema={"openAPIV3Schema": schema_of(**dict.fromkeys(many, TEXT))},
                selectableFields=[{"jsonPath": f".spec.{name}"} for name in many],
            ),
            first(
                subresources={"status": {}},
                schema={"openAPIV3Schema": {**schema_of(a=TEXT), "oneOf": [{"required": ["spec"]}]}},
            ),
        ],
    )


@covers("crds", "create", "success")
async def test_what_an_author_leaves_out_is_filled_in(api: Api) -> None:
    answer = await try_definition(api, definition(api, schema_of(a={**TEXT, "format": "unheard-of"})))
    assert answer.body["spec"]["names"]["listKind"] == "WidgetList"
    assert answer.headers["Warning"] == '299 - "unrecognized format \\"unheard-of\\""'


@covers("crds", "update", "refusal")
async def test_where_objects_are_stored_does_not_change(api: Api) -> None:
    good = definition(api, schema_of(a=TEXT))
    await api.define(good)
    path = f"{DEFINITIONS}/{good['metadata']['name']}"
    moved = {"spec": {"group": "x.y", "scope": "Cluster", "names": {"kind": "Other", "plural": "others"}}}
    assert (await api.merge(path, moved)).status == 422
    renamed = {"spec": {"versions": [version(name="v2")]}}
    assert (await api.merge(path, renamed)).causes == [
        ("FieldValueInvalid", "status.storedVersions[0]"),
    ]
