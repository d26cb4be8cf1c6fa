"""Jsonnet: its imports, native functions and libraries, and the ways out of the compilation that are closed."""

from __future__ import annotations

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Merged
from kardinal.catalog.worker.jsonnet import evaluate
from tests.catalog.compilations import Compilation, jsonnet_input


def value_of(compilation: Compilation, template: str, **files: str) -> str:
    """Return the YAML of `template`, whose value is written as one file."""
    compilation.component(main_jsonnet=f"{{ o: {{ v: {template} }} }}", **files)
    return compilation.render(jsonnet_input()).files["web/o.yaml"].decode()


def failure_of(compilation: Compilation, template: str) -> CatalogError:
    compilation.component(main_jsonnet=template)
    with pytest.raises(CatalogError) as raised:
        compilation.render(jsonnet_input())
    return raised.value


def test_imports_beside_the_file_then_below_the_search_paths(compilation: Compilation) -> None:
    compilation.tree("dependencies/lib", {"web-a.libsonnet": "'dependencies'"})
    compilation.tree("vendor/x", {"b.libsonnet": "'vendor'"})
    template = "[import 'c.libsonnet', import 'lib/web-a.libsonnet', import 'x/b.libsonnet', importstr 'd']"
    assert value_of(compilation, template, c_libsonnet="'beside'", d="a\r\nb") == (
        "v:\n  - beside\n  - dependencies\n  - vendor\n  - |-\n    a\n    b\n"
    )


def test_import_climbs_inside_the_compilation(compilation: Compilation) -> None:
    compilation.tree(
        "dependencies/web", {"component/main.jsonnet": "{ o: import '../d.libsonnet' }", "d.libsonnet": "{ a: 1 }"}
    )
    assert compilation.render(jsonnet_input("component/main.jsonnet")).files == {"web/o.yaml": b"a: 1\n"}


def test_evaluates_with_external_variables(compilation: Compilation) -> None:
    compilation.component(file_jsonnet="{ version: std.extVar('v'), file: std.thisFile }")
    assert evaluate(compilation.root, "dependencies/web/file.jsonnet", {"v": "1"}) == {
        "version": "1",
        "file": "dependencies/web/file.jsonnet",
    }


@pytest.mark.parametrize(
    "template",
    [
        "importstr '/etc/hostname'",
        "importstr '../../../../../../etc/hostname'",
        "import '/proc/self/environ'",
        "importbin '/etc/hostname'",
        "std.native('file_read')('/etc/hostname')",
        "std.native('file_read')('../../../../etc/hostname')",
        "std.native('yaml_load')('/etc/hostname.yml')",
        "std.native('yaml_load_stream')('/etc/hostname.yml')",
        "std.native('dir_files_list')('/etc')",
        "std.native('dir_files_read')('/etc')",
        "std.native('file_exists')('/etc/passwd')",
        "std.native('file_read')('web/link')",
        "importstr 'link'",
        "importstr 'directory/hostname'",
        "std.native('file_read')('web/directory/hostname')",
        "std.native('dir_files_list')('web/directory')",
    ],
)
def test_files_of_the_host_are_refused(compilation: Compilation, template: str) -> None:
    tree = compilation.component(main_jsonnet=template)
    (tree / "link").symlink_to("/etc/hostname")
    (tree / "directory").symlink_to("/etc")
    with pytest.raises(CatalogError) as raised:
        compilation.render(jsonnet_input())
    assert raised.value.kind == "refused"
    assert raised.value.remedy
    assert raised.value.where.instance == "web"


def test_tree_of_another_compilation_is_refused(compilation: Compilation) -> None:
    tree = compilation.component(main_jsonnet="importstr 'other'")
    other = compilation.trees / "other"
    other.write_text("of another tenant")
    (tree / "other").symlink_to(other)
    with pytest.raises(CatalogError, match="symbolic link that leads out"):
        compilation.render(jsonnet_input())


def test_component_may_link_to_its_own_files(compilation: Compilation) -> None:
    tree = compilation.component(main_jsonnet="{ o: { v: importstr 'link' } }", file="x")
    (tree / "link").symlink_to("file")
    assert compilation.render(jsonnet_input()).files == {"web/o.yaml": b"v: x\n"}


def test_endless_recursion_is_a_limit(compilation: Compilation) -> None:
    error = failure_of(compilation, "local f(x) = f(x + 1) + 1; f(0)")
    assert error.kind == "limit"
    assert error.where.file == "dependencies/web/main.jsonnet"


