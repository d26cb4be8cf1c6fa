"""The invariants of every Graph and every course of events.

I1  what a walk finds depends on what is, not on how it came to be
I2  a walk over a world that has not changed writes nothing
I3  so does a walk after a walk
I4  a gate that opens lets through what stood behind it
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kardinal.objects import CONFIG_MAP, JsonObject
from tests.graph.cluster import Cluster, Engine, config, key_of, status

SIZE = 5

Event = tuple[str, int, object]


@st.composite
def graphs(draw: st.DrawFn) -> list[JsonObject]:
    """Nodes of three kinds that read earlier ones, behind gates and conditions of both kinds."""
    nodes: list[JsonObject] = []
    for index in range(SIZE):
        before = draw(st.lists(st.integers(0, index - 1), max_size=2, unique=True)) if index else []
        form = draw(st.sampled_from(["${%s.metadata.name}", "${%s.status.x}", "${%s.?status.?x.orValue('none')}"]))
        data = {f"d{other}": form % read_as(nodes[other]) for other in before}
        name = f"n{index}"
        modifiers: dict[str, Any] = {}
        if draw(st.booleans()):
            modifiers["propagateWhen"] = [f"${{{name}.status.open == true}}"]
        if draw(st.booleans()):
            modifiers["readyWhen"] = [f"${{{name}.status.x == 'b'}}"]
        if before and draw(st.integers(0, 3)) == 0:
            modifiers["includeWhen"] = [f"${{{read_as(nodes[before[0]])}.?status.?x.orValue('a') != 'c'}}"]
        if draw(st.booleans()) and before:
            modifiers["dependsOn"] = [f"n{before[-1]}"]
        match draw(st.sampled_from(["template", "template", "def", "forEach"])):
            case "template":
                nodes.append(config(name, data, **modifiers))
            case "def":
                value = {"metadata": {"name": name}, "status": {"x": "b", "open": True}, "data": data}
                nodes.append({"id": name, "def": value, **modifiers})
            case "forEach":
                nodes.append(config(name, data, name="${item}", forEach=f"['{name}']", **modifiers))
    return nodes


def read_as(node: JsonObject) -> str:
    """Return the expression for the object of a node: a node with forEach is the list of its one object."""
    return f"{node['id']}[0]" if "forEach" in node else str(node["id"])


events = st.lists(
    st.tuples(
        st.sampled_from(["x", "open", "data", "delete", "drop", "restore"]),
        st.integers(0, SIZE - 1),
        st.sampled_from(["a", "b", "c", True, False, None]),
    ),
    max_size=12,
)


def happen(cluster: Cluster, engine: Engine, nodes: list[JsonObject], event: Event) -> None:
    what, index, value = event
    name = f"n{index}"
    exists = cluster.find(CONFIG_MAP, name) is not None
    match what:
        case "x" | "open" if exists:
            status(cluster, name, **{what: value})
        case "data" if exists:
            cluster.edit(CONFIG_MAP, name, data={"d0": value})
        case "delete" if exists:
            cluster.delete(key_of(CONFIG_MAP, name))
        case "drop" if index == SIZE - 1:
            engine.nodes = nodes[:index]
        case "restore":
            engine.nodes = list(nodes)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(nodes=graphs(), course=events)
def test_a_walk_knows_no_history_and_comes_to_rest(nodes: list[JsonObject], course: list[Event]) -> None:
    cluster = Cluster()
    engine = Engine(cluster, *nodes)
    engine.rest()
    for event in course:
        happen(cluster, engine, nodes, event)
        outcomes = engine.rest()
        engine.writes()
        fresh = Engine(cluster, *engine.nodes).rest()
        assert engine.writes() == []
        assert {node: (o.state, o.reason, o.waiting_for) for node, o in outcomes.items()} == {
            node: (o.state, o.reason, o.waiting_for) for node, o in fresh.items()
        }


@settings(max_examples=40, deadline=None)
@given(nodes=graphs())
def test_open_gates_and_complete_data_bring_every_node_to_ready(nodes: list[JsonObject]) -> None:
    cluster = Cluster()
    engine = Engine(cluster, *nodes)
    for _ in range(SIZE + 1):
        engine.rest()
        for name in cluster.names(CONFIG_MAP):
            status(cluster, name, x="b", open=True)
    assert set(engine.states().values()) == {"Ready"}


@settings(max_examples=40, deadline=None)
@given(nodes=graphs(), course=events)
def test_nothing_is_deleted_but_what_is_excluded_or_removed(nodes: list[JsonObject], course: list[Event]) -> None:
    cluster = Cluster()
    engine = Engine(cluster, *nodes)
    engine.rest()
    for event in course:
        happen(cluster, engine, nodes, event)
        engine.writes()
        outcomes = engine.rest()
        deleted = {write.removeprefix("delete ") for write in engine.writes() if write.startswith("delete")}
        assert all(name not in outcomes or outcomes[name].state == "Excluded" for name in deleted)
