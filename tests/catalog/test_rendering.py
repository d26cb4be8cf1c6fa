"""Inputs of an instance: which files they write, and what is refused."""

from __future__ import annotations

import pytest

from kardinal.catalog.errors import CatalogError
from tests.catalog.compilations import Compilation, jsonnet_input

BINARY = b"\0\xff\r\n?{vaultkv:a/b}"


def copy_input(*paths: str, **options: object) -> dict[str, object]:
    return {"input_type": "copy", "input_paths": list(paths), "output_path": "web", **options}


def test_jsonnet_writes_a_file_for_each_key(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ a: { x: 1 }, 'sub/b': [{ y: 2 }, { z: 3 }], empty: {} }")
    assert compilation.render(jsonnet_input()).files == {
        "web/a.yaml": b"x: 1\n",
        "web/empty.yaml": b"",
        "web/sub/b.yaml": b"y: 2\n---\nz: 3\n",
    }


def test_jsonnet_list_is_named_by_its_file(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="[{ x: 1 }]")
    assert compilation.render(jsonnet_input()).files == {"web/main.yaml": b"x: 1\n"}


@pytest.mark.parametrize(
    ("output_type", "name", "content"),
    [
        ("yaml", "web/a.txt.yaml", b"x: {}\n"),
        ("yml", "web/a.txt.yml", b"x: {}\n"),
        ("json", "web/a.txt.json", b'{\n  "x": {}\n}'),
        ("auto", "web/a.txt.yaml", b"x: {}\n"),
    ],
)
def test_output_type(compilation: Compilation, output_type: str, name: str, content: bytes) -> None:
    compilation.component(main_jsonnet="{ 'a.txt': { x: {} } }")
    assert compilation.render(jsonnet_input(output_type=output_type)).files == {name: content}


def test_output_type_auto_goes_by_the_extension(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ 'a.json': { x: 1 }, 'b.yml': { x: 1 } }")
    assert compilation.render(jsonnet_input(output_type="auto")).files == {
        "web/a.json": b'{\n  "x": 1\n}',
        "web/b.yml": b"x: 1\n",
    }


def test_plain_output_is_the_text(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ 'a.txt': 'one\\ntwo' }")
    assert compilation.render(jsonnet_input(output_type="plain")).files == {"web/a.txt": b"one\ntwo"}


def test_prune_drops_empty_values(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ a: { x: {}, y: 1 } }")
    assert compilation.render(jsonnet_input(prune=True)).files == {"web/a.yaml": b"y: 1\n"}


def test_text_style_comes_from_the_parameters(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ a: { x: 'a\\nb' } }")
    rendered = compilation.render(jsonnet_input(), parameters={"multiline_string_style": "double-quotes"})
    assert rendered.files == {"web/a.yaml": b'x: "a\\nb"\n'}


def test_copy_keeps_bytes_and_mode(compilation: Compilation) -> None:
    tree = compilation.tree(
        "dependencies/web", {"files/a": b"\0\xff\r\n?{vaultkv:a/b}", "files/sub/run": "#!/bin/sh\n"}
    )
    (tree / "files/sub/run").chmod(0o755)
    rendered = compilation.render(copy_input("dependencies/web/files"), copy_input("web/files/a", output_path="."))
    assert rendered.files == {
        "a": BINARY,
        "web/a": BINARY,
        "web/sub/run": b"#!/bin/sh\n",
    }
    assert rendered.executable == {"web/sub/run"}


def test_patterns_find_sorted_paths(compilation: Compilation) -> None:
    compilation.tree(
        "dependencies/web",
        {"b/x.jsonnet": "{ x: { v: 'b' } }", "a/x.jsonnet": "{ x: { v: 'a' } }", ".c/x.jsonnet": "{ x: 1 }"},
    )
    assert compilation.render(jsonnet_input("*/?.jsonnet")).files == {"web/x.yaml": b"v: b\n"}


def test_missing_path_is_an_error_unless_ignored(compilation: Compilation) -> None:
    compilation.component()
    with pytest.raises(CatalogError, match="nothing at the input path") as raised:
        compilation.render(copy_input("none"))
    assert raised.value.kind == "render"
    assert compilation.render(copy_input("none", ignore_missing=True)).files == {}


def test_base_directory_is_written_privately(compilation: Compilation) -> None:
    compilation.component(
        main_jsonnet="{ v: { x: 1 } }", second_jsonnet="{ o: std.parseYaml(importstr 'made/v.yaml') }"
    )
    rendered = compilation.render(jsonnet_input(output_path="dependencies/web/made"), jsonnet_input("second.jsonnet"))
    assert rendered.files == {"web/o.yaml": b"x: 1\n"}
    assert not (compilation.trees / "dependencies-web/made").exists()


def test_earlier_output_is_an_input(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ v: { x: 1 } }")
    rendered = compilation.render(jsonnet_input(), copy_input("compiled/web/web/v.yaml", output_path="again"))
    assert rendered.files == {"again/v.yaml": b"x: 1\n", "web/v.yaml": b"x: 1\n"}


def test_references_are_replaced_by_tokens(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ o: { v: '?{vaultkv:a/b} and ?{vaultkv:a/b}', list: ['?{vaultkv:c}'] } }")
    tokens = {"?{vaultkv:a/b}": "?{vaultkv:a/b:12345678}", "?{vaultkv:c}": "?{vaultkv:c:87654321}"}
    assert compilation.render(jsonnet_input(), references=tokens).files == {
        "web/o.yaml": b"list:\n  - ?{vaultkv:c:87654321}\nv: ?{vaultkv:a/b:12345678} and ?{vaultkv:a/b:12345678}\n"
    }


