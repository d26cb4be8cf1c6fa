"""The invariants of every Graph and every course of events, with up to 40 nodes and all that a node can have.

I1  what a walk finds depends on what is, not on how it came to be
I2  a walk over a world that has not changed writes nothing
I3  so does a walk after a walk
I4  a gate that opens lets through what stood behind it

`GRAPHS=2000` tries as many.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kardinal.graph.walk_types import NodeResult, RefusedApply
from kardinal.objects import CONFIG_MAP, JsonObject
from tests.graph.cluster import START, Cluster, Engine, config, key_of, status

GRAPHS = int(os.environ.get("GRAPHS", "12"))
SIZE = 40
EVENTS = 12

ITEMS = ("red", "green", "blue")
THEIRS = ("one", "two")
FAILURES = {
    "server": RefusedApply("", "SystemError", "ServerError", "503", retry_at=START + timedelta(seconds=5)),
    "conflict": RefusedApply("", "Conflict", "FieldConflict", "another manager", retry_at=START + timedelta(seconds=5)),
    "invalid": RefusedApply("", "Error", "Invalid", "no such field"),
}
KINDS = ("template", "template", "template", "forEach", "def", "ref", "watch", "computed", "patch", "hook")

SOURCE: JsonObject = {
    "id": "source",
    "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}},
}
"""The object whose list the nodes with forEach have items of."""

Event = tuple[str, int, Any]


@dataclass
class Made:
    """Nodes in an order in which each comes after those that it reads, and how others may read each."""

    nodes: list[JsonObject] = field(default_factory=lambda: [SOURCE])
    data: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The id of a node -> expressions over its data."""
    states: dict[str, str] = field(default_factory=dict)
    """The id of a node -> the object of which others read `status`, as an expression."""
    finalized: list[str] = field(default_factory=list)
    """The ids of the nodes that hooks may be of: those that make or patch objects."""


@st.composite
def graphs(draw: st.DrawFn) -> list[JsonObject]:
    """Return nodes of all kinds that read earlier ones, behind gates and conditions of all kinds."""
    made = Made()
    for index in range(draw(st.integers(1, SIZE))):
        _add(draw, made, f"n{index}")
    return made.nodes


def _add(draw: st.DrawFn, made: Made, name: str) -> None:
    others = list(made.data)
    before = draw(st.lists(st.sampled_from(others), max_size=2, unique=True)) if others else []
    data = {f"d{index}": draw(st.sampled_from(made.data[other])) for index, other in enumerate(before)}
    kind = draw(st.sampled_from(KINDS))
    if draw(st.integers(0, 4)) == 0:
        data["count"] = "${size(dependencies())}"
    own = f"{name}[0]" if kind == "watch" else name
    readable = [made.states[other] for other in before if other in made.states]
    modifiers = _modifiers(draw, own, readable[:1])
    if others and draw(st.integers(0, 2)) == 0:
        modifiers["dependsOn"] = [draw(st.sampled_from(others))]
    if kind == "hook" and made.finalized:
        made.nodes.append(config(name, data, finalizes=draw(st.sampled_from(made.finalized)), **modifiers))
        return
    made.nodes.append(_node(kind, name, data, modifiers, draw(st.sampled_from(THEIRS))))
    if kind not in ("def", "ref", "watch"):
        made.finalized.append(name)
    life = (f"${{string({name}.ready())}}", f"${{string({name}.updated())}}")
    if kind == "forEach":
        made.data[name] = (*life, f"${{size({name})}}", f"${{{name}.map(i, i.metadata.name)}}")
    elif kind == "watch":
        made.data[name] = (*life, f"${{size({name})}}", f"${{{name}.map(i, i.status.x)}}")
    else:
        made.states[name] = name
        made.data[name] = (
            *life,
            f"${{{name}.metadata.name}}",
            f"${{{name}.status.x}}",
            f"${{{name}.status.x}}",
            f"${{string({name}.ready().orValue(false))}}",
            f"${{{name}.?status.?x.orValue('none')}}",
        )


def _modifiers(draw: st.DrawFn, own: str, others: list[str]) -> dict[str, Any]:
    """Return conditions about the node itself and, where there is one, about another; and times."""
    modifiers: dict[str, Any] = {}
    chosen = draw(st.sets(st.sampled_from(["outflow", "ready", "include", "inflow", "health", "time"]), max_size=3))
    if "outflow" in chosen:
        modifiers["propagateWhen"] = [f"${{{own}.status.open == true}}"]
    if "ready" in chosen:
        modifiers["readyWhen"] = [f"${{{own}.status.x == 'b'}}"]
    if "time" in chosen:
        modifiers |= {"timeout": "10m", "recheckAfter": "5m"}
    for other in others:
        if "include" in chosen:
            modifiers["includeWhen"] = [f"${{{other}.?status.?x.orValue('a') != 'c'}}"]
        if "inflow" in chosen:
            gate = draw(st.sampled_from([f"${{{other}.status.open == true}}", f"${{{other}.ready()}}"]))
            modifiers.setdefault("propagateWhen", []).append(gate)
        if "health" in chosen:
            modifiers.setdefault("readyWhen", []).append(f"${{{other}.status.x == 'b'}}")
    return modifiers


