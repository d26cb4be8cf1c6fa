"""Deletion: at once, in stages, with and without dependents."""

from __future__ import annotations

from typing import Any

import pytest

from tests.localplane.wire import CONFIG_MAPS, Answer, Http, config_map, until, widget

NAMESPACES = "/api/v1/namespaces"


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


async def test_a_deletion_is_answered_with_the_uid_of_what_is_gone(http: Http) -> None:
    created = await http.post(CONFIG_MAPS, config_map("a"))
    deleted = await http.delete(f"{CONFIG_MAPS}/a")
    assert deleted.body["status"] == "Success"
    assert deleted.body["details"] == {"name": "a", "kind": "configmaps", "uid": created.body["metadata"]["uid"]}
    assert (await http.delete(f"{CONFIG_MAPS}/a")).status == 404


@pytest.mark.parametrize("precondition", [{"uid": "other"}, {"resourceVersion": "1"}])
async def test_a_deletion_of_something_else_conflicts(http: Http, precondition: dict[str, str]) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    refused = await http.delete(f"{CONFIG_MAPS}/a", {"preconditions": precondition})
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert (await http.get(f"{CONFIG_MAPS}/a")).status == 200


async def test_finalizers_hold_an_object_until_they_are_taken_off(http: Http, widgets: str) -> None:
    held = widget("a")
    held["metadata"]["finalizers"] = ["example.com/one", "example.com/two"]
    await http.post(widgets, held)
    marked = await http.delete(f"{widgets}/a")
    assert marked.body["metadata"]["deletionTimestamp"]
    assert marked.body["metadata"]["generation"] == 2
    assert (await http.delete(f"{widgets}/a")).body == marked.body
    added = await http.merge(f"{widgets}/a", {"metadata": {"finalizers": ["example.com/one", "example.com/new"]}})
    assert added.status == 422
    assert "no new finalizers can be added" in added.body["message"]
    one = await http.merge(f"{widgets}/a", {"metadata": {"finalizers": ["example.com/one"]}})
    assert one.status == 200
    async with http.watch(widgets, resourceVersion=one.revision) as watch:
        last = await http.merge(f"{widgets}/a", {"metadata": {"finalizers": None}})
        kind, gone = await watch.next()
    assert (last.status, last.revision) == (200, one.revision)
    assert kind == "DELETED"
    assert int(gone["metadata"]["resourceVersion"]) > int(one.revision)
    assert (await http.get(f"{widgets}/a")).status == 404


async def test_dependents_follow_their_owner(http: Http) -> None:
    owner = await http.post(CONFIG_MAPS, config_map("owner"))
    child = await http.post(CONFIG_MAPS, owned("child", owner))
    await http.post(CONFIG_MAPS, owned("grandchild", child))
    await http.delete(f"{CONFIG_MAPS}/owner")
    await http.gone(f"{CONFIG_MAPS}/child")
    await http.gone(f"{CONFIG_MAPS}/grandchild")


async def test_a_dependent_with_another_owner_stays_and_forgets_the_one_that_left(http: Http) -> None:
    first = await http.post(CONFIG_MAPS, config_map("first"))
    second = await http.post(CONFIG_MAPS, config_map("second"))
    await http.post(CONFIG_MAPS, owned("child", first, second))
    await http.delete(f"{CONFIG_MAPS}/first")

    async def forgotten() -> bool:
        references = (await http.get(f"{CONFIG_MAPS}/child")).body["metadata"]["ownerReferences"]
        return [reference["name"] for reference in references] == ["second"]

    await until(forgotten)


async def test_a_dependent_of_nobody_is_collected(http: Http) -> None:
    owner = await http.post(CONFIG_MAPS, config_map("owner"))
    await http.delete(f"{CONFIG_MAPS}/owner")
    await http.post(CONFIG_MAPS, owned("late", owner))
    await http.gone(f"{CONFIG_MAPS}/late")


