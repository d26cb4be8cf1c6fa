"""Objects inside objects: what they must say about themselves, and when they cannot even be read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.definitions import definition, items, schema_of
from tests.local.contract.examples import JsonObject
from tests.local.contract.wire import Api

covers = pytest.mark.covers

WHOLE: JsonObject = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
UNREADABLE: dict[str, Any] = {
    "version-number": {"apiVersion": 1, "kind": "X"},
    "version-null": {"apiVersion": None, "kind": "X"},
    "kind-number": {"apiVersion": "v1", "kind": 1},
    "name-number": {"apiVersion": "v1", "kind": "X", "metadata": {"name": 3}},
    "label-number": {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": 1}}},
    "metadata-number": {"apiVersion": "v1", "kind": "X", "metadata": 3},
    "metadata-list": {"apiVersion": "v1", "kind": "X", "metadata": []},
}
METADATA: dict[str, Any] = {
    "empty": {"labels": {}, "name": "", "creationTimestamp": None, "ownerReferences": [], "generation": 0},
    "null": None,
    "label": {"labels": {"a b": "c"}},
    "several": {"labels": {"a": "b c"}, "annotations": {"c d": "e"}, "finalizers": ["no where", "plain"]},
    "owner": {"ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "x"}]},
    "unknown": {"name": "ok", "colour": "red"},
}


@covers("crds", "create", "refusal")
@pytest.mark.parametrize("inner", UNREADABLE.values(), ids=UNREADABLE)
async def test_an_inner_object_that_cannot_be_read_is_a_bad_request(api: Api, inner: JsonObject) -> None:
    await api.define(definition(api, schema_of(whole=WHOLE, of=items(WHOLE))))
    path = api.path("widgets", group=api.group)
    created = await api.silent.post(path, api.widget("a", of=[]))
    one = await api.post(path, api.widget("b", whole=inner))
    many = await api.post(path, api.widget("b", of=[inner]))
    assert (one.status, many.status) == (400, 400)
    replaced = await api.put(f"{path}/a", created.body | {"spec": {"whole": inner}})
    assert replaced.status == 400
    patched = await api.silent.json(f"{path}/a", [{"op": "add", "path": "/spec/of", "value": [inner]}])
    assert (patched.status, patched.causes) == (422, [("FieldValueInvalid", "patch")])
    api.note("the end of the message", patched.message.rpartition('": ')[2])


@covers("crds", "create", "refusal")
@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
async def test_the_metadata_of_an_inner_object_is_metadata(api: Api, metadata: JsonObject | None) -> None:
    await api.define(definition(api, schema_of(whole=WHOLE)))
    path = api.path("widgets", group=api.group)
    inner = {"apiVersion": "v1", "kind": "Thing", "metadata": metadata}
    answer = await api.post(path, api.widget("b", whole=inner), fieldValidation="Strict")
    assert answer.status in {201, 400, 422}
