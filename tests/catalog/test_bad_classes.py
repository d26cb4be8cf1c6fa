"""Wrong hierarchies: each error has its kind, its place and its remedy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Node
from kardinal.catalog.worker.hierarchy import merge, origin
from tests.catalog.layouts import failed_merge, lay_out, merge_one

AT = "inventory/classes/"


def failed(root: Path, text: str | bytes, parameters: dict[str, Any] | None = None) -> CatalogError:
    """Return the error of a merge with one class `c`."""
    return failed_merge(root, {"c.yml": text}, ["c"], parameters)


def test_an_unknown_reference_names_both_paths(tmp_path: Path) -> None:
    error = failed(tmp_path, "parameters: {nginx: {image: 'x-${images:nginx}'}}")
    assert (error.kind, error.where.file, error.where.parameter) == ("invalid", f"{AT}c.yml", "nginx.image")
    assert "${images:nginx}" in error.message
    assert "images.nginx" in error.remedy
    assert "${images:nginx::DEFAULT}" in error.remedy


def test_an_unknown_reference_is_placed_in_the_class_that_has_it(tmp_path: Path) -> None:
    classes = {"a.yml": "parameters: {m: '${no}'}", "b.yml": "parameters: {m: {x: 1}}"}
    assert failed_merge(tmp_path, classes, ["a", "b"]).where.file == f"{AT}a.yml"


def test_a_reference_through_a_value_names_it(tmp_path: Path) -> None:
    error = failed(tmp_path, "parameters: {a: 1, b: '${a:x}'}")
    assert (error.kind, error.where.parameter) == ("invalid", "b")
    assert "${a:x}" in error.message


def test_a_loop_names_all_paths_in_order(tmp_path: Path) -> None:
    error = failed(tmp_path, "parameters: {z: {k: '${a}'}, a: '${m}', m: '${z:k}'}")
    assert (error.kind, error.where.file) == ("invalid", f"{AT}c.yml")
    assert "${a}, ${m}, ${z:k}" in error.message
    assert error.remedy


@pytest.mark.parametrize("text", ["${b", "${}", "${a:${b}"])
def test_a_reference_that_is_not_closed_is_shown(tmp_path: Path, text: str) -> None:
    error = failed(tmp_path, f"parameters: {{a: '{text}'}}")
    assert (error.kind, error.where.file) == ("invalid", f"{AT}c.yml")
    assert text in error.message
    assert r"\${" in error.remedy


def test_a_default_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    error = failed(tmp_path, "parameters: {a: '${b::[}'}")
    assert (error.kind, error.where.file, error.where.parameter) == ("invalid", f"{AT}c.yml", "a")


def test_references_in_references_are_bounded(tmp_path: Path) -> None:
    error = failed(tmp_path, "{}", {"a": "${" * 3000 + "a" + "}" * 3000})
    assert (error.kind, error.where.parameter) == ("invalid", "a")


def test_a_class_of_an_undefined_fact_is_named(tmp_path: Path) -> None:
    error = failed(tmp_path, "classes: ['region.${facts:region}']")
    assert (error.kind, error.where.file) == ("invalid", f"{AT}c.yml")
    assert "${facts:region}" in error.message
    assert "facts" in error.remedy


def test_a_missing_class_names_its_includer_and_the_nearest(tmp_path: Path) -> None:
    classes = {"global/commodore.yml": "classes: [global.comon]", "global/common.yml": "{}"}
    error = failed_merge(tmp_path, classes, ["global.commodore"])
    assert (error.kind, error.where.file) == ("invalid", f"{AT}global/commodore.yml")
    assert "global.comon" in error.message
    assert error.remedy == "Did you mean global.common?"


def test_a_missing_class_without_a_near_one_names_the_file(tmp_path: Path) -> None:
    assert "t-acme/c-one.yml" in failed_merge(tmp_path, {}, ["t-acme.c-one"]).remedy


def test_a_class_that_is_a_directory_is_told(tmp_path: Path) -> None:
    error = failed_merge(tmp_path, {"a/b/c.yml": "{}"}, ["a.b"])
    assert "a.b is a directory" in error.message
    assert "a/b/init.yml" in error.remedy


@pytest.mark.parametrize("name", ["../secrets", "/etc/passwd", "a/../../x", "..x", "c/d"])
def test_a_class_cannot_leave_the_classes(tmp_path: Path, name: str) -> None:
    (tmp_path / "secrets.yml").write_text("parameters: {stolen: 1}")
    assert failed_merge(tmp_path, {"c.yml": f"classes: ['{name}']"}, ["c"]).kind == "invalid"


@pytest.mark.parametrize("circle", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_classes_that_include_each_other_are_named(tmp_path: Path, circle: list[str]) -> None:
    following = dict(zip(circle, [*circle[1:], circle[0]], strict=True))
    classes = {f"{name}.yml": f"classes: [{after}]" for name, after in following.items()}
    error = failed_merge(tmp_path, classes, ["a"], walk_first=True)
    assert (error.kind, error.where.file) == ("invalid", f"{AT}{circle[-1]}.yml")
    assert " → ".join([*circle, "a"]) in error.message


def test_a_class_that_includes_itself_by_a_reference_is_named(tmp_path: Path) -> None:
    classes = {"a.yml": "classes: [b, '${next}']", "b.yml": "parameters: {name: a, next: '${name}'}"}
    assert "a → a" in failed_merge(tmp_path, classes, ["a"], walk_first=True).message


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("parameters:\n  a: 1\n  a: 2\n", "a", 2),
        ("parameters:\n  x:\n    - b: 1\n      b: 2\n", "b", 3),
        ("parameters:\n  a: 1\n  'a': 2\n", "a", 2),
    ],
)
def test_a_duplicate_key_has_its_line(tmp_path: Path, text: str, key: str, line: int) -> None:
    error = failed(tmp_path, text)
    assert (error.kind, error.where.file, error.where.line) == ("invalid", f"{AT}c.yml", line)
    assert f"key {key} " in error.message


def test_duplicate_parameters_of_a_class_are_an_error(tmp_path: Path) -> None:
    assert "parameters is there twice" in failed(tmp_path, "parameters: {a: 1}\nparameters: {b: 1}").message


def test_a_key_that_is_constant_and_set_in_one_class_is_an_error(tmp_path: Path) -> None:
    error = failed(tmp_path, "parameters: {=k: 1, k: 2}")
    assert (error.kind, error.where.parameter) == ("invalid", "k")


BOMB = "parameters:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


def test_aliases_that_multiply_are_a_limit(tmp_path: Path) -> None:
    error = failed(tmp_path, BOMB)
    assert (error.kind, error.where.file) == ("limit", f"{AT}c.yml")


@pytest.mark.parametrize("text", ["parameters: {a: &a {b: *a}}", "parameters: {a: " + "[" * 500 + "]" * 500 + "}"])
def test_endless_and_deep_values_are_errors(tmp_path: Path, text: str) -> None:
    error = failed(tmp_path, text)
    assert error.where.file == f"{AT}c.yml"


def test_a_file_of_more_than_5_mb_is_a_limit(tmp_path: Path) -> None:
    error = failed(tmp_path, "parameters: {a: '" + "x" * 5_000_000 + "'}")
    assert (error.kind, error.where.file) == ("limit", f"{AT}c.yml")
    assert "5 MB" in error.message


def test_a_large_file_that_no_class_includes_is_no_error(tmp_path: Path) -> None:
    assert merge_one(tmp_path, {"c.yml": "parameters: {a: 1}", "d.yml": "x" * 5_000_001}, ["c"]).parameters["a"] == 1


def test_a_tab_has_its_line_and_remedy(tmp_path: Path) -> None:
    error = failed(tmp_path, "parameters:\n\ta: 1\n")
    assert (error.kind, error.where.file, error.where.line) == ("invalid", f"{AT}c.yml", 2)
    assert "tabs" in error.remedy


@pytest.mark.parametrize("text", ["[1]", "text", "classes: x", "parameters: [1]"])
def test_a_file_that_is_no_class_is_an_error(tmp_path: Path, text: str) -> None:
    error = failed(tmp_path, text)
    assert (error.kind, error.where.file) == ("invalid", f"{AT}c.yml")


@pytest.mark.parametrize("text", ["parameters: {a: !foo x}", "parameters: {a: 12345678901234567890123}", "{}\n---\n{}"])
def test_values_that_reclass_cannot_hold_are_errors(tmp_path: Path, text: str) -> None:
    error = failed(tmp_path, text)
    assert (error.kind, error.where.file) == ("invalid", f"{AT}c.yml")


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
def test_numbers_that_json_lacks_are_errors(tmp_path: Path, number: str) -> None:
    error = failed(tmp_path, f"parameters: {{a: {{b: [{number}]}}}}")
    assert (error.kind, error.where.parameter) == ("invalid", "a.b")


def test_keys_that_are_one_text_are_an_error(tmp_path: Path) -> None:
    assert failed(tmp_path, "parameters: {a: {2: x, '2': y}}").where.parameter == "a"


def test_latin_1_has_its_line(tmp_path: Path) -> None:
    error = failed(tmp_path, b"parameters:\n  a: h\xe9\n")
    assert (error.kind, error.where.file, error.where.line) == ("invalid", f"{AT}c.yml", 2)
    assert "UTF-8" in error.remedy


@pytest.mark.parametrize("text", [b"\xef\xbb\xbfparameters: {a: x}", b"parameters:\r\n  a: x\r\n"])
def test_a_bom_and_windows_line_ends_are_read(tmp_path: Path, text: bytes) -> None:
    assert merge_one(tmp_path, {"c.yml": text}, ["c"]).parameters["a"] == "x"
    assert origin(tmp_path, Node(("c",), {}), "a") == [("c", "x")]


@pytest.mark.parametrize("query", ["$[ exports:port ]", "x $[ if exports:a == 1 ]", "$[ +IgnoreErrors exports:a ]"])
def test_an_inventory_query_is_refused(tmp_path: Path, query: str) -> None:
    error = failed(tmp_path, f"parameters: {{a: {{b: '{query}'}}}}")
    assert (error.kind, error.where.file, error.where.parameter) == ("refused", f"{AT}c.yml", "a.b")


@pytest.mark.parametrize("text", ["$[ 1 + 2 ]", r"\$[ exports:port ]", "price$[x]"])
def test_other_text_with_a_dollar_and_a_bracket_is_text(tmp_path: Path, text: str) -> None:
    assert "$[" in merge_one(tmp_path, {"c.yml": f"parameters: {{a: '{text}'}}"}, ["c"]).parameters["a"]


def linked_layout(root: Path, tree: Mapping[str, str], links: Mapping[str, str]) -> Path:
    """Return a layout in which `global` is a link to a tree that has links of its own."""
    directory = root / "trees/one"
    for path, content in tree.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(content)
    for path, target in links.items():
        (directory / path).symlink_to(target)
    layout = lay_out(root / "layout", {})
    (layout / "inventory/classes/global").symlink_to(directory)
    return layout


@pytest.mark.parametrize(
    ("links", "name"),
    [({"b.yml": "a.yml"}, "global.b"), ({"b.yml": "/nowhere"}, "global.b"), ({"d": "."}, "global.d.a")],
)
def test_a_class_that_is_a_link_is_refused(tmp_path: Path, links: dict[str, str], name: str) -> None:
    layout = linked_layout(tmp_path, {"a.yml": "{}"}, links)
    with pytest.raises(CatalogError) as failed:
        merge(layout, {"n": Node((name,), {})}, tolerate_missing=False)
    assert failed.value.kind == "refused"
    assert name in str(failed.value)
    assert "link" in str(failed.value)


def test_a_link_that_is_no_class_of_the_node_is_no_error(tmp_path: Path) -> None:
    layout = linked_layout(tmp_path, {"a.yml": "parameters: {x: 1}", "e/f": ""}, {"d": "e", "b.yml": "a.yml"})
    merged = merge(layout, {"n": Node(("global.a",), {})}, tolerate_missing=False)
    assert merged["n"].parameters["x"] == 1


@pytest.mark.parametrize("links", [{"d": "."}, {"b.yml": "/nowhere"}])
def test_a_link_that_reclass_cannot_follow_is_told(tmp_path: Path, links: dict[str, str]) -> None:
    layout = linked_layout(tmp_path, {"a.yml": "{}"}, links)
    with pytest.raises(CatalogError) as failed:
        merge(layout, {"n": Node(("global.a",), {})}, tolerate_missing=False)
    assert (failed.value.kind, failed.value.where.file) == ("refused", f"{AT}global/{next(iter(links))}")


def test_the_first_node_by_name_is_told(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {})
    nodes = {f"n{number}": Node((), {"a": f"${{no{number}}}"}) for number in range(100)}
    for _ in range(3):
        with pytest.raises(CatalogError, match="no0"):
            merge(root, nodes, tolerate_missing=False)
