"""Compiling a Graph, and the problems of one that does not compile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal.cel.scanner import Expression, Unscannable, scan
from kardinal.graph import GraphError, compile_graph
from kardinal.objects import JsonObject
from tests.graph.cluster import config

REF: JsonObject = {"id": "r", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}}


def problems(*nodes: JsonObject, **spec: Any) -> list[tuple[str, str, str]]:
    """Reason, path and message of everything that is wrong."""
    with pytest.raises(GraphError) as caught:
        compile_graph({"nodes": list(nodes), **spec})
    return [(problem.reason, problem.path, problem.message) for problem in caught.value.problems]


FINALIZED: JsonObject = {"name": "a", "finalizers": ["kardinal.io/hold"]}
OWNED: JsonObject = {"name": "a", "ownerReferences": []}
MARKED: JsonObject = {"name": "a", "labels": {"a.g.team.internal.kro.run/type": "template"}}


def body(**changes: Any) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **changes}


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("plain", ["plain"]),
        ("", [""]),
        ("${a.b}", [Expression("a.b")]),
        ("p-${a}-${b}-s", ["p-", Expression("a"), "-", Expression("b"), "-s"]),
        ("$${a.x}", ["${a.x}"]),
        ("$$${a.x}", ["$${a.x}"]),
        ("$${a} ${b}", ["${a} ", Expression("b")]),
        ("${'}'}", [Expression("'}'")]),
        ('${"{"}', [Expression('"{"')]),
        ('${{"a": {"b": 1}}}', [Expression('{"a": {"b": 1}}')]),
        ("${'''a'}'''}", [Expression("'''a'}'''")]),
        (r"${'\'}'}", [Expression(r"'\'}'")]),
        (r"${r'\' + '}'}", [Expression(r"r'\' + '}'")]),
        ("${'${x}'}", [Expression("'${x}'")]),
        ("costs $5 {really}", ["costs $5 {really}"]),
    ],
)
def test_expressions_are_found_by_the_rules_of_the_language(text: str, segments: list[object]) -> None:
    assert scan(text) == segments


@pytest.mark.parametrize("text", ["${a", "${'a}", "${a ${b}}", "${${x}}", "${a + {'b': 1}"])
def test_a_text_whose_expressions_do_not_end_is_refused(text: str) -> None:
    with pytest.raises(Unscannable):
        scan(text)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(body=st.text("ab \n${}\"'/\\", max_size=12))
def test_text_that_is_one_expression_is_read_as_one_in_a_longer_text(body: str) -> None:
    def scanned(text: str) -> object:
        try:
            return scan(text)
        except Unscannable as error:
            return str(error)

    whole = scanned(f"${{{body}}}")
    longer = scanned(f"x ${{{body}}}")
    assert longer == (["x ", *whole] if isinstance(whole, list) else whole)


def test_nodes_stand_in_the_order_of_their_data_else_as_declared() -> None:
    graph = compile_graph(
        {
            "nodes": [
                config("c", {"x": "${b.data.x}"}),
                config("z"),
                config("b", {"x": "1"}, readyWhen=["${late.data.x == b.data.x}"]),
                config("late"),
                config("e", includeWhen=["${c.data.x == '1'}"]),
            ]
        }
    )
    assert [node.id for node in graph.nodes] == ["z", "late", "b", "c", "e"]
    assert [node.layer for node in graph.nodes] == [0, 0, 0, 1, 2]


def test_a_condition_on_the_node_itself_is_an_outflow_gate_and_any_other_an_inflow_gate() -> None:
    graph = compile_graph({"nodes": [config("a"), config("b", propagateWhen=["${b.status.ok}", "${a.status.ok}"])]})
    node = graph.by_label["b"]
    assert [condition.source for condition in node.outflow] == ["b.status.ok"]
    assert [condition.source for condition in node.inflow] == ["a.status.ok"]
    assert node.hard == ("a",)


def test_a_soft_reference_orders_but_a_bare_use_beside_it_counts_more() -> None:
    soft = config("b", {"x": "${a.?status.?x.orValue(1)}"})
    assert compile_graph({"nodes": [config("a"), soft]}).by_label["b"].soft == ("a",)
    both = config("b", {"x": "${a.?status.?x.orValue(1)}", "y": "${a.data}"})
    node = compile_graph({"nodes": [config("a"), both]}).by_label["b"]
    assert (node.hard, node.soft) == (("a",), ())


def test_the_variable_of_a_comprehension_is_no_node() -> None:
    a = config("a", {"l": [1]})
    b = config("b", {"x": "${a.data.l.filter(b, b > 0)}"})
    assert compile_graph({"nodes": [a, b]}).by_label["b"].hard == ("a",)


def test_reordering_nodes_is_no_change() -> None:
    a = config("a")
    b = config("b", {"x": "${a.data}"})
    assert compile_graph({"nodes": [a, b]}).hash == compile_graph({"nodes": [b, a]}).hash
    assert compile_graph({"nodes": [a]}).hash != compile_graph({"nodes": [a, b]}).hash


def test_a_cycle_is_named_with_its_path() -> None:
    found = problems(config("a", {"x": "${b.data}"}), config("b", {"x": "${a.data}"}), config("c"))
    message = "the nodes depend on each other in a cycle: a -> b -> a"
    assert found == [("DependencyError", "spec.nodes[0]", message)]


def test_a_cycle_through_conditions_is_found_too() -> None:
    a = config("a", includeWhen=["${c.data.x == '1'}"])
    b = config("b", propagateWhen=["${a.status.ok}"])
    (found,) = problems(a, b, config("c", {"x": "${b.data.x}"}))
    assert found[2].endswith("a -> c -> b -> a")


def test_a_cycle_of_ready_conditions_is_none() -> None:
    a = config("a", readyWhen=["${b.status.ok && a.status.ok}"])
    b = config("b", {"x": "${a.metadata.name}"})
    assert [node.id for node in compile_graph({"nodes": [b, a]}).nodes] == ["a", "b"]


def test_an_unknown_name_is_refused_with_place_and_suggestion() -> None:
    found = problems(config("fooBar"), config("b", {"deep": [{"x": "${foobar.x}"}]}))
    message = "unknown identifier 'foobar' (did you mean fooBar?)"
    assert found == [("ExpressionError", "spec.nodes[1].template.data.deep[0].x", message)]


@pytest.mark.parametrize(
    ("identifier", "message"),
    [
        (None, "a node needs an id"),
        ("", "a node needs an id"),
        ("my-app", "'my-app' is no id"),
        ("a_b", "'a_b' is no id"),
        ("x" * 64, "is no id"),
        ("1a", "'1a' is no id"),
        ("true", "'true' is a reserved word"),
        ("self", "'self' is a reserved word"),
        ("Item", "'Item' is a reserved word"),
        ("R", "'R' is already the id of spec.nodes[0] (case does not count)"),
        ("r", "'r' is already the id of spec.nodes[0] (case does not count)"),
    ],
)
def test_ids_are_checked(identifier: object, message: str) -> None:
    (found,) = problems(REF, {**REF, "id": identifier})
    assert found[:2] == ("DeclarationError", "spec.nodes[1].id")
    assert message in found[2]


@pytest.mark.parametrize(
    ("node", "path", "message"),
    [
        ({"template": body(), "ref": REF["ref"]}, "", "exactly one of template, patch, ref, watch and def"),
        ({}, "", "needs one of template, patch, ref, watch and def"),
        ({"template": body(), "propageWhen": []}, ".propageWhen", "unknown word (did you mean propagateWhen?)"),
        ({"patch": body(metadata={})}, ".patch.metadata.name", "a patch needs a name"),
        ({"patch": body(metadata=FINALIZED)}, ".patch.metadata", "a patch sets labels and annotations there"),
        ({"patch": body(metadata=OWNED)}, ".patch.metadata", "a patch sets labels and annotations there"),
        ({"patch": body(metadata=MARKED)}, ".patch.metadata.labels", "belong to the engine"),
        ({"patch": body(), "lifecycle": {"apply": "Force"}}, ".lifecycle", "is for template"),
        ({"template": body(), "forEach": {}}, ".forEach", "exactly one variable"),
        ({"template": body(), "forEach": {"x": "${[1]}", "y": "${[2]}"}}, ".forEach", "exactly one variable"),
        ({"template": body(), "forEach": [{"x": "${[1]}"}, {"y": "${[2]}"}]}, ".forEach", "exactly one variable"),
        ({"template": body(), "forEach": {"x": [1]}}, ".forEach.x", "an expression that makes a list"),
        ({"template": body(), "forEach": {"for": "${[1]}"}}, ".forEach.for", "cannot be the name of a variable"),
        ({"ref": REF["ref"], "forEach": "${[1]}"}, ".forEach", "is for def and patch and template"),
        ({"template": body(), "lifecycle": {"apply": "Never"}}, ".lifecycle", "{apply: Force} or absent"),
        ({"def": {}, "lifecycle": {"apply": "Force"}}, ".lifecycle", "is for template"),
        ({"template": body(), "dependsOn": "b"}, ".dependsOn", "a list of ids"),
        ({"template": body(), "recheckAfter": "often"}, ".recheckAfter", "is not a duration"),
        ({"template": body(), "recheckAfter": "1ms"}, ".recheckAfter", "at least 5s"),
        ({"template": body(), "timeout": 5}, ".timeout", "is not a duration"),
        ({"ref": "${a}"}, ".ref", "a ref is an object"),
        ({"template": body(), "readyWhen": "${a}"}, ".readyWhen", "must be a list of expressions"),
        ({"template": body(apiVersion="kardinal.io")}, ".template.apiVersion", "needs a literal version"),
        ({"template": body(kind="${a.kind}")}, ".template.kind", "needs a literal kind"),
        ({"template": body(metadata={})}, ".template.metadata.name", "a template needs a name"),
        (
            {"template": body(metadata={"name": "a", "labels": {"internal.kro.run/graph": "x"}})},
            ".template.metadata.labels",
            "belong to the engine",
        ),
        ({"ref": body(metadata={})}, ".ref.metadata.name", "a ref needs a name"),
        ({"ref": body(spec={})}, ".ref", "nothing else"),
        ({"watch": body(selector={})}, ".watch.metadata.name", "use ref for one object"),
        ({"watch": body(metadata={})}, ".watch.selector", "a watch needs one selector"),
    ],
)
def test_a_node_is_exactly_what_the_dialect_knows(node: JsonObject, path: str, message: str) -> None:
    found = problems({"id": "a", **node})
    assert [(reason, where) for reason, where, _ in found] == [("DeclarationError", f"spec.nodes[0]{path}")]
    assert message in found[0][2]


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ({"id": "list", "watch": {"apiVersion": "v1", "kind": "ConfigMap", "selector": {}}}, ".id"),
        ({"id": "map", "def": {}}, ".id"),
        ({"id": "list", "template": body(), "forEach": "${[1]}"}, ".id"),
        ({"id": "a", "template": body(), "forEach": {"string": "${[1]}"}}, ".forEach.string"),
    ],
)
def test_name_that_an_expression_reads_as_a_type_is_refused(node: JsonObject, path: str) -> None:
    [(reason, where, message)] = problems(node)
    assert (reason, where) == ("DeclarationError", f"spec.nodes[0]{path}")
    assert "is the name of a type in expressions" in message


def test_step_of_an_environment_with_the_name_of_a_type_is_read_by_its_fields() -> None:
    graph = compile_graph({"nodes": [config("int"), config("b", {"x": "${int.data.x}"})]})
    assert graph.by_label["b"].hard == ("int",)


def test_words_of_others_are_left_alone() -> None:
    noted = {"id": "a", "template": body(), "x-note": "mine"}
    graph = compile_graph({"nodes": [noted, {"id": "b", "reference": REF["ref"]}]})
    assert [node.id for node in graph.nodes] == ["a", "b"]


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"resources": []}, "spec.resources", "the nodes of a Graph stand in spec.nodes"),
        ({"nodes": {}}, "spec.nodes", "must be a list of nodes"),
        ({"nodes": ["a"]}, "spec.nodes", "must be a list of nodes"),
        ({"nodes": [config(f"n{number}") for number in range(1001)]}, "spec.nodes", "more than 1000 nodes"),
        ({"nodes": [config("a", {"x": "y" * 600_000})]}, "spec.nodes", "larger than 512 KiB"),
    ],
)
def test_the_whole_is_checked_too(spec: JsonObject, path: str, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph(spec)
    assert [(problem.path, problem.message) for problem in caught.value.problems] == [(path, message)]


@pytest.mark.parametrize(
    ("modifiers", "path"),
    [
        ({"propagateWhen": ["${a.b ==}"]}, "propagateWhen[0]"),
        ({"readyWhen": ["${a.status.ok}", "x ${a}"]}, "readyWhen[1]"),
        ({"readyWhen": ["${nope(a)}"]}, "readyWhen[0]"),
        ({"includeWhen": ["${b.ok}"]}, "includeWhen[0]"),
    ],
)
def test_a_wrong_condition_names_its_place(modifiers: JsonObject, path: str) -> None:
    (found,) = problems(config("a", **modifiers))
    assert found[:2] == ("ExpressionError", f"spec.nodes[0].{path}")


def test_a_node_cannot_be_made_from_itself_or_decide_on_itself() -> None:
    body_found, include_found = problems(config("a", {"x": "${a.data.y}"}), config("b", includeWhen=["${b.ok}"]))
    assert body_found == (
        "DependencyError",
        "spec.nodes[0].template.data.x",
        "a node cannot be made from itself: a -> a",
    )
    assert include_found == (
        "DependencyError",
        "spec.nodes[1].includeWhen[0]",
        "a node cannot decide on itself: b -> b",
    )


def test_an_expression_in_a_key_is_refused() -> None:
    assert problems(config("a", {"${x}": "y"})) == [
        ("DeclarationError", "spec.nodes[0].template.data.${x}", "an expression cannot stand in a key")
    ]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph({"nodes": [config("a", {"x": "${1 +}"}), config("b", {"x": "${nope.y}"}), {"id": "c"}]})
    assert len(caught.value.problems) == 3
    assert "spec.nodes[0].template.data.x (node a)" in caught.value.message
    assert "spec.nodes[1].template.data.x (node b)" in caught.value.message


def test_a_long_list_of_mistakes_is_cut() -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph({"nodes": [config(f"n{number}", {"x": "${nope}"}) for number in range(30)]})
    assert caught.value.message.endswith("; and 20 more")
