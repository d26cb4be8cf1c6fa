"""The page on Graphs: each example comes to the states under it, and no word of a node is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.graph import compile_graph
from kardinal.graph.dialect import WORDS
from kardinal.objects import GRAPH, JsonObject, ResourceType
from tests.graph.cluster import KINDS, Cluster, Engine
from tests.support.names import TEAM

PAGE = Path(__file__).parents[2] / "docs" / "graph.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(
    r"(?:```yaml given\n(?P<given>.*?)```\n\n)?```yaml\n(?P<nodes>.*?)```\n\n(?P<states>`.*?)\n\n", re.DOTALL
)
STATE = re.compile(r"`(\w+)` is (\w+)(?: \((\w+)\))?")
EXAMPLES = [match.groupdict() for match in BLOCK.finditer(TEXT)]


def engine_of(example: dict[str, Any]) -> Engine:
    cluster = Cluster()
    for obj in yaml.safe_load(example["given"]) if example["given"] else ():
        resource: ResourceType = KINDS[obj.pop("apiVersion"), obj.pop("kind")]
        metadata = obj.pop("metadata")
        cluster.create(resource, metadata["name"], labels=metadata.get("labels", {}), **obj)
    return Engine(cluster, *yaml.safe_load(example["nodes"].replace("namespace: team", f"namespace: {TEAM}")))


@pytest.mark.parametrize("example", EXAMPLES, ids=[", ".join(STATE.findall(each["states"])[0]) for each in EXAMPLES])
def test_example_comes_to_the_states_under_it(example: dict[str, Any]) -> None:
    found = {node: (outcome.state, outcome.reason or "") for node, outcome in engine_of(example).rest().items()}
    assert found == {node: (state, reason) for node, state, reason in STATE.findall(example["states"])}


def test_graph_of_the_page_compiles() -> None:
    [block] = re.findall(r"```yaml graph\n(.*?)```", TEXT, re.DOTALL)
    graph: JsonObject = yaml.safe_load(block)
    assert (graph["apiVersion"], graph["kind"]) == (GRAPH.api_version, GRAPH.kind)
    assert [node.id for node in compile_graph(graph["spec"]).nodes] == ["settings"]


def test_every_example_and_every_word_is_there() -> None:
    assert len(EXAMPLES) == TEXT.count("```yaml\n")
    nodes = [node for example in EXAMPLES for node in yaml.safe_load(example["nodes"])]
    assert {word for node in nodes for word in node} == WORDS
