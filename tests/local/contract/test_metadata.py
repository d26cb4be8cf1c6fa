"""How often metadata is judged: by the rules of all objects, and again by those that its kind asks on its own account.

A client sees it in the causes of a refusal, which tell the same problem once for every time that it was found.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.manifests import MANIFESTS, Manifest
from tests.local.contract.wire import DEFINITIONS, Api

covers = pytest.mark.covers

WRONG: dict[str, Any] = {
    "labels": {"a b": "c"},
    "annotations": {"c d": "e"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "x"}],
    "finalizers": ["no where", "plain"],
}


@covers("names", "patch", "refusal")
@pytest.mark.parametrize("manifest", MANIFESTS, ids=str)
async def test_metadata_of_a_change_is_judged_as_often_as_on_a_cluster(api: Api, manifest: Manifest) -> None:
    name = f"{api.namespace}-a"
    path = manifest.path(api, name)
    if not manifest.namespaced:
        api.scope.made(path)
    created = await api.silent.post(manifest.path(api), manifest.placed(api, name))
    assert created.status == 201, created.body
    refused = await api.silent.merge(path, {"metadata": WRONG}, dryRun="All")
    assert refused.status == 422
    api.note("causes", refused.causes)


@covers("names", "patch", "refusal")
async def test_metadata_of_a_custom_object_and_its_definition_is_judged_three_times(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    definition = f"{DEFINITIONS}/widgets.{api.group}"
    await api.silent.post(path, api.widget("a"))
    for at in (f"{path}/a", definition, f"{definition}/status"):
        refused = await api.silent.merge(at, {"metadata": WRONG}, dryRun="All")
        assert refused.status == 422
        api.note("causes", refused.causes)


@covers("names", "patch", "success")
async def test_the_status_of_a_definition_takes_metadata_along(api: Api) -> None:
    await api.define(api.widgets())
    status = f"{DEFINITIONS}/widgets.{api.group}/status"
    changed = await api.silent.merge(status, {"metadata": {"labels": {"a": "b"}}, "spec": {"scope": "Cluster"}})
    api.note("metadata", {key: value for key, value in changed.body["metadata"].items() if key != "managedFields"})
    assert (changed.body["metadata"]["labels"], changed.body["spec"]["scope"]) == ({"a": "b"}, "Namespaced")
