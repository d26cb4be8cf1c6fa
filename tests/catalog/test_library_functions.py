"""The functions of lib/commodore.libjsonnet and lib/kube.libjsonnet, with the values of syn-commodore 1.35.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from tests.catalog.compilations import Compilation, jsonnet_input

GLOBAL = {"http_proxy": "http://p", "no_proxy": "a,b"}

CASES: dict[str, tuple[str, Any]] = {
    "envList": (
        "com.envList({ B: { secretKeyRef: { name: 's' } }, A: 1, C: null, D: 'x', E: true, F: [1] })",
        [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s"}}},
            {"name": "C", "value": None},
            {"name": "D", "value": "x"},
            {"name": "E", "value": "true"},
            {"name": "F", "value": "[1]"},
        ],
    ),
    "getValueOrDefault": ("[com.getValueOrDefault({ a: 1 }, k, 2) for k in ['a', 'b']]", [1, 2]),
    "filterNull": ("com.filterNull([1, null, 2])", [1, 2]),
    "makeMergeable": (
        "{ a: { b: [1], c: 1, d: { e: 1 } } } + com.makeMergeable({ a: { b: [2], c: 2, d: { f: 2 } } })",
        {"a": {"b": [1, 2], "c": 2, "d": {"e": 1, "f": 2}}},
    ),
    "namespaced": (
        "com.namespaced('n', { metadata: { name: 'x' } })",
        {"metadata": {"name": "x", "namespace": "n"}},
    ),
    "renderArray": ("com.renderArray(['b', 'a', '~b', 'c', '~c', 'c', '~none', '~~a'])", ["c"]),
    "proxyVars": (
        "com.proxyVars",
        {"HTTP_PROXY": "http://p", "http_proxy": "http://p", "NO_PROXY": "a,b", "no_proxy": "a,b"},
    ),
    "inventory": ("com.inventory().parameters['global'].no_proxy", "a,b"),
    "generateResources": (
        "com.generateResources({ a_b: { data: { x: 'y' } }, c: null }, kube.ConfigMap)",
        [
            {
                "apiVersion": "v1",
                "data": {"x": "y"},
                "kind": "ConfigMap",
                "metadata": {"annotations": {}, "labels": {"name": "a-b"}, "name": "a-b"},
            }
        ],
    ),
    "Kustomization": (
        "com.Kustomization('https://h/r', 'v1', { i: { newTag: 't', newName: 'n' } }, { resources: ['x'], k: 1 })",
        {
            "kustomization": {
                "images": [{"name": "i", "newName": "n", "newTag": "t"}],
                "k": 1,
                "resources": ["https://h/r?ref=v1", "x"],
            }
        },
    ),
    "Kustomization without version": (
        "com.Kustomization('dir')",
        {"kustomization": {"images": [], "resources": ["dir"]}},
    ),
    "kube": (
        "kube.Namespace('n')",
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"annotations": {}, "labels": {"name": "n"}, "name": "n"},
        },
    ),
}

FILTER_CASES: dict[str, tuple[str, Any]] = {
    "fixupDir": (
        "com.fixupDir(dir, function(o) o { x: 1 })",
        {"a.b": [{"kind": "A", "metadata": {"name": "n"}, "x": 1}]},
    ),
    "patchNamespace": (
        "com.patchNamespace(dir + '/a.b.yaml', 'ns', ['A'])",
        [{"kind": "A", "metadata": {"name": "n", "namespace": "ns"}}],
    ),
    "patchNamespace of other kinds": (
        "com.patchNamespace(dir + '/a.b.yaml', 'ns', ['B'])",
        [{"kind": "A", "metadata": {"name": "n"}}],
    ),
    "addNamespaceToHelmOutput": (
        "com.addNamespaceToHelmOutput(dir, 'ns', [{ kind: 'A', name: 'n' }])",
        {"a.b": [{"kind": "A", "metadata": {"name": "n"}}]},
    ),
    "list_dir": ("[com.list_dir(dir), com.list_dir(dir, false)]", [["a.b.yaml"], ["compiled/web/web/a.b.yaml"]]),
    "yaml_load_all": ("com.yaml_load_all(dir + '/a.b.yaml')", [None, {"kind": "A", "metadata": {"name": "n"}}]),
}

IMPORTS = "local com = import 'lib/commodore.libjsonnet'; local kube = import 'lib/kube.libjsonnet';"


@pytest.mark.parametrize(("expression", "value"), CASES.values(), ids=CASES)
def test_function_in_a_template(compilation: Compilation, expression: str, value: Any) -> None:
    compilation.component(main_jsonnet=f"{IMPORTS} {{ o: [{expression}] }}")
    rendered = compilation.render(jsonnet_input(output_type="json"), parameters={"global": GLOBAL})
    assert json.loads(rendered.files["web/o.json"]) == [value]


@pytest.mark.parametrize(("expression", "value"), FILTER_CASES.values(), ids=FILTER_CASES)
def test_function_in_a_filter(compilation: Compilation, expression: str, value: Any) -> None:
    compilation.component(
        main_jsonnet="{ 'a.b': [null, { kind: 'A', metadata: { name: 'n' } }] }",
        filter_jsonnet=f"{IMPORTS} local dir = std.extVar('output_path'); {{ o: std.manifestJson({expression}) }}",
    )
    entry = {"type": "jsonnet", "filter": "filter.jsonnet", "path": "web"}
    rendered = compilation.render(jsonnet_input(), parameters={"commodore": {"postprocess": {"filters": [entry]}}})
    text = rendered.files["web/o.yaml"].decode()
    assert json.loads("\n".join(line[2:] for line in text.splitlines()[1:])) == value


def test_proxy_without_settings_is_empty(compilation: Compilation) -> None:
    compilation.component(main_jsonnet=f"{IMPORTS} {{ o: com.proxyVars {{ x: 1 }} }}")
    assert compilation.render(jsonnet_input()).files == {"web/o.yaml": b"x: 1\n"}


def test_array_of_other_values_is_refused(compilation: Compilation) -> None:
    compilation.component(main_jsonnet=f"{IMPORTS} {{ o: com.renderArray([1]) }}")
    with pytest.raises(CatalogError, match="renderArray takes texts"):
        compilation.render(jsonnet_input())
