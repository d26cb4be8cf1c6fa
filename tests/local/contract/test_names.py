"""Names, generated names, and what the rest of the metadata may look like."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Api

covers = pytest.mark.covers


def unnamed(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@covers("names", "create", "success")
async def test_a_name_is_generated_from_a_prefix(api: Api) -> None:
    made = [await api.post(api.path("configmaps"), unnamed(generateName="run-")) for _ in range(2)]
    names = {answer.body["metadata"]["name"] for answer in made}
    assert len(names) == 2
    assert all(name.startswith("run-") and len(name) == 9 for name in names)


@covers("names", "create", "success")
async def test_a_name_wins_over_a_prefix(api: Api) -> None:
    made = await api.post(api.path("configmaps"), unnamed(name="a", generateName="run-"))
    assert made.body["metadata"]["name"] == "a"


@covers("names", "create", "success")
async def test_a_long_prefix_is_cut(api: Api) -> None:
    made = await api.silent.post(api.path("configmaps"), unnamed(generateName="x" * 100))
    assert len(made.body["metadata"]["name"]) == 63


@covers("names", "create", "refusal")
@pytest.mark.parametrize("prefix", ["Run-", "-", "a b"])
async def test_a_prefix_must_make_a_name(api: Api, prefix: str) -> None:
    # The answer repeats the name that was made, so it is not the same twice.
    refused = await api.silent.post(api.path("configmaps"), unnamed(generateName=prefix))
    api.note("causes", refused.causes)
    assert refused.status == 422


NAMES = {
    "upper": "Upper",
    "underscore": "under_score",
    "dash": "-dash",
    "dot": "a..b",
    "slash": "a/b",
    "long": "a" * 254,
    "longest": "a" * 253,
    "none": "",
    "digit": "1a",
    "percent": "50%",
}


@covers("names", "create", "refusal")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("plural", ["configmaps", "services", "serviceaccounts", "events", "secrets"])
async def test_names_follow_the_rules_of_their_kind(api: Api, plural: str, name: str) -> None:
    rest: dict[str, dict[str, Any]] = {
        "services": {"spec": {"type": "ExternalName", "externalName": "example.com"}},
        "events": {"involvedObject": {"namespace": api.namespace}},
    }
    obj = {"metadata": {"name": name}} | rest.get(plural, {})
    assert (await api.post(api.path(plural), obj, dryRun="All")).status in {201, 422}


@covers("names", "create", "refusal")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(
    ("plural", "group"),
    [
        ("widgets", ""),
        ("roles", "rbac.authorization.k8s.io"),
        ("leases", "coordination.k8s.io"),
    ],
    ids=["widgets", "roles", "leases"],
)
async def test_names_follow_the_rules_of_kinds_in_groups(api: Api, plural: str, group: str, name: str) -> None:
    if not group:
        await api.define(api.widgets())
    obj = {"metadata": {"name": name}} if group else api.widget(name)
    refused = await api.post(api.path(plural, group=group or api.group), obj, dryRun="All")
    assert refused.status in {201, 422}


@covers("names", "create", "refusal")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_a_namespace_is_named_as_a_host_is(api: Api, name: str) -> None:
    answer = await api.post(api.path("namespaces", namespace=None), {"metadata": {"name": name}}, dryRun="All")
    assert answer.status in {201, 422}


METADATA: dict[str, dict[str, Any]] = {
    "label-key": {"labels": {"a b": "c"}},
    "label-prefix": {"labels": {"Exa_mple/b": "c"}},
    "label-empty-prefix": {"labels": {"/b": "c"}},
    "label-two-slashes": {"labels": {"a/b/c": "c"}},
    "label-no-name": {"labels": {"a/": "c"}},
    "label-long-name": {"labels": {"a" * 64: "c"}},
    "label-long-prefix": {"labels": {f"{'a' * 254}/b": "c"}},
    "label-value": {"labels": {"a": "b c"}},
    "label-long-value": {"labels": {"a": "b" * 64}},
    "label-edge": {"labels": {"a": "-b"}},
    "label-number": {"labels": {"a": 1}},
    "label-null": {"labels": {"a": None}},
    "labels-list": {"labels": ["a"]},
    "labels-empty": {"labels": {}},
    "annotation-key": {"annotations": {"a b": "c"}},
    "annotation-upper": {"annotations": {"Example.com/B": "any value, really"}},
    "annotation-number": {"annotations": {"a": 1}},
    "owner-empty": {"ownerReferences": [{"kind": "X"}]},
    "owner-version": {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "X", "name": "x", "uid": "u"}]},
    "owner-event": {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u"}]},
    "owner-two": {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Secret", "name": one, "uid": one, "controller": True} for one in ("a", "b")
        ]
    },
    "owner-good": {"ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "x", "uid": "u"}]},
    "finalizer-plain": {"finalizers": ["plain"]},
    "finalizer-space": {"finalizers": ["not qualified"]},
    "finalizer-good": {"finalizers": ["example.com/good", "orphan"]},
    "finalizer-both": {"finalizers": ["orphan", "foregroundDeletion"]},
    "finalizer-number": {"finalizers": [1]},
    "generation": {"generation": -1},
    "unknown": {"colour": "red"},
    "moment": {"creationTimestamp": "yesterday"},
}


@covers("names", "create", "refusal")
@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
@pytest.mark.parametrize("custom", [False, True], ids=["built-in", "custom"])
async def test_metadata_is_as_strict_as_on_a_cluster(api: Api, metadata: dict[str, Any], custom: bool) -> None:
    if custom:
        await api.define(api.widgets())
    path = api.path("widgets", group=api.group) if custom else api.path("configmaps")
    wrong = api.widget("a") if custom else config_map("a")
    wrong["metadata"] |= metadata
    answer = await api.post(path, wrong, fieldValidation="Strict", dryRun="All")
    assert answer.status in {201, 400, 422}


@covers("names", "create", "refusal")
async def test_annotations_are_limited_in_sum(api: Api) -> None:
    large = config_map("a")
    large["metadata"]["annotations"] = {"a": "x" * 130_000, "b": "x" * 140_000}
    assert (await api.post(api.path("configmaps"), large)).status == 422
