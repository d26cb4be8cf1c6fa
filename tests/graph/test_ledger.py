"""The record of what a Graph has made outside its namespace."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kardinal.graph.identity import GRAPH_UID, ObjectKey
from kardinal.objects import CONFIG_MAP, JsonObject, Key
from kardinal.runtime import StatusWriter
from kardinal_controller.graphs.ledger import Ledger
from tests.graph.cluster import Cluster, Engine, config, key_of

PLACE = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "other", "name": "a"}
KEY = ObjectKey(CONFIG_MAP, "other", "a")


class Writes(StatusWriter):
    """Takes the records that are written."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Any]] = []

    async def write(
        self, resource: Any, current: JsonObject, status: JsonObject, *, shared: bool = False
    ) -> JsonObject | None:
        self.written.append((current["metadata"]["name"], status["objects"]))
        return None


def revision(number: int, *objects: JsonObject) -> JsonObject:
    status = {"status": {"objects": list(objects)}} if objects else {}
    return {"metadata": {"name": f"g-{number}"}, **status}


def ledger(*revisions: JsonObject, status: StatusWriter | None = None) -> Ledger:
    return Ledger(status or Writes(), Key("team", "g"), uid="of-g", revisions=revisions)


def live(uid: str, graph: str | None = None) -> JsonObject:
    annotations = {GRAPH_UID: graph} if graph else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": uid, "annotations": annotations}}


def test_object_of_the_recorded_uid_is_owned_and_no_other() -> None:
    found = ledger(revision(2), revision(1, {**PLACE, "uid": "1"}))
    assert found.owns(KEY, live("1"))
    assert not found.owns(KEY, live("2", graph="of-g"))
    assert not found.owns(KEY._replace(name="b"), live("1"))
    assert not ledger().owns(KEY, live("1", graph="of-g"))


def test_object_that_was_about_to_be_made_is_owned_by_its_annotation() -> None:
    found = ledger(revision(1, PLACE))
    assert found.owns(KEY, live("1", graph="of-g"))
    assert not found.owns(KEY, live("1", graph="of-another"))
    assert not found.owns(KEY, live("1"))


async def test_record_is_written_before_and_after_and_moves_to_the_newest_revision() -> None:
    status = Writes()
    found = ledger(status=status)
    await found.record("g-1", {KEY: None})
    await found.record("g-1", {KEY: live("1")})
    await found.record("g-1", {KEY: None})
    await found.follow("g-1")
    await found.follow("g-2")
    complete = {**PLACE, "uid": "1"}
    assert status.written == [("g-1", [PLACE]), ("g-1", [complete]), ("g-2", [complete])]


class Full:
    """A record without room."""

    def owns(self, key: ObjectKey, obj: JsonObject) -> bool:
        return False

    def has_room(self, key: ObjectKey) -> bool:
        return False


@pytest.mark.parametrize("outside", [None, Full()])
def test_node_makes_nothing_outside_without_a_record_or_without_room_in_it(outside: Full | None) -> None:
    cluster = Cluster()
    node = config("a")
    node["template"]["metadata"]["namespace"] = "other"
    engine = Engine(cluster, node)
    engine.outside = outside
    outcome = engine.rest()["a"]
    assert (outcome.state, outcome.reason) == ("Error", "TooManyObjects" if outside else "InvalidObject")
    assert ("at most 1,000 objects" if outside else "in its own namespace only") in cast("str", outcome.message)
    assert key_of(CONFIG_MAP, "a") not in cluster.objects
