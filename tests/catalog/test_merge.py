"""The rules of the merge: classes, parameters, references, and the values of YAML."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.values import Node
from kardinal.catalog.worker.hierarchy import merge, origin
from tests.catalog.layouts import failed_merge, lay_out, merge_one, parameters_of


def appending(**included: str) -> dict[str, str]:
    """Return a class for each name, which appends its own name to the list `order` and includes the named classes."""
    return {
        f"{name.replace('__', '/')}.yml": f"classes: [{classes}]\nparameters: {{order: [{name}]}}"
        for name, classes in included.items()
    }


def order(root: Path, classes: dict[str, str], *included: str) -> list[str]:
    return list(merge_one(root, classes, included).parameters["order"])


def test_an_included_class_comes_before_its_includer_depth_first(tmp_path: Path) -> None:
    classes = appending(a="b, c", b="d", c="", d="", e="")
    assert order(tmp_path, classes, "a", "e") == ["d", "b", "c", "a", "e"]


def test_a_class_is_merged_once_at_its_first_place(tmp_path: Path) -> None:
    assert order(tmp_path, appending(a="c", b="c", c=""), "a", "b", "c") == ["c", "a", "b"]


def test_the_node_comes_after_its_classes(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  {a: 1, b: 1}", b=2) == {"a": 1, "b": 2}


@pytest.mark.parametrize("file", ["a/b.yml", "a/b.yaml", "a/b/init.yml"])
def test_a_class_has_one_of_three_files(tmp_path: Path, file: str) -> None:
    merged = merge_one(tmp_path, {file: "parameters: {x: 1}"}, ["a.b"])
    assert merged.classes == ("a.b",)
    assert merged.parameters["x"] == 1


@pytest.mark.parametrize("other", ["a/b.yaml", "a/b/init.yml"])
def test_two_files_of_a_class_collide(tmp_path: Path, other: str) -> None:
    error = failed_merge(tmp_path, {"a/b.yml": "{}", other: "{}"}, ["a.b"])
    assert error.kind == "invalid"
    assert "inventory/classes/a/b.yml" in str(error)
    assert f"inventory/classes/{other}" in str(error)
    assert error.remedy == "Remove one of them"


def test_a_relative_class_climbs_from_the_name_of_its_includer(tmp_path: Path) -> None:
    classes = {
        "a/b.yml": "classes: [.c, ..d]",
        "a/c.yml": "parameters: {x: a.c}",
        "d.yml": "parameters: {y: d}",
    }
    merged = merge_one(tmp_path, classes, ["a.b"])
    assert merged.classes == ("a.c", "d", "a.b")


def test_a_relative_class_climbs_from_the_name_in_init_too(tmp_path: Path) -> None:
    classes = {
        "a/b/init.yml": "classes: [.c]",
        "a/c.yml": "parameters: {x: beside}",
        "a/b/c.yml": "parameters: {x: below}",
    }
    assert merge_one(tmp_path, classes, ["a.b"]).parameters["x"] == "beside"


def test_the_name_of_a_class_has_references_to_what_is_merged_so_far(tmp_path: Path) -> None:
    classes = {
        "facts.yml": "parameters: {facts: {cloud: exo}}",
        "later.yml": "parameters: {facts: {cloud: aws}}",
        "cloud/exo.yml": "parameters: {on: exo}",
        "cloud/aws.yml": "parameters: {on: aws}",
    }
    assert merge_one(tmp_path, classes, ["facts", "cloud.${facts:cloud}", "later"]).parameters["on"] == "exo"


def test_a_missing_class_counts_as_empty_if_it_is_tolerated(tmp_path: Path) -> None:
    merged = merge_one(tmp_path, {"a.yml": "parameters: {x: 1}"}, ["pkg.none", "a"], tolerate_missing=True)
    assert merged.parameters["x"] == 1


def test_a_mapping_is_merged_into_a_mapping_at_every_depth(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  m: {a: {b: 1, c: 1}}", "  m: {a: {c: 2, d: 2}}") == {
        "m": {"a": {"b": 1, "c": 2, "d": 2}}
    }


def test_a_list_is_appended_with_its_duplicates(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  l: [1, {a: 1}]", "  l: [1, {a: 1}]") == {"l": [1, {"a": 1}, 1, {"a": 1}]}


def test_a_scalar_replaces_a_scalar(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  {a: 1, b: x}", "  {a: y, b: true}") == {"a": "y", "b": True}


@pytest.mark.parametrize("value", [{"x": 1}, [1], 1, "text"])
def test_null_replaces_anything_and_is_replaced_by_anything(tmp_path: Path, value: Any) -> None:
    written = json.dumps(value)
    assert parameters_of(tmp_path, f"  a: {written}\n  b: null", f"  a: null\n  b: {written}") == {
        "a": None,
        "b": value,
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{x: 1}", "[1]", "a list cannot be merged over a mapping"),
        ("{x: 1}", "1", "one value cannot be merged over a mapping"),
        ("[1]", "{x: 1}", "a mapping cannot be merged over a list"),
        ("[1]", "text", "one value cannot be merged over a list"),
        ("1", "{x: 1}", "a mapping cannot be merged over one value"),
        ("true", "[1]", "a list cannot be merged over one value"),
    ],
)
def test_a_value_of_another_kind_is_an_error_with_its_path(tmp_path: Path, old: str, new: str, said: str) -> None:
    classes = {"a.yml": f"parameters: {{p: {{q: {old}}}}}", "b.yml": f"parameters: {{p: {{q: {new}}}}}"}
    error = failed_merge(tmp_path, classes, ["a", "b"])
    assert error.kind == "invalid"
    assert error.where.parameter == "p.q"
    assert error.where.file == "inventory/classes/b.yml"
    assert said in str(error)
    assert "~q" in error.remedy


@pytest.mark.parametrize("value", ["{y: 2}", "[2]", "2"])
def test_a_tilde_replaces_a_value_of_any_kind(tmp_path: Path, value: str) -> None:
    later = f"  ~m: {value}\n  ~l: {value}\n  ~s: {value}"
    replaced = {"{y: 2}": {"y": 2}, "[2]": [2], "2": 2}[value]
    assert parameters_of(tmp_path, "  m: {x: 1}\n  l: [1]\n  s: 1", later) == {
        "m": replaced,
        "l": replaced,
        "s": replaced,
    }


def test_a_tilde_replaces_below_the_top_and_where_nothing_was(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  a: {b: {x: 1}, c: 1}", "  a: {~b: {y: 1}, ~d: 1}") == {
        "a": {"b": {"y": 1}, "c": 1, "d": 1}
    }


@pytest.mark.parametrize("later", ["k: 2", "~k: 2", "=k: 2"])
def test_a_constant_cannot_be_set_again(tmp_path: Path, later: str) -> None:
    classes = {"a.yml": "parameters: {p: {=k: 1}}", "b.yml": f"parameters: {{p: {{{later}}}}}"}
    error = failed_merge(tmp_path, classes, ["a", "b"])
    assert error.where.file == "inventory/classes/b.yml"
    assert error.where.parameter == "p.k"
    assert "class a makes p.k a constant" in str(error)


def test_an_equal_sign_is_no_part_of_the_key(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  k: 1", "  =k: 2") == {"k": 2}


def test_applications_are_a_list_without_duplicates(tmp_path: Path) -> None:
    classes = {"a.yml": "applications: [y, x, y]", "b.yml": "applications: [x, z]"}
    assert merge_one(tmp_path, classes, ["a", "b"]).applications == ("y", "x", "z")


def test_a_tilde_removes_an_earlier_application(tmp_path: Path) -> None:
    classes = {"a.yml": "applications: [x, y]", "b.yml": "applications: [~x]"}
    assert merge_one(tmp_path, classes, ["a", "b"]).applications == ("y",)


def test_a_tilde_without_an_application_takes_the_next_one(tmp_path: Path) -> None:
    classes = {"a.yml": "applications: [~x]", "b.yml": "applications: [x, y]", "c.yml": "applications: [x]"}
    assert merge_one(tmp_path, classes, ["a", "b"]).applications == ("y",)
    assert merge_one(tmp_path, classes, ["a", "b", "c"]).applications == ("y", "x")


def test_a_reference_that_is_the_whole_string_keeps_the_type(tmp_path: Path) -> None:
    values = parameters_of(tmp_path, "  {a: 1, b: {c: [true, null]}}", x="${a}", y="${b}", z="${b:c}")
    assert (values["x"], values["y"], values["z"]) == (1, {"c": [True, None]}, [True, None])


def test_a_reference_inside_text_is_a_text(tmp_path: Path) -> None:
    values = parameters_of(
        tmp_path, "  {i: 1, f: 1.5, t: true, n: null, s: s, l: [1, x]}", v="${i} ${f} ${t} ${n} ${s}"
    )
    assert values["v"] == "1 1.5 True null s"


def test_a_mapping_inside_text_has_sorted_keys(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  m: {b: x, a: [y], c: {}}", v="-${m}")["v"] == '-{"a":["y"],"b":"x","c":{}}'


def test_a_reference_may_hold_references(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  {key: b, b: {c: 1}}", v="${${key}:c}", w="-${${key}:c}-") == {
        "key": "b",
        "b": {"c": 1},
        "v": 1,
        "w": "-1-",
    }


def test_a_reference_to_a_mapping_is_merged_with_what_follows(tmp_path: Path) -> None:
    values = parameters_of(tmp_path, "  a: {x: 1}\n  b: ${a}", "  b: {y: 2}\n  a: {z: 3}")
    assert values["b"] == {"x": 1, "y": 2, "z": 3}


def test_a_reference_to_a_list_is_merged_with_what_follows(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  a: [1]\n  b: ${a}", "  b: [2]\n  a: [3]")["b"] == [1, 3, 2]


def test_a_reference_over_a_mapping_is_merged_into_it(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  a: {x: 1}\n  r: {y: 2}", "  a: ${r}")["a"] == {"x": 1, "y": 2}


def test_a_reference_has_a_default(tmp_path: Path) -> None:
    values = parameters_of(tmp_path, "  a: x", v="${no:such::y}", w="${no::${a}}", there="${a::y}")
    assert values == {"a": "x", "v": "y", "w": "x", "there": "x"}


def test_the_default_of_a_reference_is_yaml(tmp_path: Path) -> None:
    values = parameters_of(tmp_path, "  {}", number="${no::1}", nothing="${no::}", l="${no::[x]}", w="${no::yes}")
    assert values == {"number": 1, "nothing": None, "l": ["x"], "w": "yes"}


def test_a_reference_is_escaped_by_a_backslash(tmp_path: Path) -> None:
    values = parameters_of(tmp_path, "  a: x", one=r"\${a}", two=r"\\${a}")
    assert (values["one"], values["two"]) == ("${a}", "\\x")


def test_keys_are_never_resolved(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  {a: x, '${a}': 1}") == {"a": "x", "${a}": 1}


def test_plain_scalars_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    values = parameters_of(tmp_path, "  {a: yes, b: off, c: 010, d: 0o17, e: 0x1f, f: 1_000, g: 1:59, h: 2001-01-01}")
    assert values == {
        "a": "yes",
        "b": "off",
        "c": "010",
        "d": 15,
        "e": 31,
        "f": "1_000",
        "g": "1:59",
        "h": "2001-01-01",
    }


def test_keys_are_texts_as_in_json(tmp_path: Path) -> None:
    assert parameters_of(tmp_path, "  {2: a, true: b, null: c, 1.5: d}") == {
        "2": "a",
        "true": "b",
        "null": "c",
        "1.5": "d",
    }


def test_strings_of_a_node_arrive_as_they_are(tmp_path: Path) -> None:
    text = "é 😀 \u007f \u0085 \u2028 \ufeff \x00 \t \" ' \\n"
    assert parameters_of(tmp_path, text=text) == {"text": text}


def test_keys_are_sorted_at_every_depth(tmp_path: Path) -> None:
    merged = merge_one(tmp_path, {"a.yml": "parameters: {z: 1, m: [{d: 1, c: 1}], a: {y: 1, x: 1}}"}, ["a"])
    assert list(merged.parameters) == ["_reclass_", "a", "m", "z"]
    assert list(merged.parameters["a"]) == ["x", "y"]
    assert list(merged.parameters["m"][0]) == ["c", "d"]


def test_every_process_merges_to_the_same_bytes(tmp_path: Path) -> None:
    keys = "".join(f"  k{number}: {{a{number}: 1, b: 'x-${{m}}'}}\n" for number in range(20))
    lay_out(tmp_path, {"a.yml": f"applications: [c, b, a]\nparameters:\n  m: {{y: 1, x: 1, z: 1}}\n{keys}"})
    program = (
        "import pathlib, sys\n"
        "from kardinal.catalog.values import Node\n"
        "from kardinal.catalog.worker.hierarchy import merge\n"
        "print(merge(pathlib.Path(sys.argv[1]), {'n': Node(('a',), {})}, tolerate_missing=False))"
    )
    results = {
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=True, text=True
        ).stdout
        for _ in range(3)
    }
    assert len(results) == 1


def test_nodes_are_merged_together(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"a.yml": "parameters: {x: '${own}'}"})
    merged = merge(root, {name: Node(("a",), {"own": name}) for name in ("n1", "n-2", "n3")}, tolerate_missing=False)
    assert {name: node.parameters["x"] for name, node in merged.items()} == {"n1": "n1", "n-2": "n-2", "n3": "n3"}


def test_a_merge_leaves_no_files(tmp_path: Path) -> None:
    merge_one(tmp_path, {"a.yml": "{}"}, ["a"])
    assert [path.name for path in (tmp_path / "inventory").iterdir()] == ["classes"]


def test_origin_names_the_classes_that_set_a_parameter_in_order(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {
            "defaults.yml": "parameters: {nginx: {replicas: 1, image: x}}",
            "common.yml": "classes: ['tenants.${tenant}']\nparameters: {nginx: {~replicas: 010}}",
            "tenants/acme.yml": "parameters: {nginx: '${base}'}",
            "other.yml": "parameters: {nginx: {image: y}}",
            "tenant.yml": "parameters: {tenant: acme}",
        },
    )
    node = Node(("defaults", "tenant", "common", "other"), {"nginx": {"replicas": 3}})
    assert origin(root, node, "nginx.replicas") == [
        ("defaults", 1),
        ("tenants.acme", "${base}"),
        ("common", "010"),
        ("(node)", 3),
    ]


def test_origin_finds_keys_with_dots(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"a.yml": "parameters: {labels: {example.com/team: x}}"})
    assert origin(root, Node(("a",), {}), "labels.example.com/team") == [("a", "x")]
