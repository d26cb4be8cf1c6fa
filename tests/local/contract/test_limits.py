"""How much is too much, and what a body may be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Api

covers = pytest.mark.covers

MEBIBYTE = 1024 * 1024


def large(name: str, size: int) -> dict[str, Any]:
    return config_map(name, k="x" * size)


@covers("limits", "create", "refusal")
async def test_a_body_of_more_than_three_mebibytes_is_refused(api: Api) -> None:
    await api.define(api.widgets())
    for path in (api.path("configmaps"), api.path("widgets", group=api.group)):
        refused = await api("POST", path, b" " * (3 * MEBIBYTE + 1))
        assert (refused.status, refused.body["reason"]) == (413, "RequestEntityTooLarge")
    refused = await api.merge(api.path("configmaps", "kube-root-ca.crt"), b" " * (3 * MEBIBYTE + 1))
    assert refused.status == 413


@covers("limits", "create", "refusal")
async def test_an_object_of_more_than_the_store_takes_is_refused(api: Api) -> None:
    await api.define(api.widgets(schema=anything()))
    path = api.path("widgets", group=api.group)
    refused = await api.post(path, api.widget("a", text="x" * (MEBIBYTE * 3 // 2)))
    assert (refused.status, refused.message) == (500, "etcdserver: request is too large")
    # Nobody asks the store of a dry run.
    tried = await api.silent.post(path, api.widget("a", text="x" * (MEBIBYTE * 3 // 2)), dryRun="All")
    assert tried.status == 201
    created = await api.silent.post(path, api.widget("a", text="x" * MEBIBYTE))
    assert created.status == 201
    grown = await api.merge(f"{path}/a", {"spec": {"more": "x" * (MEBIBYTE // 2)}})
    assert grown.status == 500


@covers("limits", "create", "refusal")
async def test_config_maps_and_secrets_hold_a_mebibyte(api: Api) -> None:
    assert (await api.silent.post(api.path("configmaps"), large("a", MEBIBYTE - 1000))).status == 201
    refused = await api.post(api.path("configmaps"), large("b", MEBIBYTE + 1))
    assert (refused.status, refused.causes[0][0]) == (422, "FieldValueTooLong")
    secret = {"metadata": {"name": "a"}, "stringData": {"k": "x" * (MEBIBYTE + 1)}}
    assert (await api.post(api.path("secrets"), secret)).status == 422


@covers("limits", "create", "refusal")
async def test_annotations_hold_a_quarter_of_a_mebibyte(api: Api) -> None:
    for size, status in ((MEBIBYTE // 4 - 10, 201), (MEBIBYTE // 4 + 10, 422)):
        obj = config_map(f"a{status}")
        obj["metadata"]["annotations"] = {"a": "x" * size}
        assert (await (api if status == 422 else api.silent).post(api.path("configmaps"), obj)).status == status


@covers("limits", "create", "refusal")
async def test_a_body_that_is_no_object_is_refused(api: Api) -> None:
    await api.define(api.widgets())
    bodies = [
        *(b"", b"[]", b"1", b'"text"', b"true", b"{", b"nonsense", b"\xff\xfe", b"\xef\xbb\xbf{}", b"\x00"),
        *(b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":1} x', b'{"a":1}{}', b'{"a":1,}', b"[1,]", b'{"a" 1}', b"{a:1}"),
        *(b'{"a":01}', b'{"a":1.}', b'{"a":1e}', b'{"a":-}', b'{"a":tru}', b'{"a":"\\x"}', b'{"a":"\\u12g4"}'),
        *(b'{"a":"\n"}', b"[1 2]", b'{"a":1', b"'a'", b"\x1f\x8b", b'{"apiVersion":1}', b'{"kind":["x"]}'),
        *(b'{"metadata":[]}', b"[" * 20_000, b'{"a":' * 20_000),
    ]
    for body in bodies:
        for path in (api.path("configmaps"), api.path("widgets", group=api.group)):
            refused = await api("POST", path, body)
            assert (refused.status, refused.body["reason"]) == (400, "BadRequest"), body


@covers("limits", "create", "refusal")
async def test_a_custom_object_has_to_say_what_it_is(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    for body in (b"{}", b"null", b'{"kind":"Widget"}', b'{"apiVersion":"v1"}'):
        refused = await api("POST", path, body)
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("limits", "create", "refusal")
async def test_yaml_that_cannot_be_read_is_refused(api: Api) -> None:
    for body in (b"a: b: c", b"\tfoo", b"- a\n- b\n", b"foo", b"[1,2", b"a:\n  b: c: d\n", b"a: 'b"):
        refused = await api("POST", api.path("configmaps"), body, content_type="application/yaml")
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest"), body


@covers("limits", "create", "refusal")
async def test_aliases_that_multiply_are_refused(api: Api) -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    refused = await api("POST", api.path("configmaps"), "\n".join(lines).encode(), content_type="application/yaml")
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("limits", "create", "refusal")
async def test_yaml_that_is_nested_too_deeply_is_refused(api: Api) -> None:
    for body in (b"[" * 20_000, b"{a: " * 20_000, b"- " * 20_000):
        refused = await api("POST", api.path("configmaps"), body, content_type="application/yaml")
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("limits", "create", "success")
async def test_yaml_has_no_numbers_to_the_base_of_sixty(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {ports: 22:22, time: 1:30:00.5}\n"
    created = await api("POST", api.path("configmaps"), body, content_type="application/yaml")
    assert (created.status, created.body["data"]) == (201, {"ports": "22:22", "time": "1:30:00.5"})


@covers("limits", "create", "success")
async def test_what_is_no_character_is_replaced(api: Api) -> None:
    await api.define(api.widgets(schema=anything()))
    path = api.path("widgets", group=api.group)
    head = f'{{"apiVersion":"{api.group}/v1","kind":"Widget","metadata":{{"name":"%s"}},"spec":'.encode()
    for name, text in ((b"bytes", b'"a\xffb"'), (b"half", b'"a\\ud800b"'), (b"pair", b'"\\ud83d\\ude00"')):
        created = await api("POST", path, head % name + b'{"text":' + text + b"}}")
        assert created.status == 201
        assert created.body["spec"]["text"] in {"a\ufffdb", "\U0001f600"}


@covers("limits", "create", "success")
async def test_numbers_are_as_large_as_they_can_be(api: Api) -> None:
    await api.define(api.widgets(schema=anything()))
    path = api.path("widgets", group=api.group)
    head = f'{{"apiVersion":"{api.group}/v1","kind":"Widget","metadata":{{"name":"%s"}},"spec":'.encode()
    for name, number in ((b"most", b"9223372036854775807"), (b"least", b"-9223372036854775808"), (b"half", b"0.5")):
        created = await api("POST", path, head % name + b'{"n":' + number + b"}}")
        assert created.body["spec"]["n"] == float(number) if b"." in number else int(number)
    refused = await api("POST", path, head % b"huge" + b'{"n":1e400}}')
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("limits", "list", "success")
async def test_a_long_query_is_answered(api: Api) -> None:
    path = api.path("configmaps")
    names = ",".join(f"name-{number}" for number in range(500))
    assert (await api.get(path, labelSelector=f"a in ({names})")).body["items"] == []
    assert (await api.get(f"{path}/{'x' * 300}")).status == 404


def anything() -> dict[str, Any]:
    """A schema that takes whatever stands in spec."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
