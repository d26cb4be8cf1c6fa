"""Who owns what after an ordinary write."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

from kardinal_local.plane.apply.fieldsets import paths
from kardinal_local.plane.apply.ssa import Writer, track_update
from tests.local.plane.applying import LATER, NOW, SCHEMA, applied, owners, thing, times, updated
from tests.local.plane.wire import Http, widget
from tests.support.clock import VirtualClock


def test_a_map_that_becomes_a_list_takes_its_fields_from_their_owner() -> None:
    live = updated(None, thing({"free": {"x": {"y": 1}}}), by="v")
    live = updated(live, thing({"free": {"x": [1]}}))
    assert owners(live) == {("u", "Update"): [".spec.free.x"], ("v", "Update"): [".spec", ".spec.free"]}


def test_an_update_of_an_object_that_nobody_claims_claims_nothing() -> None:
    live = applied(None, thing())
    assert updated(live, thing({"a": "1"}))["metadata"]["managedFields"] == []


def test_an_update_takes_what_it_changes_from_everyone_else() -> None:
    live = applied(None, thing({"a": "1", "b": "1", "config": {"x": "1"}}))
    live = updated(live, {**live, "spec": {"a": "2", "config": {"x": "1", "y": "1"}}}, now=LATER)
    assert owners(live) == {("a", "Apply"): [".spec.config.x"], ("u", "Update"): [".spec.a", ".spec.config.y"]}
    assert times(live) == {"a": "2026-01-02T03:04:05Z", "u": "2026-01-02T03:05:05Z"}


def test_updates_of_one_manager_add_up_and_an_equal_write_moves_no_time() -> None:
    live = updated(None, thing({"a": "1"}))
    live = updated(live, {**live, "spec": {"a": "1", "b": "1"}}, now=LATER)
    assert owners(live) == {("u", "Update"): [".spec", ".spec.a", ".spec.b"]}
    again = updated(live, copy.deepcopy(live), now=LATER + timedelta(minutes=1))
    assert again == live


def test_a_status_update_is_tracked_apart() -> None:
    live = updated(None, thing({"a": "1"}))
    live = updated(live, {**live, "status": {"phase": "On"}}, subresource="status")
    assert owners(live)["u", "Update:status"] == [".status", ".status.phase"]


def test_a_client_may_rewrite_and_reset_managed_fields_on_the_main_object_alone() -> None:
    live = updated(None, thing({"a": "1"}))
    rewritten = copy.deepcopy(live)
    rewritten["metadata"]["managedFields"][0].update(manager="b", operation="Apply")
    assert owners(updated(live, rewritten)) == {("b", "Apply"): [".spec", ".spec.a"]}
    assert owners(updated(live, rewritten, subresource="status")) == owners(live)
    resets: list[list[Any]] = [[], [{}]]
    for reset in resets:
        emptied = {**live, "metadata": {**live["metadata"], "managedFields": reset}}
        assert updated(live, emptied)["metadata"]["managedFields"] == []
    stripped = {**live, "metadata": {"name": "t"}}
    assert owners(updated(live, stripped)) == owners(live)
    broken = {**live, "metadata": {**live["metadata"], "managedFields": [{"manager": "x"}]}}
    assert owners(updated(live, broken)) == owners(live)


def test_true_and_one_are_different_values_at_any_depth() -> None:
    live = updated(None, thing({"free": {"x": {"y": 1}, "z": [1]}}), by="v")
    live = updated(live, thing({"free": {"x": {"y": True}, "z": [True]}}))
    assert owners(live)["u", "Update"] == [".spec.free.x.y", ".spec.free.z"]


def test_the_eleventh_updater_makes_the_oldest_ancient() -> None:
    live = applied(None, thing({"config": {}}), by="applier")
    for number in range(12):
        config = {**live["spec"]["config"], f"k{number:02}": "1"}
        moment = NOW + timedelta(seconds=number)
        live = updated(live, {**live, "spec": {"config": config}}, by=f"m{number:02}", now=moment)
    assert list(owners(live)) == [
        ("applier", "Apply"),
        ("ancient-changes", "Update"),
        *((f"m{number:02}", "Update") for number in range(3, 12)),
    ]
    assert owners(live)["ancient-changes", "Update"] == [f".spec.config.k{number:02}" for number in range(3)]
    assert times(live)["ancient-changes"] == "2026-01-02T03:04:07Z"


def test_entries_are_in_the_order_of_their_seconds_appliers_first() -> None:
    live = updated(None, thing({"a": "1"}), by="z")
    live = updated(live, {**live, "spec": {**live["spec"], "b": "1"}}, by="a", now=LATER)
    live = applied(live, thing({"config": {"x": "1"}}), by="y", now=LATER + timedelta(minutes=1))
    live = applied(live, thing({"config": {"x": "1"}}), by="x", now=LATER)
    assert list(owners(live)) == [("x", "Apply"), ("y", "Apply"), ("z", "Update"), ("a", "Update")]


def test_a_claim_that_changes_nothing_has_no_time() -> None:
    live = applied(None, thing({"a": "1"}), by="one")
    live = applied(live, thing({"a": "1"}), by="two", now=LATER)
    assert [entry.get("time") for entry in live["metadata"]["managedFields"]] == [None, "2026-01-02T03:04:05Z"]


def test_who_owned_parts_of_what_became_one_value_owns_the_whole() -> None:
    atomic = copy.deepcopy(SCHEMA)
    for name in ("config", "ports"):
        atomic["properties"]["spec"]["properties"][name] |= {
            "x-kubernetes-map-type": "atomic",
            "x-kubernetes-list-type": "atomic",
        }
    live = applied(None, thing({"config": {"x": "1"}, "ports": [{"port": 1}], "tags": ["t"]}), by="one")
    changed = track_update(live, {**live, "status": {}}, by=Writer("two", LATER), schema=atomic)
    assert list(paths(changed[0]["fieldsV1"])) == [".spec.config", ".spec.ports", '.spec.tags[="t"]']


def test_steps_of_a_later_version_are_dropped_and_what_is_no_set_is_none() -> None:
    live = updated(None, thing({"a": "1"}), by="one")
    entry = live["metadata"]["managedFields"][0]
    for fields, expected in (
        ({"f:spec": {"f:a": {".": {}}, "x:later": {}}}, [".spec.a"]),
        ({"f:spec": {"a": {}}}, [".spec", ".spec.a"]),
        ({"k:{": {}}, [".spec", ".spec.a"]),
    ):
        sent = {**live, "metadata": {**live["metadata"], "managedFields": [{**entry, "fieldsV1": fields}]}}
        assert owners(updated(live, sent))["one", "Update"] == expected


def test_of_an_element_that_is_there_twice_nobody_owns_parts() -> None:
    live = updated(None, thing({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}), by="one")
    assert '.spec.ports[port=1,protocol="TCP"].name' not in owners(live)["one", "Update"]
    single = updated(live, {**live, "spec": {"ports": [{"port": 1, "name": "b"}]}}, by="two")
    assert '.spec.ports[port=1,protocol="TCP"].name' in owners(single)["two", "Update"]
    merged = applied(live, thing({"ports": [{"port": 1, "name": "c"}]}), by="three", force=True)
    assert merged["spec"]["ports"] == [{"port": 1, "name": "c"}]


async def test_a_claim_that_gets_a_time_is_a_write_when_that_moves_it_behind_another(
    http: Http, widgets: str, clock: VirtualClock
) -> None:
    status = f"{widgets}/a/status"
    known = {**widget("a"), "status": {"phase": "On"}}
    labelled = {**known, "metadata": {"name": "a", "labels": {"not": "here"}}}

    async def revision(owner: str, configuration: dict[str, Any]) -> str:
        return (await http.apply(status, configuration, fieldManager=owner)).revision

    await http.post(widgets, widget("a"))
    alone = await revision("b", known)
    claimed = await revision("a", known)
    assert claimed != alone
    # Without a time it is first, and with the time of this second it is still.
    assert await revision("a", labelled) == claimed
    await clock.advance(1)
    moved = await revision("a", labelled)
    assert moved != claimed
    await clock.advance(1)
    assert await revision("a", labelled) == moved
