"""Who owns what after an ordinary write."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

from tests.localplane.applying import LATER, applied, owners, thing, times, updated


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