@pytest.mark.parametrize(
    ("template", "message", "line"),
    [
        ("{\n a: error 'no such thing' }", "no such thing", 2),
        ("{\n a: }", "Unexpected", 2),
        ("import 'broken.libsonnet'", "Unexpected", 3),
        ("import 'missing.libsonnet'", "missing.libsonnet", 1),
        ("std.native('file_read')('missing')", "missing", 1),
        ("std.native('yaml_load')('web/main.jsonnet')", "not the name of a YAML file", 1),
        ("std.native('jsonschema_validate')('1', '1')", "jsonschema_validate", 1),
        ("std.native('inventory')('other', null)", "other", 1),
        ("std.extVar('missing')", "missing", 1),
    ],
)
def test_error_names_file_and_line(compilation: Compilation, template: str, message: str, line: int) -> None:
    compilation.tree("vendor", {"broken.libsonnet": "{\n\n a: }"})
    error = failure_of(compilation, template)
    assert message in error.problem
    file = "vendor/broken.libsonnet" if "broken" in template else "dependencies/web/main.jsonnet"
    assert (error.where.file, error.where.line) == (file, line)
    assert error.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2020-01-01", "date"),
        (".nan", "nan"),
        ("a: &a [*a]", "deep"),
        ("[" * 5_000, "levels"),
        (
            "a: &a [x, x]\n"
            + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 9)).replace("*a0", "*a"),
            "values",
        ),
        ("a: [", "not YAML"),
    ],
    ids=["date", "nan", "loop", "deep", "bomb", "syntax"],
)
def test_yaml_that_the_engine_cannot_take_is_an_error(compilation: Compilation, text: str, message: str) -> None:
    """gojsonnet itself would end the process for some of them."""
    compilation.tree("dependencies/data", {"x.yaml": text})
    with pytest.raises(CatalogError, match=message):
        value_of(compilation, "std.native('yaml_load')('data/x.yaml')")


def test_text_ends_at_u0000_as_in_commodore(compilation: Compilation) -> None:
    compilation.tree("dependencies/data", {"a": "x\0y"})
    assert value_of(compilation, "std.native('file_read')('data/a')") == "v: x\n"


def test_files_by_native_functions(compilation: Compilation) -> None:
    compilation.tree("dependencies/data", {"a.yaml": "a: yes\nb: 010\n", "b.yml": "1\n---\n2\n", "sub/c": "é\r\n"})
    template = """[
      std.parseJson(std.native('yaml_load')('data/a.yaml')),
      std.parseJson(std.native('yaml_load_stream')('data/b.yml')),
      std.native('file_read')('data/sub/c'),
      std.native('file_exists')('data/a.yaml'),
      std.native('file_exists')('data/none').exists,
      std.native('dir_files_list')('data'),
      std.native('dir_files_read')('data/sub'),
    ]"""
    assert value_of(compilation, template) == (
        'v:\n  - a: true\n    b: 8\n  - - 1\n    - 2\n  - "\\xE9\\r\\n"\n'
        "  - exists: true\n    path: dependencies/data/a.yaml\n  - false\n"
        '  - - a.yaml\n    - b.yml\n  - c: "\\xE9\\r\\n"\n'
    )


def test_encodings_by_library(compilation: Compilation) -> None:
    template = """
      local kap = import 'lib/kapitan.libjsonnet';
      [kap.yaml_dump({ a: [1] }), kap.yaml_dump_stream([{ a: 1 }, 2]), kap.sha256('a'), kap.gzip_b64('aaaa')]
    """
    assert value_of(compilation, template) == (
        "v:\n  - |\n    a:\n    - 1\n  - |\n    a: 1\n    --- 2\n    ...\n"
        "  - ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb\n"
        "  - H4sIAAAAAAAC/0tMTEwEAEXlmK0EAAAA\n"
    )


def test_inventory_has_all_instances(compilation: Compilation) -> None:
    compilation.component(
        main_jsonnet="""
          local kap = import 'lib/kapitan.libjsonnet';
          local nodes = std.objectFields(kap.inventory_global());
          { o: [kap.inventory().parameters.x, kap.inventory('api').parameters.x, nodes] }
        """
    )
    api = Merged(applications=("api",), classes=("a",), parameters={"x": 2})
    rendered = compilation.render(jsonnet_input(), parameters={"x": 1}, others={"api": api})
    assert rendered.files == {"web/o.yaml": b"1\n--- 2\n---\n- api\n- web\n"}


def test_native_function_takes_text_alone(compilation: Compilation) -> None:
    error = failure_of(compilation, "std.native('file_read')({})")
    assert error.kind == "render"


@pytest.mark.parametrize("template", ["importstr 'x'", "error 'x'", "std.native('file_read')('x')", "{ a: }"])
def test_no_path_of_this_machine_is_in_an_error(compilation: Compilation, template: str) -> None:
    assert str(compilation.root.parent) not in str(failure_of(compilation, template))
