"""The cost of one Graph beside others: the same beside a thousand of them as beside ten."""

from __future__ import annotations

import random
from functools import partial

import pytest

from kardinal.graph.compile import compile_graph
from kardinal.graph.identity import ObjectKey
from kardinal.graph.selection import Selection
from kardinal.graph.texts import NAMESPACE_EXPRESSIONS, NamespaceTexts, TooManyExpressions
from kardinal.graph.walk_types import Seen
from kardinal.kube import Client, ClusterAccess, Connection
from kardinal.objects import CONFIG_MAP, JsonObject, Key, key_of
from kardinal.objects.label_selectors import parse_selector
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.runtime import ChangeKind, Event, KeyMemory
from kardinal.runtime.informer import Informer
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.reflector import WatchScope
from kardinal_controller.graphs.interests import Interests
from kardinal_controller.graphs.observed import candidates
from tests.graph.cluster import Cluster, Engine, config, data, status
from tests.support.clock import VirtualClock
from tests.support.names import TEAM
from tests.support.work import calls

FEW = 10
MANY = 1000


def freezes(pipeline: str) -> Selection:
    """Return what the Graphs of a Pipeline select."""
    selector = {"kardinal.io/type": "freeze", "kardinal.io/pipeline": pipeline}
    return Selection(POLICY_GATE, "team", parse_selector(selector))


def gate(name: str, **labels: str) -> JsonObject:
    marks = {f"kardinal.io/{key}": value for key, value in labels.items()}
    return {"metadata": {"name": name, "namespace": "team", "resourceVersion": "1", "uid": name, "labels": marks}}


def texts(number: int) -> frozenset[str]:
    """Return the expressions of one Graph: some that all have, and one that another one has, too."""
    return frozenset(["dev.status.state", "schedule.isWeekend", f"mine == {number // 2}"])


class NoObjects:
    """The cache of Graphs when all are gone."""

    def get(self, namespace: str, name: str) -> None:
        return None


def updated(obj: JsonObject) -> Event:
    """Return the event of a change of an object."""
    return Event(ChangeKind.UPDATED, key_of(obj), obj, obj)


def setting(number: int) -> ObjectKey:
    return ObjectKey(CONFIG_MAP, "team", f"setting-{number}")


def interests(graphs: int, memory: KeyMemory | None = None) -> Interests:
    """Return the interests of Graphs that each read one object and select freezes, and all objects of a namespace."""
    found = Interests(memory or KeyMemory(NoObjects()))
    for number in range(graphs):
        own = Selection(POLICY_GATE, f"team-{number}", ())
        selections = frozenset([freezes(f"app-{number}"), own])
        found.note(Key("team", f"g-{number}"), Seen(frozenset([setting(number)]), selections))
    return found


@pytest.mark.parametrize(
    "changed",
    [
        gate("hours", type="gate", pipeline="app-1", bundle="b"),
        gate("app-7-freeze", type="freeze", pipeline="app-7"),
        gate("no-labels"),
        gate("read"),
    ],
    ids=["a gate", "what one selects", "without labels", "what one reads"],
)
def test_finding_whom_a_change_concerns_costs_the_same_beside_many_graphs(changed: JsonObject) -> None:
    few, many = (interests(number) for number in (FEW, MANY))
    for each in (few, many):
        each.note(Key("team", "reader"), Seen(frozenset([ObjectKey(POLICY_GATE, "team", "read")]), frozenset()))
    event = updated(changed)
    assert few.concerned(POLICY_GATE, event) == many.concerned(POLICY_GATE, event)
    assert calls(lambda: few.concerned(POLICY_GATE, event)) == calls(lambda: many.concerned(POLICY_GATE, event))


def test_a_change_concerns_the_graphs_that_select_the_object() -> None:
    memory = KeyMemory(NoObjects())
    found = interests(FEW, memory)
    anything = Selection(POLICY_GATE, None, parse_selector({"matchExpressions": [{"key": "x", "operator": "Exists"}]}))
    found.note(Key("team", "all"), Seen(frozenset(), frozenset([anything, freezes("app-3")])))

    def concerned(changed: JsonObject) -> set[Key]:
        return set(found.concerned(POLICY_GATE, updated(changed)))

    assert concerned(gate("f", type="freeze", pipeline="app-3")) == {Key("team", "g-3"), Key("team", "all")}
    elsewhere = gate("f") | {}
    elsewhere["metadata"] |= {"namespace": "other", "labels": {"x": ""}}
    assert concerned(elsewhere) == {Key("team", "all")}
    assert found.concerned(CONFIG_MAP, updated(gate("f", type="freeze", pipeline="app-3"))) == []
    assert found.concerned(CONFIG_MAP, updated(gate("setting-4"))) == [Key("team", "g-4")]

    memory.drop(Key("team", "all"))
    assert concerned(gate("f", type="freeze", pipeline="app-3", x="")) == {Key("team", "g-3")}


def test_walk_that_pauses_adds_what_it_has_read_to_what_the_last_one_read() -> None:
    found = interests(0)
    graph = Key("team", "g")
    found.note(graph, Seen(frozenset([setting(1)]), frozenset([freezes("app-1")])))
    found.add(graph, Seen(frozenset([setting(2)]), frozenset([freezes("app-2")])))
    read = [(CONFIG_MAP, updated(gate(f"setting-{number}"))) for number in (1, 2)]
    selected = [(POLICY_GATE, updated(gate("f", type="freeze", pipeline=f"app-{number}"))) for number in (1, 2)]
    assert [found.concerned(*each) for each in (*read, *selected)] == [[graph]] * 4
    found.note(graph, Seen(frozenset([setting(2)]), frozenset([freezes("app-2")])))
    assert [found.concerned(*each) for each in (*read, *selected)] == [[], [graph], [], [graph]]