def test_reference_in_a_template_alone_is_an_error(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ o: { v: '?{vaultkv:a/b}' } }")
    with pytest.raises(CatalogError, match="in no parameter"):
        compilation.render(jsonnet_input())


@pytest.mark.parametrize("output_path", ["/", "/etc", "..", "../other", "a/../../other", "a\n"])
def test_output_path_outside_is_refused(compilation: Compilation, output_path: str) -> None:
    compilation.component(main_jsonnet="{ a: 1 }")
    with pytest.raises(CatalogError) as raised:
        compilation.render(jsonnet_input(output_path=output_path))
    assert raised.value.kind == "refused"
    assert raised.value.where.file == "class/web.yml"


def test_climbing_output_path_inside_is_allowed(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ a: { x: 1 } }")
    assert compilation.render(jsonnet_input(output_path="a/../b")).files == {"b/a.yaml": b"x: 1\n"}


@pytest.mark.parametrize("key", ["/etc/x", "../x", "../../x", "a/../../../x", "a\\u0000b", "a\\nb"])
def test_key_that_leads_outside_is_refused(compilation: Compilation, key: str) -> None:
    compilation.component(main_jsonnet=f'{{ "{key}": {{ x: 1 }} }}')
    with pytest.raises(CatalogError) as raised:
        compilation.render(jsonnet_input(output_path="."))
    assert raised.value.kind == "refused"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (("a", "A"), "differ only in case"),
        (("\\u00e9", "e\\u0301"), "form of Unicode"),
        (("b.yaml/c", "b"), "is a file, and the directory"),
    ],
)
def test_names_that_clash_are_errors(compilation: Compilation, keys: tuple[str, str], message: str) -> None:
    compilation.component(main_jsonnet=f'{{ "{keys[0]}": {{ x: 1 }}, "{keys[1]}": {{ x: 1 }} }}')
    with pytest.raises(CatalogError, match=message):
        compilation.render(jsonnet_input())


def test_directory_link_out_of_the_tree_is_refused(compilation: Compilation) -> None:
    tree = compilation.tree("dependencies/web", {"files/a": "x"})
    (tree / "files/etc").symlink_to("/etc")
    with pytest.raises(CatalogError, match="leads out of its repository"):
        compilation.render(copy_input("dependencies/web/files"))


@pytest.mark.parametrize("end", ["../files", "missing"])
def test_link_that_never_ends_is_an_error(compilation: Compilation, end: str) -> None:
    tree = compilation.tree("dependencies/web", {"files/a": "x"})
    (tree / "files/b").symlink_to(end)
    with pytest.raises(CatalogError, match="leads nowhere"):
        compilation.render(copy_input("dependencies/web/files"))


def test_number_of_files_is_limited(compilation: Compilation) -> None:
    compilation.tree("dependencies/web", {f"files/{number}": "" for number in range(2_501)})
    with pytest.raises(CatalogError, match="5,000 files"):
        compilation.render(copy_input("dependencies/web/files"), copy_input("web/files"))


@pytest.mark.parametrize(("count", "size", "message"), [(1, (8 << 20) + 1, "8 MiB"), (9, 8 << 20, "64 MiB")])
def test_size_is_limited(compilation: Compilation, count: int, size: int, message: str) -> None:
    compilation.tree("dependencies/web", {f"files/{number}": bytes(size) for number in range(count)})
    with pytest.raises(CatalogError, match=message) as raised:
        compilation.render(copy_input("dependencies/web/files"))
    assert raised.value.kind == "limit"


@pytest.mark.parametrize("input_type", ["cuelang", "external", "kadet", "remove"])
def test_refused_type_names_the_class(compilation: Compilation, input_type: str) -> None:
    compilation.component()
    with pytest.raises(CatalogError) as raised:
        compilation.render(jsonnet_input(input_type=input_type))
    assert raised.value.kind == "refused"
    assert input_type in raised.value.problem
    assert (raised.value.where.file, raised.value.where.parameter) == ("class/web.yml", "kapitan.compile[0]")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (jsonnet_input(input_type="jsonet"), "unknown"),
        (jsonnet_input(input_paths="a"), "list of paths"),
        (jsonnet_input(input_paths=[1]), "list of paths"),
        (jsonnet_input(output_path=None), "output_path"),
        (jsonnet_input(helm_values={}), "'helm_values' is unknown"),
        (jsonnet_input(prune="yes"), "of type str"),
        (jsonnet_input(output_type="toml"), "'toml' is not supported"),
        ({}, "unknown"),
    ],
)
def test_wrong_input_is_an_error(compilation: Compilation, entry: dict[str, object], message: str) -> None:
    compilation.component(main_jsonnet="{}")
    with pytest.raises(CatalogError, match=message) as raised:
        compilation.render(entry)
    assert raised.value.remedy


def test_instance_without_inputs_has_no_files(compilation: Compilation) -> None:
    compilation.component()
    assert compilation.render().files == {}


def test_failure_is_left_out_where_the_input_says_so(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="error 'x'", second_jsonnet="{ a: { x: 1 } }")
    rendered = compilation.render(jsonnet_input(continue_on_compile_error=True), jsonnet_input("second.jsonnet"))
    assert rendered.files == {"web/a.yaml": b"x: 1\n"}
    assert "main.jsonnet" in rendered.notices[0]


def test_value_that_is_no_document_is_an_error(compilation: Compilation) -> None:
    compilation.component(main_jsonnet="{ a: 1 }")
    with pytest.raises(CatalogError, match="type int"):
        compilation.render(jsonnet_input())
