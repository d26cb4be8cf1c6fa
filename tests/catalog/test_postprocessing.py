"""Filters: those of the parameters and of filters.yml, in order, and what is wrong in them."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import InstanceFiles
from tests.catalog.compilations import Compilation, jsonnet_input

CHART = "{ a: [{ kind: 'A', metadata: { name: 'x' } }, null, { kind: 'B', metadata: { name: 'y' } }] }"
READ = "local com = import 'lib/commodore.libjsonnet'; local dir = std.extVar('output_path');"


def parameters(*filters: Any, **others: Any) -> dict[str, Any]:
    return {"commodore": {"postprocess": {"filters": list(filters)}}, **others}


def jsonnet_filter(**fields: Any) -> dict[str, Any]:
    return {"type": "jsonnet", "filter": "postprocess/one.jsonnet", "path": "web", **fields}


def helm_namespace(**arguments: Any) -> dict[str, Any]:
    return {"type": "builtin", "filter": "helm_namespace", "path": "web", "filterargs": arguments}


def rendered(compilation: Compilation, filters: dict[str, Any], **files: str) -> InstanceFiles:
    compilation.tree(
        "dependencies/web",
        {"main.jsonnet": CHART, **{f"postprocess/{name}.jsonnet": text for name, text in files.items()}},
    )
    return compilation.render(jsonnet_input(), parameters=filters)


def test_filter_edits_and_adds_files(compilation: Compilation) -> None:
    one = READ + "{ a: com.yaml_load_all(dir + '/a.yaml')[0] { one: 1 }, 'sub/new': [{ n: 1 }, {}] }"
    two = READ + "{ a: com.yaml_load(dir + '/a.yaml') { two: com.list_dir(dir) } }"
    filters = parameters(jsonnet_filter(), jsonnet_filter(filter="postprocess/two.jsonnet"))
    assert rendered(compilation, filters, one=one, two=two).files == {
        "web/a.yaml": b"kind: A\nmetadata:\n  name: x\none: 1\ntwo:\n  - a.yaml\n",
        "web/sub/new.yaml": b"n: 1\n--- {}\n",
    }


def test_filter_sees_component_arguments_and_node(compilation: Compilation) -> None:
    one = READ + "{ o: std.map(std.extVar, ['component', 'target', 'x']) + [com.inventory().parameters.y, dir] }"
    filters = parameters(jsonnet_filter(filterargs={"x": "1"}), y=2)
    assert rendered(compilation, filters, one=one).files["web/o.yaml"] == (
        b"web\n--- web\n--- '1'\n--- 2\n--- compiled/web/web\n...\n"
    )


def test_node_of_a_filter_has_the_keys_of_commodore(compilation: Compilation) -> None:
    one = READ + "{ o: { keys: std.objectFields(com.inventory()), r: com.inventory().__reclass__ } }"
    assert rendered(compilation, parameters(jsonnet_filter()), one=one).files["web/o.yaml"] == (
        b"keys:\n  - __reclass__\n  - applications\n  - classes\n  - environment\n  - exports\n  - parameters\n"
        b"r:\n  environment: base\n  name: web\n  node: web\n"
    )


def test_disabled_filter_is_skipped(compilation: Compilation) -> None:
    assert set(rendered(compilation, parameters(jsonnet_filter(enabled=False)), one="error 'x'").files) == {
        "web/a.yaml"
    }


def test_filters_of_the_file_come_last(compilation: Compilation) -> None:
    compilation.tree(
        "dependencies/web",
        {
            "main.jsonnet": CHART,
            "postprocess/one.jsonnet": "{ o: { v: 1 } }",
            "postprocess/two.jsonnet": READ + "{ o: com.yaml_load(dir + '/o.yaml') { w: std.extVar('x') } }",
        },
    )
    file = {
        "filters": [
            {"filter": "two.jsonnet", "output_path": "${web:directory}", "filterargs": {"x": "n-${web:missing::1}"}},
            {"type": "builtin", "filter": "helm_namespace", "path": "web", "filterargs": {"namespace": "${web:ns}"}},
        ]
    }
    result = compilation.render(
        jsonnet_input(),
        parameters=parameters(jsonnet_filter(), web={"directory": "web", "ns": "n"}),
        filters=file,
    )
    assert result.files["web/o.yaml"] == b"metadata:\n  namespace: n\nv: 1\nw: n-1\n"


def test_helm_namespace_sets_the_namespace(compilation: Compilation) -> None:
    filters = parameters(
        helm_namespace(namespace="n", create_namespace="true", exclude_objects=[{"kind": "B", "name": "y"}])
    )
    assert rendered(compilation, filters).files == {
        "web/00_namespace.yaml": (
            b"apiVersion: v1\nkind: Namespace\nmetadata:\n  annotations: {}\n  labels:\n    name: n\n  name: n\n"
        ),
        "web/a.yaml": (b"kind: A\nmetadata:\n  name: x\n  namespace: n\n---\nkind: B\nmetadata:\n  name: y\n"),
    }


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "jsonnet", "path": "web"}, "no text filter"),
        (jsonnet_filter(path=None), "no text path"),
        (jsonnet_filter(type="python"), "'python' is unknown"),
        (jsonnet_filter(enabled="yes"), "neither true nor false"),
        (jsonnet_filter(filter="postprocess/none.jsonnet"), "no file"),
        (jsonnet_filter(filter="/etc/hostname"), "leads out"),
        (jsonnet_filter(filter="../../../etc/hostname"), "leads out"),
        (jsonnet_filter(path="../../etc"), "leads out"),
        (jsonnet_filter(filterargs={"x": 1}), "not a text"),
        (jsonnet_filter(filterargs=[]), "not an object"),
        ({**helm_namespace(namespace="n"), "filter": "other"}, "no builtin filter"),
        ({**helm_namespace(namespace="n"), "path": "none"}, "no input has written"),
        (helm_namespace(), "no argument namespace"),
        (helm_namespace(namespace="n", create_namespace=2), "create_namespace"),
        (helm_namespace(namespace="n", exclude_objects=["x"]), "exclude_objects"),
        ("x", "not an object"),
    ],
)
def test_wrong_filter_is_an_error(compilation: Compilation, entry: Any, message: str) -> None:
    with pytest.raises(CatalogError, match=message) as raised:
        rendered(compilation, parameters(entry), one="{}")
    assert raised.value.where.parameter == "commodore.postprocess.filters[0]"
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ("error 'x'", "x"),
        ("[1]", "type list"),
        ("{ '../../x': 1 }", "leads out"),
        ("{ a: std.native('yaml_load')('/etc/hostname') }", "leads out"),
        ("{ a: std.native('list_dir')('/etc', true) }", "leads out"),
        ("{ a: std.native('list_dir')('none', true) }", "none"),
        ("{ a: importstr '/etc/hostname' }", "leads out"),
    ],
)
def test_failing_filter_is_an_error(compilation: Compilation, one: str, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        rendered(compilation, parameters(jsonnet_filter()), one=one)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"filters": {}}, "not a list"),
        ({"filters": ["x"]}, "not an object"),
        ({"filters": [{"filter": "../main.jsonnet"}]}, "leads out"),
        ({"filters": [{"filter": "${web:nothing}"}]}, "no parameter web:nothing"),
    ],
)
def test_wrong_filter_file_is_an_error(compilation: Compilation, file: Any, message: str) -> None:
    compilation.component(main_jsonnet=CHART)
    with pytest.raises(CatalogError, match=message) as raised:
        compilation.render(jsonnet_input(), filters=file)
    assert raised.value.where.file == "postprocess/filters.yml"