def test_pause_of_a_walk_that_reads_what_the_last_one_read_costs_the_same_however_much_that_is() -> None:
    costs = []
    for number in (FEW, MANY):
        found = interests(0)
        graph = Key("team", "g")
        found.note(graph, Seen(frozenset(map(setting, range(number))), frozenset()))
        half = Seen(frozenset(map(setting, range(number // 2))), frozenset())
        costs.append(calls(partial(found.add, graph, half)))
    assert costs[0] == costs[1]


def gates(number: int) -> Informer:
    """Return an informer with a freeze and the gates of so many Pipelines."""
    clock = VirtualClock()
    client = Client(Connection(ClusterAccess("http://127.0.0.1:9")), user_agent="test")
    metrics = Metrics(clock=clock).informer("PolicyGate")
    informer = Informer(client, WatchScope(POLICY_GATE), clock=clock, metrics=metrics)
    objects = [gate(f"gate-{each}", type="gate", pipeline=f"app-{each}") for each in range(number)]
    objects.append(gate("app-1-freeze", type="freeze", pipeline="app-1"))
    informer.replace({key_of(each): each for each in objects}, "1")
    return informer


def test_selecting_objects_costs_the_same_beside_many_others() -> None:
    few, many = (gates(number) for number in (FEW, MANY))
    for index in (few, many):
        assert [each["metadata"]["name"] for each in candidates(index, freezes("app-1"))] == ["app-1-freeze"]
    assert calls(lambda: candidates(few, freezes("app-2"))) == calls(lambda: candidates(many, freezes("app-2")))


def test_objects_are_found_by_labels_that_come_and_go() -> None:
    informer = gates(FEW)
    everywhere = Selection(POLICY_GATE, None, parse_selector({"kardinal.io/type": "freeze"}))
    other = gate("other", type="freeze") | {}
    other["metadata"] |= {"namespace": "policies"}
    assert len(candidates(informer, everywhere)) == 1

    informer.apply("ADDED", other)
    assert [each["metadata"]["name"] for each in candidates(informer, everywhere)] == ["app-1-freeze", "other"]
    assert [each["metadata"]["name"] for each in candidates(informer, freezes("app-1"))] == ["app-1-freeze"]

    relabelled = gate("app-1-freeze", type="gate", pipeline="app-1")
    relabelled["metadata"]["resourceVersion"] = "2"
    informer.apply("MODIFIED", relabelled)
    assert candidates(informer, freezes("app-1")) == []
    without = Selection(POLICY_GATE, "team", ())
    assert len(candidates(informer, without)) == FEW + 1


def test_pass_after_one_change_evaluates_what_the_change_concerns() -> None:
    reads = [{"x": f"${{n{number - 1}.metadata.name}}"} if number % 10 else {} for number in range(100)]
    nodes = [config(f"n{number}", data) for number, data in enumerate(reads)]
    engine = Engine(Cluster(), *nodes)
    engine.rest()
    status(engine.cluster, "n50", y="1")
    after_change = calls(engine.first)
    fresh = Engine(engine.cluster, *nodes)
    graph = compile_graph({"nodes": nodes})
    everything = calls(lambda: fresh.pass_over(graph))
    assert engine.first().applies == ()
    assert after_change * 3 < everything


def test_nodes_that_read_an_unchanged_selection_are_not_evaluated_again() -> None:
    watch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": TEAM, "selector": {"mark": "yes"}}}
    reads = config("a", {"x": "${string(size(marked))}"})
    engine = Engine(Cluster(), {"id": "marked", "watch": watch}, reads, config("b"))
    engine.rest()
    engine.rest()

    def evaluated() -> list[str]:
        found = [outcome.node.id for outcome in engine.first().evaluated]
        engine.rest()
        return found

    assert evaluated() == []
    status(engine.cluster, "b", y="1")
    assert evaluated() == ["b"]
    engine.cluster.create(CONFIG_MAP, "new", labels={"mark": "yes"})
    assert evaluated() == ["marked", "a"]
    assert data(engine.cluster, "a") == {"x": "1"}
    engine.cluster.edit(CONFIG_MAP, "new", data={"k": "v"})
    assert evaluated() == ["marked", "a"]


def test_checking_the_expressions_of_a_graph_costs_the_same_beside_many_graphs() -> None:
    costs = []
    for number in (FEW, MANY):
        namespace = NamespaceTexts()
        for each in range(number):
            namespace.put(f"g-{each}", texts(each))

        def take_one_in(namespace: NamespaceTexts = namespace) -> None:
            namespace.check("new", texts(-2))
            namespace.put("new", texts(-2))
            namespace.remove("new")

        costs.append(calls(take_one_in))
    assert costs[0] == costs[1]


def test_expressions_of_a_namespace_count_once_however_graphs_come_and_go() -> None:
    namespace = NamespaceTexts()
    stored = dict[str, frozenset[str]]()
    chance = random.Random(4)
    words = [letter * (NAMESPACE_EXPRESSIONS // 5) for letter in "abcdefghijkl"]
    refused = 0
    for _ in range(300):
        name = f"g-{chance.randrange(6)}"
        found = frozenset(chance.sample(words, chance.randrange(4)))
        if chance.random() < 0.3:
            namespace.remove(name)
            stored.pop(name, None)
            continue
        others = frozenset().union(*(texts for other, texts in stored.items() if other != name))
        too_many = sum(map(len, others | found)) > NAMESPACE_EXPRESSIONS
        refused += too_many
        try:
            namespace.check(name, found)
        except TooManyExpressions:
            assert too_many
            continue
        assert not too_many
        namespace.put(name, found)
        stored[name] = found
    assert 20 < refused < 200
    for name in stored:
        namespace.remove(name)
    assert not namespace
