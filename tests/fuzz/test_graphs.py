"""Graph bodies: each compiles and can be walked, or is refused with the paths of its mistakes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kardinal.graph import CompiledGraph, GraphError, compile_graph
from kardinal.graph.identity import APPLY_ORDER
from kardinal.graph.named import Named
from kardinal.graph.prune import teardown_wave
from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject
from tests.fuzz.inputs import JSON, fuzzed, texts
from tests.graph.cluster import START, Cluster, Engine, Observed, key_of

identifiers = st.sampled_from(["a", "b", "A", "c1", "1c", "self", "x-y"]) | texts
expressions = st.sampled_from(
    [
        "${a.data.x}",
        "${b.metadata.name + '-x'}",
        "${nowhere.x}",
        "${a.data.x",
        "x${1 / 0}",
        "$${kept}",
        "${a}",
        "${self.a}",
    ]
)
values = expressions | JSON
metadata = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "c"]) | expressions | texts},
    optional={"namespace": texts | expressions, "labels": JSON, "annotations": JSON, "ownerReferences": JSON},
)
bodies = st.fixed_dictionaries(
    {"apiVersion": st.sampled_from(["v1", "kardinal.io/v1alpha1"]) | texts, "kind": st.just("ConfigMap") | texts},
    optional={"metadata": metadata | JSON, "data": st.dictionaries(st.just("x"), values) | JSON, "spec": JSON},
)
nodes = st.fixed_dictionaries(
    {"id": identifiers},
    optional={
        "template": bodies | JSON,
        "patch": bodies | JSON,
        "ref": bodies,
        "watch": bodies,
        "readyWhen": st.lists(expressions, max_size=2) | JSON,
        "propagateWhen": st.lists(expressions, max_size=2) | JSON,
        "includeWhen": st.lists(expressions, max_size=2) | JSON,
        "x-note": JSON,
    },
)
specs = st.fixed_dictionaries({}, optional={"nodes": st.lists(nodes | JSON, max_size=4) | JSON, "resources": JSON})


def compiled_or_refused(spec: JsonObject) -> CompiledGraph | GraphError:
    try:
        return compile_graph(spec)
    except GraphError as error:
        return error


@fuzzed
@given(spec=specs)
def test_any_spec_compiles_and_is_walked_or_is_refused(spec: JsonObject) -> None:
    assert isinstance(key_of(CONFIG_MAP, "a") in Named([spec]).templates, bool)
    compiled = compiled_or_refused(spec)
    if isinstance(compiled, GraphError):
        assert compiled.problems
        assert all(problem.path.startswith("spec") for problem in compiled.problems)
        return
    engine = Engine(Cluster(), *spec.get("nodes", []))
    found = engine.walk()
    assert {outcome.node.id for outcome in found.outcomes} == {node.id for node in compiled.nodes}


@fuzzed
@given(layers=st.lists(texts | st.integers().map(str), max_size=4), references=JSON)
def test_any_marks_of_objects_leave_a_graph_deletable(layers: list[str], references: Any) -> None:
    cluster = Cluster()
    engine = Engine(cluster)
    owner = {"apiVersion": GRAPH.api_version, "kind": GRAPH.kind, "uid": engine.identity.uid}
    patched = engine.identity.patch_marks
    for index, layer in enumerate(layers):
        annotations = {APPLY_ORDER: layer, patched.order: layer}
        metadata = {"name": str(index), "annotations": annotations, "finalizers": references}
        marks = {"labels": {patched.node: layer}} if index % 2 else {"ownerReferences": [owner]}
        cluster.objects[key_of(CONFIG_MAP, str(index))] = {"metadata": metadata | marks}
    observed = Observed(cluster, engine.identity)
    while cluster.objects:
        wave = teardown_wave(engine.identity, observed, now=START)
        assert wave
        for prune in wave:
            del cluster.objects[prune.key]
