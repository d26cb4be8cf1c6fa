"""`kardinal export graph`: a Graph for Mermaid, Graphviz, or a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kardinal.objects import GRAPH, JsonObject
from tests.cli.conftest import Finished
from tests.cli.in_process import InProcess, cli
from tests.graph.cluster import config
from tests.graph.program import graph, start_engine
from tests.support.world import World

__all__ = ["cli"]

NODES = (
    config("dev", propagateWhen=["${dev.status.ok}"]),
    config("prod", {"x": "${dev.data.x}"}, readyWhen=["${late.data.x == 'y'}"]),
    config("late", name="late-${item}", forEach="${['a']}"),
    {"id": "sum", "def": {"n": 1}, "dependsOn": ["prod"]},
)
STATUS = {"nodes": [{"id": "dev", "state": "NotReady"}, {"id": "prod", "state": "Pending"}]}


def export(tmp_path: Path, found: JsonObject | str, *arguments: str) -> Finished:
    """Run the command without a cluster, on a file of this content."""
    text = found if isinstance(found, str) else yaml.safe_dump(found)
    (tmp_path / "graph.yaml").write_text(text)
    return InProcess(Path("/nonexistent"), tmp_path).run("export", "graph", "-f", "graph.yaml", *arguments)


def test_mermaid_shows_states_and_the_kinds_of_edges(tmp_path: Path) -> None:
    done = export(tmp_path, {**graph(*NODES), "status": STATUS})
    assert done.out.splitlines() == [
        "flowchart LR",
        '  n0["dev<br>ConfigMap<br>NotReady"]',
        '  n1["late<br>ConfigMap for each item"]',
        '  n2["prod<br>ConfigMap<br>Pending"]',
        '  n3["sum"]',
        "  n0 ==> n2",
        "  n2 --> n3",
        "  n1 -.-> n2",
    ]


def test_dot_shows_the_same(tmp_path: Path) -> None:
    lines = export(tmp_path, graph(*NODES), "-o", "dot").out.splitlines()
    assert lines[0] == "digraph {"
    assert '  n0 [label="dev\\nConfigMap"];' in lines
    assert "  n0 -> n2 [style=bold];" in lines
    assert "  n1 -> n2 [style=dotted];" in lines


def test_json_has_ids_and_states(tmp_path: Path) -> None:
    drawn = json.loads(export(tmp_path, {**graph(*NODES), "status": STATUS}, "-o", "json").out)
    assert drawn["nodes"][0] == {"id": "dev", "kind": "template", "object": "ConfigMap", "state": "NotReady"}
    assert {"before": "dev", "after": "prod", "kind": "gate"} in drawn["edges"]


def test_hook_is_drawn_after_its_node(tmp_path: Path) -> None:
    reading = config("reading", {"x": "${db.data.x}"}, finalizes="db")
    drawn = json.loads(export(tmp_path, graph(config("db"), config("hook", finalizes="db"), reading), "-o", "json").out)
    assert drawn["edges"] == [
        {"before": "db", "after": "reading", "kind": "data"},
        {"before": "db", "after": "hook", "kind": "order"},
    ]


@pytest.mark.parametrize("output", ["mermaid", "dot"])
def test_a_state_that_is_written_to_break_out_stays_text(tmp_path: Path, output: str) -> None:
    state = 'x"]; click n0 "javascript:alert(1)" <img src=x> #quot; \\'
    found = {**graph(config("a")), "status": {"nodes": [{"id": "a", "state": state}]}}
    (line,) = [each for each in export(tmp_path, found, "-o", output).out.splitlines() if each.startswith("  n0")]
    opening, _, rest = line.partition('"')
    label = rest[: rest.rindex('"')]
    assert opening in ("  n0[", "  n0 [label=")
    assert not label.replace("\\\\", "").replace('\\"', "").count('"')


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("kind: ConfigMap", "has 0 Graphs"),
        ("a: [", "not YAML"),
        (yaml.safe_dump(graph(config("a", {"x": "${nope.x}"}))), "unknown identifier 'nope'"),
    ],
)
def test_a_file_without_a_graph_to_draw_says_why(tmp_path: Path, content: str, said: str) -> None:
    done = export(tmp_path, content)
    assert done.code == 1
    assert said in done.err


async def test_a_graph_of_the_cluster_is_drawn_by_its_name(world: World, cli: InProcess) -> None:
    await start_engine(world)
    await world.apply(graph(config("a"), name="mine"))
    await world.settle()
    assert '["a<br>ConfigMap<br>Ready"]' in (await cli.attempt("export", "graph", "mine")).out
    missing = await cli.attempt("export", "graph", "other")
    assert (missing.code, "there is no Graph other" in missing.err) == (1, True)
    assert (await cli.attempt("export", "graph")).code == 2


def test_lint_names_the_line_of_each_problem_of_a_graph(tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text(
        f"apiVersion: {GRAPH.api_version}\nkind: Graph\nmetadata: {{name: g}}\nspec:\n  nodes:\n"
        "    - id: a\n      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n      propageWhen: []\n"
    )
    done = InProcess(Path("/nonexistent"), tmp_path).run("lint", "-f", "graph.yaml")
    assert done.code == 1
    assert "graph.yaml:8: Graph/g spec.nodes[0].propageWhen: unknown word (did you mean propagateWhen?)" in done.err
