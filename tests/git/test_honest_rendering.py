"""Honest repositories render behind the same walls as hostile ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kardinal.rendering.programs import ProgramRenderer
from tests.support.renderers import BASE, CHART, Rendered, helm, kustomize, needs

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
KUSTOMIZATIONS = {
    "generators from files": (
        {
            "kustomization.yaml": (
                "configMapGenerator: [{name: settings, files: [app.properties, key=data/other.txt], envs: [of.env]}]\n"
                "secretGenerator: [{name: certificate, files: [data/other.txt], type: Opaque}]\n"
                "generatorOptions: {disableNameSuffixHash: true}\n"
            ),
            "app.properties": "a: [b\nurl=http://example.org\n",
            "data/other.txt": "\u00e4\n",
            "of.env": "A=1\n",
        },
        [("ConfigMap", "settings"), ("Secret", "certificate")],
    ),
    "several documents, anchors and merge keys": (
        {
            "kustomization.yaml": (
                "resources: [all.yaml]\ncommonAnnotations: &note {team: shop}\nlabels: [{pairs: *note}]\n"
            ),
            "all.yaml": (
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &data {x: 'yes', y: '1.10'}\n---\n"
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
                "data:\n  z: |\n    --- not a separator\n  <<: {w: v}\n"
                "---\n# nothing\n---\n" + DEFINITION
            ),
        },
        None,
    ),
    "a plugin in a file and one written out": (
        {
            "kustomization.yaml": (
                "resources: [../../base]\ngenerators: [generator.yaml]\ntransformers:\n- |\n"
                "  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: p}\n  prefix: my-\n"
                "  fieldSpecs: [{path: metadata/name}]\n"
            ),
            "generator.yaml": (
                "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: made}\n"
                "files: [data.txt]\noptions: {disableNameSuffixHash: true}\n"
            ),
            "data.txt": "x",
        },
        [("ConfigMap", "my-made"), ("Deployment", "my-web")],
    ),
    "components, patches and definitions": (
        {
            "kustomization.yaml": (
                "resources: [../../base, definition.yaml]\ncomponents: [../../component]\n"
                'patches: [{path: patch.yaml}, {target: {kind: Deployment}, patch: \'[{"op": "add", "path": '
                '"/spec/replicas", "value": 3}]\'}]\n'
            ),
            "definition.yaml": DEFINITION,
            "patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: true}\n",
        },
        [("CustomResourceDefinition", "things.example.org"), ("Deployment", "web"), ("ConfigMap", "extra")],
    ),
    "a kustomization in JSON": (
        {"kustomization.yaml": '{"resources": ["../../base"], "namePrefix": "j-"}'},
        [("Deployment", "j-web")],
    ),
}
"""Name -> the files of envs/dev, and the objects that come out where they can be known."""
COMPONENT = {
    "component/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [extra.yaml]\n"
    ),
    "component/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n",
}
SUBCHARTS = CHART | {
    "charts/web/Chart.yaml": (
        "apiVersion: v2\nname: web\nversion: 1.0.0\n"
        "dependencies:\n- {name: cache, version: 1.0.0, alias: store}\n"
        "- {name: spare, version: 1.0.0, condition: spare.enabled}\n"
    ),
    "charts/web/values.yaml": "image: {tag: '1'}\nstore: {size: 1}\nspare: {enabled: false}\n",
    "charts/web/charts/cache/Chart.yaml": "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
    "charts/web/charts/cache/templates/cache.yaml": (
        "kind: Cache\nmetadata: {name: {{ .Values.size }}}\n"
        'spec: {{ .Files.Get "files/settings.txt" | trim | quote }}\n'
    ),
    "charts/web/charts/cache/files/settings.txt": "from a file of the chart\n",
    "charts/web/charts/spare/Chart.yaml": "apiVersion: v2\nname: spare\nversion: 1.0.0\n",
    "charts/web/charts/spare/templates/spare.yaml": "kind: Spare\n",
}


def objects(output: bytes) -> list[tuple[str, str]]:
    return [(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(output) if one]


@pytest.mark.parametrize("name", list(KUSTOMIZATIONS))
async def test_honest_kustomizations_are_rendered(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, name: str
) -> None:
    needs(programs, "kustomize")
    own, expected = KUSTOMIZATIONS[name]
    files = BASE | COMPONENT | {f"envs/dev/{path}": text for path, text in own.items()}
    output = await rendered(files, lambda tree: kustomize(renderer, tree))
    found = objects(output)
    assert sorted(found) == sorted(expected or found)
    assert found


async def test_several_values_files_are_laid_over_each_other(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "helm")
    files = CHART | {
        "envs/common.yaml": "image: {tag: '2'}\nnote: common\n",
        "envs/dev/values.yaml": "note: of dev\n",
    }
    values = ["envs/common.yaml", "envs/dev/values.yaml"]
    (found,) = yaml.safe_load_all(await rendered(files, lambda tree: helm(renderer, tree, values=values)))
    assert found["spec"] == {"image": "r/web:2", "note": "of dev"}


async def test_subcharts_are_rendered_from_the_charts_directory(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "helm")
    output = await rendered(SUBCHARTS, lambda tree: helm(renderer, tree, **{"store.size": "7"}))
    found = {one["kind"]: one for one in yaml.safe_load_all(output) if one}
    assert set(found) == {"Cache", "Thing"}
    assert found["Cache"]["metadata"]["name"] == 7
    assert found["Cache"]["spec"] == "from a file of the chart"