def _node(kind: str, name: str, data: JsonObject, modifiers: JsonObject, theirs: str) -> JsonObject:
    match kind:
        case "forEach":
            return config(name, data, name=f"{name}-${{item}}", forEach="${source.data.items}", **modifiers)
        case "def":
            value = {"metadata": {"name": name}, "status": {"x": "b", "open": True}, "data": data}
            return {"id": name, "def": value, **modifiers}
        case "ref":
            return {
                "id": name,
                "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": theirs}},
                **modifiers,
            }
        case "watch":
            body = {"apiVersion": "v1", "kind": "ConfigMap", "selector": {"of": "theirs"}}
            return {"id": name, "watch": body, **modifiers}
        case "patch":
            metadata = {"name": name.replace("n", "target")}
            return {
                "id": name,
                "patch": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data},
                **modifiers,
            }
        case "computed":
            read = ", ".join(f"'{key}': {value[2:-1]}" for key, value in data.items())
            made = f"{{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {{'name': '{name}'}}, 'data': {{{read}}}}}"
            return {"id": name, "template": f"${{{made}}}", **modifiers}
        case _:
            return config(name, data, **modifiers)


OF_OBJECTS = ("x", "open", "data", "delete", "hold", "release")
BESIDE = ("items", "theirs", "labels", "foreign")
OF_ENGINE = ("drop", "restore", "fail", "heal", "restart", "time")

events = st.lists(
    st.tuples(
        st.sampled_from([*OF_OBJECTS, *OF_OBJECTS, "x", "open", *BESIDE, *OF_ENGINE]),
        st.integers(0, SIZE - 1),
        st.integers(0, 5),
    ),
    max_size=EVENTS,
)


class Course:
    """A Graph in a cluster, and what happens there."""

    def __init__(self, nodes: list[JsonObject]) -> None:
        self.cluster = Cluster()
        self.cluster.create(CONFIG_MAP, "source", data={"items": ["red", "green"]})
        for name in THEIRS:
            self.cluster.create(CONFIG_MAP, name, labels={"of": "theirs"}, status={"x": "a"})
        self.nodes = nodes
        self.targets = [node["patch"]["metadata"]["name"] for node in nodes if "patch" in node]
        for name in self.targets:
            self.cluster.create(CONFIG_MAP, name, data={"own": "kept"})
        self.engine = Engine(self.cluster, *nodes)
        self.engine.rest()

    def happen(self, event: Event) -> None:
        what, index, value = event
        names = sorted(self.cluster.names(CONFIG_MAP) - {"source"})
        if what in OF_OBJECTS and names:
            self.to_object(what, names[index % len(names)], value)
        elif what in BESIDE:
            self.beside(what, f"n{index % len(self.nodes)}", value)
        elif what in OF_ENGINE:
            self.to_engine(what, index % len(self.nodes), value)

    def to_object(self, what: str, name: str, value: int) -> None:
        """Let others write, delete or hold an object."""
        match what:
            case "x":
                status(self.cluster, name, x="abcb"[value % 4])
            case "open":
                status(self.cluster, name, open=value > 1)
            case "data":
                self.cluster.edit(CONFIG_MAP, name, data={"d0": "by hand"})
            case "delete":
                self.cluster.delete(key_of(CONFIG_MAP, name))
            case "hold":
                self.cluster.edit(CONFIG_MAP, name, metadata={"finalizers": ["x"]})
            case "release":
                self.release(name)

    def beside(self, what: str, name: str, value: int) -> None:
        """Let the objects change that the Graph reads, or be one in its way."""
        theirs = THEIRS[value % 2]
        match what:
            case "items":
                items = [*ITEMS[: value % 4], *(["red"] if value == 5 else [])]
                self.cluster.edit(CONFIG_MAP, "source", data={"items": items})
            case "theirs":
                self.toggle(theirs)
            case "labels" if self.cluster.find(CONFIG_MAP, theirs):
                label = "theirs" if value > 2 else "us"
                self.cluster.edit(CONFIG_MAP, theirs, metadata={"labels": {"of": label}})
            case "foreign" if self.cluster.find(CONFIG_MAP, name) is None:
                self.cluster.create(CONFIG_MAP, name, data={"theirs": "kept"})

    def to_engine(self, what: str, index: int, value: int) -> None:
        """Change the Graph, let the server refuse an object, or let time pass or the engine begin anew."""
        match what:
            case "drop":
                self.engine.nodes = self.nodes[: index + 1]
            case "restore":
                self.engine.nodes = list(self.nodes)
            case "fail":
                self.engine.refuse[self.nodes[index]["id"]] = [*FAILURES.values()][value % 3]
            case "heal":
                self.engine.refuse.clear()
                self.engine.pass_time(minutes=1)
                self.engine = self.engine.restarted()
            case "restart":
                self.engine = self.engine.restarted()
            case "time":
                self.engine.pass_time(minutes=4 * value)

    def items(self) -> list[Any]:
        """Return the list that the nodes with forEach have items of."""
        source = self.cluster.find(CONFIG_MAP, "source")
        assert source is not None
        return list(source["data"]["items"])

    def release(self, name: str) -> None:
        metadata = self.cluster.objects[key_of(CONFIG_MAP, name)]["metadata"]
        if "deletionTimestamp" in metadata:
            self.cluster.release_finalizers(key_of(CONFIG_MAP, name))
        else:
            self.cluster.edit(CONFIG_MAP, name, metadata={"finalizers": None})

    def toggle(self, name: str) -> None:
        if self.cluster.find(CONFIG_MAP, name) is None:
            self.cluster.create(CONFIG_MAP, name, labels={"of": "theirs"}, status={"x": "b", "open": True})
        else:
            self.cluster.delete(key_of(CONFIG_MAP, name))

    def clear_away(self) -> None:
        """End everything that keeps nodes back, but for gates and data."""
        self.engine.refuse.clear()
        self.engine.nodes = list(self.nodes)
        self.engine.pass_time(minutes=1)
        self.engine = self.engine.restarted()
        self.cluster.edit(CONFIG_MAP, "source", data={"items": list(ITEMS)})
        for key, obj in list(self.cluster.objects.items()):
            if obj.get("data", {}).get("theirs"):
                self.cluster.delete(key)
            elif obj["metadata"].get("finalizers"):
                self.release(key.name)
        for name in self.targets:
            if self.cluster.find(CONFIG_MAP, name) is None:
                self.cluster.create(CONFIG_MAP, name, data={"own": "kept"})
        for name in THEIRS:
            if self.cluster.find(CONFIG_MAP, name) is None:
                self.toggle(name)
            self.cluster.edit(CONFIG_MAP, name, metadata={"labels": {"of": "theirs"}})


