"""Fields that a kind does not have, or that a body repeats: dropped, told or refused, as the client asks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import deployment
from tests.local.contract.wire import Api

covers = pytest.mark.covers

ASKED = ["", "Ignore", "Strict", "Warn"]
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def misspelt() -> dict[str, Any]:
    """A Deployment with fields that no Deployment has."""
    wrong = deployment("a", replcas=2)
    wrong["metadata"]["lables"] = {"a": "b"}
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = "Always"
    return wrong | {"staus": {}}


def asked_for(validation: str) -> dict[str, Any]:
    return {"dryRun": "All"} | ({"fieldValidation": validation} if validation else {})


@covers("field-validation", "create", "refusal")
@pytest.mark.parametrize("validation", ASKED)
async def test_what_a_built_in_kind_does_not_have_is_told_as_asked(api: Api, validation: str) -> None:
    answer = await api.post(api.path("deployments", group="apps"), misspelt(), **asked_for(validation))
    assert answer.status == (400 if validation == "Strict" else 201)


@covers("field-validation", "create", "refusal")
@pytest.mark.parametrize("validation", ASKED)
async def test_what_a_custom_kind_does_not_have_is_told_as_asked(api: Api, validation: str) -> None:
    await api.define(api.widgets())
    wrong = api.widget("a", size=1, shape="round")
    wrong["metadata"]["lables"] = {"a": "b"}
    answer = await api.post(api.path("widgets", group=api.group), wrong, **asked_for(validation))
    assert answer.status == (400 if validation == "Strict" else 201)


@covers("field-validation", "create", "refusal")
@pytest.mark.parametrize("validation", ASKED)
async def test_what_a_body_repeats_is_told_as_asked(api: Api, validation: str) -> None:
    body = b'{"metadata":{"name":"a","name":"b"},"data":{"x":"1","x":"2"}}'
    answer = await api.post(api.path("configmaps"), body, **asked_for(validation))
    assert answer.status == (400 if validation == "Strict" else 201)


@covers("field-validation", "create", "success")
async def test_what_is_an_object_both_times_is_laid_over_one_another(api: Api) -> None:
    body = (
        b'{"metadata":{"name":"a"},"spec":{"clusterIP":"None","ports":[{"name":"a","port":1},{"name":"b","port":2}],'
        b'"ports":[{"port":3}]},"spec":{"selector":{"a":"b"},"selector":{"c":"d"}},"spec":null}'
    )
    created = await api.post(api.path("services"), body)
    assert created.body["spec"]["ports"][0]["name"] == "a"
    assert created.body["spec"]["selector"] == {"a": "b", "c": "d"}
    body = b'{"metadata":{"name":"b"},"data":{"a":"1"},"data":{"b":"2"},"binaryData":{"c":""},"binaryData":null}'
    created = await api.post(api.path("configmaps"), body)
    assert created.body["data"] == {"a": "1", "b": "2"}
    assert "binaryData" not in created.body


@covers("field-validation", "create", "refusal")
@pytest.mark.parametrize("validation", ASKED)
async def test_yaml_is_held_to_the_same(api: Api, validation: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  lables: {}\ndata:\n  x: '1'\n  x: '2'\n"
    query = asked_for(validation)
    answer = await api("POST", api.path("configmaps"), body, content_type=YAML, **query)
    assert answer.status == (400 if validation == "Strict" else 201)


@covers("field-validation", "create", "refusal")
@pytest.mark.parametrize("validation", ASKED)
async def test_what_a_body_of_a_custom_kind_repeats_is_told_as_asked(api: Api, validation: str) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    head = f"apiVersion: {api.group}/v1\nkind: Widget\nkind: Widget\n"
    text = f"{head}metadata:\n  name: x\n  name: a\nspec:\n  size: 1\n  size: 2\n"
    json = f'{{"apiVersion":"{api.group}/v1","kind":"Widget","metadata":{{"name":"x","name":"b"}},'
    for body, kind in ((text, YAML), (json + '"spec":{"size":1,"size":2},"spec":{"size":3}}', "application/json")):
        answer = await api("POST", path, body.encode(), content_type=kind, **asked_for(validation))
        assert answer.status == (400 if validation == "Strict" else 201)


@covers("field-validation", "create", "success")
@pytest.mark.parametrize("validation", ASKED)
async def test_a_body_in_protobuf_is_held_to_the_same(api: Api, validation: str) -> None:
    # A ConfigMap called a with x: 1.
    body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01a\x12\x06\x0a\x01x\x12\x011"
    sent = await api("POST", api.path("configmaps"), body, content_type=PROTOBUF, **asked_for(validation))
    assert (sent.status, sent.body["data"]) == (201, {"x": "1"})


@covers("field-validation", "create", "refusal")
@pytest.mark.differs("unknown-protobuf-fields")
async def test_a_field_that_no_table_knows_is_refused_in_protobuf(api: Api) -> None:
    body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x07\x0a\x03\x0a\x01a\x78\x01"
    sent = await api.silent("POST", api.path("configmaps"), body, content_type=PROTOBUF, fieldValidation="Strict")
    api.note("field 15", sent.status)
    assert sent.status == (201 if api.real else 400)
    assert api.real or "15" in sent.message


@covers("field-validation", "update", "refusal")
@pytest.mark.parametrize("validation", ASKED)
async def test_a_replacement_is_held_to_the_same(api: Api, validation: str) -> None:
    path = api.path("configmaps")
    await api.silent.post(path, {"metadata": {"name": "a"}})
    answer = await api.put(f"{path}/a", {"metadata": {"name": "a"}, "dta": {}}, **asked_for(validation))
    assert answer.status == (400 if validation == "Strict" else 200)


@covers("field-validation", "patch", "refusal")
@pytest.mark.parametrize("validation", ASKED)
async def test_a_strategic_patch_is_held_to_the_same(api: Api, validation: str) -> None:
    path = api.path("configmaps")
    await api.silent.post(path, {"metadata": {"name": "a"}})
    answer = await api.strategic(f"{path}/a", {"dta": {"a": 1, "b": [True, None, "c"]}}, **asked_for(validation))
    assert answer.status == (422 if validation == "Strict" else 200)


@covers("field-validation", "patch", "refusal")
async def test_a_merge_patch_shows_what_it_made(api: Api) -> None:
    await api.define(api.widgets())
    for path, obj in (
        (api.path("configmaps"), {"metadata": {"name": "a"}}),
        (api.path("widgets", group=api.group), api.widget("a", size=1)),
    ):
        await api.silent.post(path, obj)
        # The refusal repeats the whole object in the order in which Go wrote it.
        refused = await api.merge(f"{path}/a", {"dta": 1}, message="loose", fieldValidation="Strict")
        assert (refused.status, refused.causes) == (422, [("FieldValueInvalid", "patch")])


@covers("field-validation", "create", "refusal")
@pytest.mark.parametrize(
    "change",
    [
        {"replicas": "two"},
        {"replicas": 1.5},
        {"replicas": 5_000_000_000},
        {"selector": []},
        {"template": {"spec": {"containers": {}}}},
        {"template": {"spec": {"containers": [{"ports": [{"protocol": 6}]}]}}},
        {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "much"}}}]}}},
        {"template": {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": True}}}]}}},
        {"template": {"metadata": {"labels": {"a": 1}}}},
        {"template": {"metadata": {"creationTimestamp": "yesterday"}}},
        {"template": {"metadata": {"creationTimestamp": "2026-02-30T00:00:00Z"}}},
    ],
    ids=[
        "text",
        "fraction",
        "range",
        "list",
        "object",
        "named-type",
        "quantity",
        "port",
        "label",
        "time",
        "day",
    ],
)
async def test_a_value_of_another_type_cannot_be_read(api: Api, change: dict[str, Any]) -> None:
    refused = await api.post(api.path("deployments", group="apps"), deployment("a", **change))
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("field-validation", "create", "refusal")
async def test_bytes_must_be_base64(api: Api) -> None:
    for text in ("%%%", "YQ", "YQ=", "Y\nQ==", "YQ==YQ=="):
        await api.post(api.path("secrets"), {"metadata": {"name": "a"}, "data": {"a": text}}, dryRun="All")


@covers("field-validation", "create", "refusal")
async def test_how_strict_to_be_is_one_of_three(api: Api) -> None:
    path = api.path("configmaps")
    refused = await api.post(path, {"metadata": {"name": "a"}}, fieldValidation="Sometimes")
    assert refused.status == 422
