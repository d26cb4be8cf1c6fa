"""The CustomResourceDefinitions: shipped as generated, structural, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.models.crds import write_definitions
from kardinal.promotion.api.crds import definitions
from kardinal_supplychain.api.crds import definitions as supply_chain_definitions

SHIPPED = Path(__file__).parents[2] / "crds"
ROOMS = {"": definitions(), "supplychain": supply_chain_definitions()}
"""The definitions by the directory below `crds/` that has them."""
DEFINITIONS = {each["spec"]["names"]["kind"]: each for room in ROOMS.values() for each in room}
OPEN = "x-kubernetes-preserve-unknown-fields"


def _schema(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = DEFINITIONS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _walk(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from _walk(field, f"{path}.{name}")
    for key, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from _walk(schema[key], f"{path}{suffix}")


@pytest.mark.parametrize("room", ROOMS)
def test_the_shipped_files_are_what_the_models_say(room: str, tmp_path: Path) -> None:
    generated = {path.name: path.read_text() for path in write_definitions(ROOMS[room], tmp_path)}
    shipped = {path.name: path.read_text() for path in (SHIPPED / room).glob("*.yaml")}
    assert shipped == generated, "run: make crds"


@pytest.mark.parametrize(
    ("kind", "short_name"),
    [
        ("Pipeline", "pl"),
        ("Bundle", "bd"),
        ("PromotionStep", "ps"),
        ("PolicyGate", "pg"),
        ("Approval", "ap"),
        ("MetricCheck", "mc"),
        ("Subscription", "sub"),
        ("Graph", "gr"),
    ],
)
def test_each_kind_has_its_short_name_category_status_and_columns(kind: str, short_name: str) -> None:
    spec = DEFINITIONS[kind]["spec"]
    assert spec["names"]["shortNames"] == [short_name]
    assert spec["names"]["categories"] == ["kardinal"]
    (version,) = spec["versions"]
    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"][-1]["name"] == "Age"


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_schema_is_structural(kind: str) -> None:
    for path, schema in _walk(_schema(kind), kind):
        assert "type" in schema or schema.get(OPEN), f"{path} has no type"
        assert not {"$ref", "anyOf", "allOf", "oneOf", "not", "title", "const"} & schema.keys(), path


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_string_list_and_map_has_a_bound(kind: str) -> None:
    schema = _schema(kind)
    bounds = {"string": ("maxLength", "enum"), "array": ("maxItems",)}
    for part in {"spec", "status"} & schema["properties"].keys():
        for path, field in _walk(schema["properties"][part], f"{kind}.{part}"):
            for bound in bounds.get(field.get("type", ""), ()):
                if bound in field:
                    break
            else:
                assert field.get("type") not in bounds, f"{path} is unbounded"
            if isinstance(field.get("additionalProperties"), dict):
                assert "maxProperties" in field, f"{path} is unbounded"


def test_a_default_is_a_value_its_own_field_accepts() -> None:
    interval = _schema("PolicyGate")["properties"]["spec"]["properties"]["recheckInterval"]
    assert interval["default"] == "5m"


def test_lists_of_named_things_are_keyed() -> None:
    environments = _schema("Pipeline")["properties"]["spec"]["properties"]["environments"]
    assert environments["x-kubernetes-list-map-keys"] == ["name"]
    for kind in DEFINITIONS:
        if "status" not in _schema(kind)["properties"]:
            continue
        conditions = _schema(kind)["properties"]["status"]["properties"]["conditions"]
        assert conditions["x-kubernetes-list-map-keys"] == ["type"], kind


def test_the_files_are_plain_yaml_of_one_document_each() -> None:
    for path in SHIPPED.rglob("*.yaml"):
        (document,) = yaml.safe_load_all(path.read_text())
        assert document["kind"] == "CustomResourceDefinition"


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_field_has_a_sentence_that_names_each_of_its_values(kind: str) -> None:
    # Of metadata the API server has sentences of its own, and takes no other.
    own = ("[]", "{}", f"{kind}.metadata")
    fields = {path: field for path, field in _walk(_schema(kind), kind) if not path.endswith(own)}
    silent = [path for path, field in fields.items() if not field.get("description", "").endswith(".")]
    assert not silent, "a docstring behind the field of the model is missing"
    unnamed = [
        f"{path}: {value}"
        for path, field in fields.items()
        for value in field.get("enum", field.get("items", {}).get("enum", ()))
        if f"`{value}`" not in field["description"]
    ]
    assert not unnamed, "the docstring of the field does not say what the value means"
