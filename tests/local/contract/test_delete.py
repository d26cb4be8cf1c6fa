"""Deletion: at once, in stages, with and without dependents."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Answer, Api

covers = pytest.mark.covers

HOLD = "example.com/hold"


def held(name: str, *finalizers: str) -> dict[str, Any]:
    obj = config_map(name)
    obj["metadata"]["finalizers"] = list(finalizers or (HOLD,))
    return obj


def owned(name: str, *owners: Answer, **reference: Any) -> dict[str, Any]:
    child = config_map(name)
    child["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner.body["apiVersion"],
            "kind": owner.body["kind"],
            "name": owner.body["metadata"]["name"],
            "uid": owner.body["metadata"]["uid"],
            **reference,
        }
        for owner in owners
    ]
    return child


async def let_go(api: Api, name: str) -> None:
    await api.silent.merge(api.path("configmaps", name), {"metadata": {"finalizers": None}})


@covers("delete", "delete", "success")
async def test_a_deletion_is_answered_with_the_uid_of_what_is_gone(api: Api) -> None:
    await api.define(api.widgets())
    for path, obj in (
        (api.path("configmaps"), config_map("a")),
        (api.path("widgets", group=api.group), api.widget("a")),
    ):
        created = await api.post(path, obj)
        deleted = await api.delete(f"{path}/a")
        assert deleted.body["details"]["uid"] == created.body["metadata"]["uid"]
        assert (await api.delete(f"{path}/a")).status == 404


@covers("delete", "delete", "success")
@pytest.mark.parametrize("plural", ["secrets", "serviceaccounts", "services", "pods", "roles", "leases", "deployments"])
async def test_each_kind_answers_its_deletion_in_its_way(api: Api, plural: str) -> None:
    group = {"roles": "rbac.authorization.k8s.io", "leases": "coordination.k8s.io", "deployments": "apps"}.get(
        plural, ""
    )
    containers = {"containers": [{"name": "one", "image": "one:1"}]}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": containers}
    rest: dict[str, dict[str, Any]] = {
        "services": {"spec": {"type": "ExternalName", "externalName": "example.com"}},
        "pods": {"spec": containers},
        "deployments": {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template}},
    }
    path = api.path(plural, group=group)
    created = await api.silent.post(path, {"metadata": {"name": "a"}} | rest.get(plural, {}))
    assert created.status == 201, created.body
    deleted = await api.silent.delete(f"{path}/a")
    assert deleted.status == 200
    api.note("kind of the answer", deleted.body["kind"])


@covers("delete", "delete", "success")
@pytest.mark.parametrize("seconds", [0, 1, 30, -1])
async def test_nothing_but_pods_has_a_grace_period(api: Api, seconds: int) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    assert (await api.delete(f"{path}/a", {"gracePeriodSeconds": seconds})).status == 200
    await api.post(path, held("b"))
    await api.delete(f"{path}/b", {"gracePeriodSeconds": seconds})
    await api.delete(f"{path}/b", gracePeriodSeconds=seconds)
    await let_go(api, "b")


@covers("delete", "delete", "conflict")
@pytest.mark.parametrize(
    "precondition",
    [{"uid": "other"}, {"resourceVersion": "1"}, {"uid": ""}, {"resourceVersion": ""}],
    ids=["uid", "revision", "no-uid", "no-revision"],
)
async def test_a_deletion_of_something_else_conflicts(api: Api, precondition: dict[str, str]) -> None:
    await api.define(api.widgets())
    for path, obj in (
        (api.path("configmaps"), config_map("a")),
        (api.path("widgets", group=api.group), api.widget("a")),
    ):
        await api.post(path, obj)
        assert (await api.delete(f"{path}/a", {"preconditions": precondition})).status == 409
        assert (await api.get(f"{path}/a")).status == 200


@covers("delete", "delete", "success")
async def test_a_deletion_of_what_was_seen_succeeds(api: Api) -> None:
    created = await api.post(api.path("configmaps"), config_map("a"))
    seen = {"uid": created.body["metadata"]["uid"], "resourceVersion": created.revision}
    assert (await api.delete(api.path("configmaps", "a"), {"preconditions": seen})).status == 200


@covers("delete", "delete", "success")
async def test_finalizers_hold_an_object_until_they_are_taken_off(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    obj = api.widget("a")
    obj["metadata"]["finalizers"] = ["example.com/one", "example.com/two"]
    await api.post(path, obj)
    marked = await api.delete(f"{path}/a")
    assert marked.body["metadata"]["deletionTimestamp"]
    assert (await api.delete(f"{path}/a")).body == marked.body
    added = await api.merge(f"{path}/a", {"metadata": {"finalizers": ["example.com/one", "example.com/new"]}})
    assert added.status == 422
    assert (await api.merge(f"{path}/a", {"metadata": {"deletionTimestamp": None}})).status in {200, 422}
    one = await api.merge(f"{path}/a", {"metadata": {"finalizers": ["example.com/one"]}})
    async with api.watch(path, resourceVersion=one.revision) as watch:
        last = await api.merge(f"{path}/a", {"metadata": {"finalizers": None}})
        kind, gone = await watch.next()
    assert (last.status, kind) == (200, "DELETED")
    assert int(gone["metadata"]["resourceVersion"]) > int(one.revision)
    assert (await api.get(f"{path}/a")).status == 404


@covers("delete", "delete", "success")
async def test_dependents_follow_their_owner(api: Api) -> None:
    path = api.path("configmaps")
    owner = await api.post(path, config_map("owner"))
    child = await api.post(path, owned("child", owner))
    await api.post(path, owned("grandchild", child))
    await api.delete(f"{path}/owner", {"propagationPolicy": "Background"})
    await api.gone(f"{path}/child")
    await api.gone(f"{path}/grandchild")


@covers("delete", "delete", "success")
async def test_a_dependent_with_another_owner_stays_and_forgets_the_one_that_left(api: Api) -> None:
    path = api.path("configmaps")
    first = await api.post(path, config_map("first"))
    second = await api.post(path, config_map("second"))
    await api.post(path, owned("child", first, second))
    await api.delete(f"{path}/first")

    async def forgotten() -> bool:
        found = await api.silent.get(f"{path}/child")
        return [reference["name"] for reference in found.body["metadata"]["ownerReferences"]] == ["second"]

    await api.until(forgotten)


@covers("delete", "create", "success")
async def test_a_dependent_of_nobody_is_collected(api: Api) -> None:
    path = api.path("configmaps")
    owner = await api.post(path, config_map("owner"))
    await api.delete(f"{path}/owner")
    await api.post(path, owned("late", owner))
    await api.gone(f"{path}/late")


@covers("delete", "create", "success")
async def test_an_owner_of_an_unknown_kind_keeps_its_dependents(api: Api) -> None:
    path = api.path("configmaps")
    stranger = Answer(200, {"apiVersion": "no.where/v1", "kind": "Stranger", "metadata": {"name": "s", "uid": "u"}}, {})
    await api.post(path, owned("child", stranger))
    probe = await api.post(path, config_map("owner"))
    await api.delete(f"{path}/owner")
    await api.post(path, owned("late", probe))
    await api.gone(f"{path}/late")
    assert (await api.get(f"{path}/child")).status == 200


@covers("delete", "delete", "success")
async def test_a_foreground_deletion_waits_for_blocking_dependents(api: Api) -> None:
    path = api.path("configmaps")
    owner = await api.post(path, config_map("owner"))
    child = owned("child", owner, blockOwnerDeletion=True)
    child["metadata"]["finalizers"] = [HOLD]
    await api.post(path, child)
    marked = await api.delete(f"{path}/owner", {"propagationPolicy": "Foreground"})
    assert marked.body["metadata"]["finalizers"] == ["foregroundDeletion"]

    async def child_is_going() -> bool:
        return "deletionTimestamp" in (await api.silent.get(f"{path}/child")).body["metadata"]

    await api.until(child_is_going)
    assert (await api.get(f"{path}/owner")).status == 200
    await let_go(api, "child")
    await api.gone(f"{path}/owner")


@covers("delete", "delete", "success")
async def test_a_foreground_deletion_without_dependents_ends(api: Api) -> None:
    await api.post(api.path("configmaps"), config_map("owner"))
    await api.delete(api.path("configmaps", "owner"), propagationPolicy="Foreground")
    await api.gone(api.path("configmaps", "owner"))


@covers("delete", "delete", "success")
async def test_orphans_forget_their_owner_and_stay(api: Api) -> None:
    path = api.path("configmaps")
    owner = await api.post(path, config_map("owner"))
    await api.post(path, owned("child", owner))
    await api.delete(f"{path}/owner", {"propagationPolicy": "Orphan"})
    await api.gone(f"{path}/owner")
    child = await api.silent.get(f"{path}/child")
    assert "ownerReferences" not in child.body["metadata"]


@covers("delete", "delete", "refusal")
@pytest.mark.parametrize(
    "options",
    [
        {"propagationPolicy": "Sideways"},
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        {"dryRun": ["Some"]},
        {"kind": "ConfigMap", "apiVersion": "v1"},
        {"kind": "DeleteOptions", "apiVersion": "v1"},
        {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"},
        {"gracePeriodSeconds": "soon"},
        {"unknown": True},
        [],
    ],
    ids=["policy", "two-policies", "dry-run", "other-kind", "kind", "meta-kind", "seconds", "unknown", "list"],
)
async def test_the_options_of_a_deletion_are_checked(api: Api, options: Any) -> None:
    await api.post(api.path("configmaps"), config_map("a"))
    await api.delete(api.path("configmaps", "a"), options)


@covers("delete", "delete", "success")
@pytest.mark.parametrize("value", [True, False])
async def test_the_old_spelling_of_orphans_is_understood(api: Api, value: bool) -> None:
    await api.post(api.path("configmaps"), held("a"))
    marked = await api.delete(api.path("configmaps", "a"), {"orphanDependents": value})
    assert ("orphan" in marked.body["metadata"]["finalizers"]) is value
    await let_go(api, "a")


@covers("delete", "delete", "success")
async def test_a_policy_replaces_the_one_before(api: Api) -> None:
    path = api.path("configmaps", "a")
    await api.post(api.path("configmaps"), held("a"))
    await api.delete(path, {"propagationPolicy": "Foreground"})
    # The garbage collector takes its finalizer off as soon as it looks.
    await api.silent.delete(path, {"propagationPolicy": "Background"})
    await api.until(lambda: _finalizers_are(api, [HOLD]))
    await let_go(api, "a")


async def _finalizers_are(api: Api, wanted: list[str]) -> bool:
    found = await api.silent.get(api.path("configmaps", "a"))
    return bool(found.body["metadata"]["finalizers"] == wanted)


@covers("delete", "deletecollection", "success")
async def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    path = api.path("configmaps")
    for name, colour in (("a", "red"), ("b", "green"), ("c", "red")):
        await api.post(path, config_map(name, labels={"colour": colour}))
    deleted = await api.delete(path, labelSelector="colour=red")
    assert [item["metadata"]["name"] for item in deleted.body["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in (await api.get(path)).body["items"]] == ["b"]
    assert (await api.delete(path, fieldSelector="metadata.name=nothing")).body["items"] == []
    assert (await api.delete(path, fieldSelector="colour=red")).status == 400


@covers("delete", "deletecollection", "refusal")
@pytest.mark.parametrize(
    "query",
    [
        {"gracePeriodSeconds": "0"},
        {"gracePeriodSeconds": "30"},
        {"gracePeriodSeconds": "-1"},
        {"gracePeriodSeconds": "soon"},
        {"propagationPolicy": "Slowly"},
        {"propagationPolicy": "Orphan", "orphanDependents": "true"},
        {"limit": "1"},
        {"fieldSelector": "data.k=v"},
        {"labelSelector": "a in ("},
    ],
    ids=lambda query: "-".join(f"{key}={value}" for key, value in query.items()),
)
async def test_the_options_of_a_deletion_of_all_are_those_of_one(api: Api, query: dict[str, str]) -> None:
    await api.define(api.widgets())
    for path, obj in ((api.path("configmaps"), config_map), (api.path("widgets", group=api.group), api.widget)):
        for name in ("a", "b"):
            await api.silent.post(path, obj(name))
        answer = await api.delete(path, **query)
        assert answer.status in {200, 400, 422}
        left = await api.silent.get(path)
        api.note("left", sorted(item["metadata"]["name"] for item in left.body["items"]))


@covers("delete", "deletecollection", "success")
async def test_a_custom_collection_is_deleted_and_what_is_held_is_marked(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    await api.post(path, api.widget("a"))
    obj = api.widget("b")
    obj["metadata"]["finalizers"] = [HOLD]
    await api.post(path, obj)
    assert (await api.delete(path)).status == 200
    left = await api.get(path)
    assert [item["metadata"]["name"] for item in left.body["items"]] == ["b"]
    await api.silent.merge(f"{path}/b", {"metadata": {"finalizers": None}})