async def test_an_owner_of_an_unknown_kind_keeps_its_dependents(http: Http) -> None:
    stranger = Answer(200, {"apiVersion": "no.where/v1", "kind": "Stranger", "metadata": {"name": "s", "uid": "u"}}, {})
    await http.post(CONFIG_MAPS, owned("child", stranger))
    probe = await http.post(CONFIG_MAPS, config_map("owner"))
    await http.delete(f"{CONFIG_MAPS}/owner")
    await http.post(CONFIG_MAPS, owned("late", probe))
    await http.gone(f"{CONFIG_MAPS}/late")
    assert (await http.get(f"{CONFIG_MAPS}/child")).status == 200


async def test_a_foreground_deletion_waits_for_blocking_dependents(http: Http) -> None:
    owner = await http.post(CONFIG_MAPS, config_map("owner"))
    child = owned("child", owner, blockOwnerDeletion=True)
    child["metadata"]["finalizers"] = ["example.com/hold"]
    await http.post(CONFIG_MAPS, child)
    marked = await http.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Foreground"})
    assert marked.body["metadata"]["finalizers"] == ["foregroundDeletion"]

    async def child_is_going() -> bool:
        return "deletionTimestamp" in (await http.get(f"{CONFIG_MAPS}/child")).body["metadata"]

    await until(child_is_going)
    assert (await http.get(f"{CONFIG_MAPS}/owner")).status == 200
    await http.merge(f"{CONFIG_MAPS}/child", {"metadata": {"finalizers": None}})
    await http.gone(f"{CONFIG_MAPS}/owner")


async def test_a_foreground_deletion_without_dependents_ends_at_once(http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map("owner"))
    await http.delete(f"{CONFIG_MAPS}/owner", propagationPolicy="Foreground")
    await http.gone(f"{CONFIG_MAPS}/owner")


async def test_orphans_forget_their_owner_and_stay(http: Http) -> None:
    owner = await http.post(CONFIG_MAPS, config_map("owner"))
    await http.post(CONFIG_MAPS, owned("child", owner))
    await http.delete(f"{CONFIG_MAPS}/owner", {"propagationPolicy": "Orphan"})
    await http.gone(f"{CONFIG_MAPS}/owner")
    child = await http.get(f"{CONFIG_MAPS}/child")
    assert "ownerReferences" not in child.body["metadata"]


async def test_an_unknown_propagation_policy_is_refused(http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    assert (await http.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Sideways"})).status == 400


async def test_a_collection_is_deleted_by_selector(http: Http) -> None:
    for name, colour in (("a", "red"), ("b", "green"), ("c", "red")):
        await http.post(CONFIG_MAPS, config_map(name, labels={"colour": colour}))
    deleted = await http.delete(CONFIG_MAPS, labelSelector="colour=red")
    assert [item["metadata"]["name"] for item in deleted.body["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in (await http.get(CONFIG_MAPS)).body["items"]] == ["b"]


async def test_a_namespace_goes_when_its_content_has_gone(http: Http, widgets: str) -> None:
    await http.post(NAMESPACES, {"metadata": {"name": "team"}})
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await http.post(f"{NAMESPACES}/team/configmaps", held)
    await http.post("/apis/example.com/v1/namespaces/team/widgets", widget("w"))
    marked = await http.delete(f"{NAMESPACES}/team")
    assert marked.body["status"] == {"phase": "Terminating"}
    await http.gone("/apis/example.com/v1/namespaces/team/widgets/w")
    late = await http.post(f"{NAMESPACES}/team/configmaps", config_map("late"))
    assert late.status == 403
    assert late.causes == [("NamespaceTerminating", "metadata.namespace")]
    assert (await http.get(f"{NAMESPACES}/team")).status == 200
    await http.merge(f"{NAMESPACES}/team/configmaps/a", {"metadata": {"finalizers": None}})
    await http.gone(f"{NAMESPACES}/team")


async def test_an_empty_namespace_goes_at_once(http: Http) -> None:
    created = await http.post(NAMESPACES, {"metadata": {"name": "team"}})
    assert created.body["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert created.body["status"] == {"phase": "Active"}
    await http.delete(f"{NAMESPACES}/team")
    await http.gone(f"{NAMESPACES}/team")