def told(outcomes: Mapping[str, NodeResult]) -> dict[str, object]:
    """Return what the status of a Graph says of each node."""
    return {
        node: (
            each.kind,
            each.state,
            each.reason,
            each.message,
            each.waiting_for,
            each.gate and each.gate.expression,
            each.children,
        )
        for node, each in outcomes.items()
    }


always = settings(
    max_examples=GRAPHS,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@pytest.mark.case("A89")
@always
@given(nodes=graphs(), course=events)
def test_walk_knows_no_history_comes_to_rest_and_deletes_only_what_no_node_wants(
    nodes: list[JsonObject], course: list[Event]
) -> None:
    world = Course(nodes)
    for event in course:
        world.happen(event)
        world.engine.writes()
        outcomes = world.engine.rest()
        found = told(outcomes)
        assert unwanted(world.engine.writes(), outcomes, world.items()) == []
        again = {each.node.id: each for each in world.engine.walk().outcomes}
        assert told(again) == found
        assert world.engine.writes() == []
        fresh = world.engine.restarted()
        assert told(fresh.rest()) == found
        assert [write for write in fresh.writes() if not write.startswith("refused")] == []


def unwanted(writes: list[str], outcomes: Mapping[str, NodeResult], items: list[Any]) -> list[str]:
    """Return the deletions of objects that a node still wants, and of those that no node has made."""
    found = []
    for write in writes:
        node, _, item = write.removeprefix("delete ").partition("-")
        is_wanted = node in outcomes and outcomes[node].state != "Excluded" and (not item or item in items)
        if write.startswith("delete ") and (is_wanted or not node.startswith("n")):
            found.append(write)
    return found


@always
@given(nodes=graphs(), course=events)
def test_unread_change_writes_nothing_and_open_gates_bring_every_node_to_ready(
    nodes: list[JsonObject], course: list[Event]
) -> None:
    world = Course(nodes)
    for event in course:
        world.happen(event)
        world.engine.walk()
    found = told(world.engine.rest())
    world.engine.writes()
    for name in world.cluster.names(CONFIG_MAP):
        status(world.cluster, name, unread=1)
    assert told(world.engine.rest()) == found
    assert world.engine.writes() == []
    world.clear_away()
    for _ in range(len(nodes) + 1):
        for name in world.cluster.names(CONFIG_MAP):
            status(world.cluster, name, x="b", open=True)
        hooks = {node["id"] for node in nodes if "finalizes" in node}
        if {state for node, state in world.engine.states().items() if node not in hooks} == {"Ready"}:
            return
    raise AssertionError(told(world.engine.rest()))
