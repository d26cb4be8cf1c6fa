"""The images of a kustomization are read without running anything, and what is not understood is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kardinal.edits.kustomize.reading import Reading, read_kustomization, read_rendered
from kardinal.tree.overlay import Overlay

POD = "spec: {containers: [{name: web, image: r/web:1}], initContainers: [{name: init, image: 'r/init:1'}]}"
WEB = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{template: {{{POD}}}}}\n"
CRON = (
    WEB.replace("apps/v1", "batch/v1")
    .replace("Deployment", "CronJob")
    .replace(f"template: {{{POD}}}", f"jobTemplate: {{spec: {{template: {{{POD}}}}}}}")
)
CUSTOM = (
    WEB.replace("apps/v1", "x.io/v1")
    .replace(f"template: {{{POD}}}", f"deep: [{{template: {{{POD}}}}}]")
    .replace("Deployment", "Rollout")
)
BASE = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": WEB}


def read(kustomization: str, files: Mapping[str, str] = BASE) -> Reading:
    """Read the directory `env`."""
    changes = {"env/kustomization.yaml": kustomization, **files}
    return read_kustomization(Overlay(None, changes={path: text.encode() for path, text in changes.items()}), "env")


def texts(reading: Reading) -> list[str]:
    assert reading.unknown == ()
    return sorted(image.text for image in reading.images)


@pytest.mark.parametrize("manifest", [WEB, CRON, CUSTOM], ids=["deployment", "cronjob", "custom"])
def test_containers_and_init_containers_of_every_kind_count(manifest: str) -> None:
    reading = read("resources: [web.yaml]\n", {"env/web.yaml": manifest})
    assert texts(reading) == ["r/init:1", "r/web:1"]
    assert reading.images[0].place.endswith(" web, container web (env/web.yaml)")


@pytest.mark.parametrize(
    ("kustomization", "expected"),
    [
        ("resources: [../base]\nimages: [{name: r/web, newTag: '2'}]", ["r/init:1", "r/web:2"]),
        ("bases: [../base]\nimages: [{name: r/web, newName: m/web, newTag: '2'}]", ["m/web:2", "r/init:1"]),
        ("resources: [../base]\nimages: [{name: r/web, digest: 'sha256:aa'}]", ["r/init:1", "r/web@sha256:aa"]),
        (
            "resources: [../base]\nimages: [{name: r/web, newTag: 2, digest: 'sha256:a'}]",
            ["r/init:1", "r/web:2@sha256:a"],
        ),
        ("resources: [../base]\nimages: [{name: r/web, tagSuffix: -x}]", ["r/init:1", "r/web:1-x"]),
        ("resources: [../base]\nimages: [{name: docker.io/r/web, newTag: '2'}]", ["r/init:1", "r/web:1"]),
        ("resources: [../base]\nimages: [{name: r/we, newTag: '2'}]", ["r/init:1", "r/web:1"]),
        ("resources: [../base]\nimageTags: [{name: r/web, newTag: '2'}]", ["r/init:1", "r/web:2"]),
        ("resources: [../base]\nimages: [{name: r/web, newName: a}, {name: a, newTag: '3'}]", ["a:3", "r/init:1"]),
    ],
)
def test_entries_of_images_are_applied_as_kustomize_does(kustomization: str, expected: list[str]) -> None:
    assert texts(read(kustomization)) == expected


def test_the_images_before_the_entries_of_the_directory_itself_are_known() -> None:
    reading = read(
        "resources: [../mid]\nimages: [{name: m/web, newName: n/web, newTag: '3'}]",
        BASE | {"mid/kustomization.yaml": "resources: [../base]\nimages: [{name: r/web, newName: m/web, newTag: '2'}]"},
    )
    assert {(image.before, image.text) for image in reading.images} == {
        ("m/web:2", "n/web:3"),
        ("r/init:1", "r/init:1"),
    }
    assert reading.roots == ("env", "mid", "base")


PATCH = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec: {template: {spec: {containers: [%s]}}}\n"


@pytest.mark.parametrize(
    ("kustomization", "patch", "expected"),
    [
        ("patches: [{path: p.yaml}]", PATCH % ("web", "{name: web, image: p/web:9}"), ["p/web:9", "r/init:1"]),
        ("patchesStrategicMerge: [p.yaml]", PATCH % ("web", "{name: x, image: 'x:1'}"), ["r/init:1", "r/web:1", "x:1"]),
        ("patches: [{path: p.yaml}]", PATCH % ("web", "{name: web, $patch: delete}"), ["r/init:1"]),
        ("patches: [{path: p.yaml}]", PATCH % ("web", "{$patch: replace}, {name: y, image: y}"), ["r/init:1", "y"]),
        ("patches: [{path: p.yaml}]", PATCH % ("other", "{name: web, image: p/web:9}"), ["r/init:1", "r/web:1"]),
        (
            "patches: [{path: p.yaml, target: {kind: Deployment, name: 'w.*'}}]",
            PATCH % ("any", "{name: web, image: p/web:9}"),
            ["p/web:9", "r/init:1"],
        ),
        (
            "namePrefix: a-\npatches: [{path: p.yaml}]",
            PATCH % ("web", "{name: web, image: p/web:9}"),
            ["p/web:9", "r/init:1"],
        ),
        (
            "patchesJson6902: [{path: p.yaml, target: {group: apps, version: v1, kind: Deployment, name: web}}]",
            "- {op: replace, path: /spec/template/spec/containers/0/image, value: 'j/web:9'}\n"
            "- {op: add, path: /spec/template/spec/containers/-, value: {name: z, image: z}}\n"
            "- {op: remove, path: /spec/template/spec/initContainers}\n",
            ["j/web:9", "z"],
        ),
        (
            "patches: [{path: p.yaml}]",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n$patch: delete",
            [],
        ),
    ],
)
def test_patches_are_applied(kustomization: str, patch: str, expected: list[str]) -> None:
    assert texts(read(f"resources: [../base]\n{kustomization}\n", BASE | {"env/p.yaml": patch})) == expected


def test_a_patch_finds_an_object_by_every_name_that_it_has_had() -> None:
    files = BASE | {
        "mid/kustomization.yaml": "resources: [../base]\nnamePrefix: mid-\n",
        "env/p.yaml": PATCH % ("mid-web", "{name: web, image: p/web:9}"),
    }
    assert "p/web:9" in texts(read("resources: [../mid]\nnameSuffix: -x\npatches: [{path: p.yaml}]", files))


def test_a_component_works_on_what_is_there() -> None:
    component = "kind: Component\nimages: [{name: r/web, newTag: '5'}]\nresources: [side.yaml]\n"
    files = BASE | {"part/kustomization.yaml": component, "part/side.yaml": WEB.replace("r/web", "r/side")}
    assert texts(read("resources: [../base]\ncomponents: [../part]", files)) == [
        "r/init:1",
        "r/init:1",
        "r/side:1",
        "r/web:5",
    ]


def test_paths_of_a_configuration_and_a_transformer_of_images_count() -> None:
    thing = "apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: x}\nspec: {run: {picture: 'r/thing:1'}}\n"
    transformer = (
        "apiVersion: builtin\nkind: ImageTagTransformer\nmetadata: {name: x}\nimageTag: {name: r/thing, newTag: '7'}"
    )
    files = {
        "env/thing.yaml": thing,
        "env/config.yaml": "images: [{path: spec/run/picture, kind: Thing}]\n",
        "env/t.yaml": f"{transformer}\nfieldSpecs: [{{path: spec/run/picture}}]\n",
    }
    configured = "resources: [thing.yaml]\nconfigurations: [config.yaml]\n"
    assert texts(read(f"{configured}images: [{{name: r/thing, newTag: '2'}}]", files)) == ["r/thing:2"]
    assert texts(read(f"{configured}transformers: [t.yaml]", files)) == ["r/thing:7"]


def test_values_of_a_helm_release_are_found() -> None:
    release = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: app}
spec:
  values:
    image: {registry: ghcr.io, repository: o/app, tag: "1.2"}
    sidecar: {image: 'ghcr.io/o/side:3', note: not an image}
    list: [{repository: r/x, digest: 'sha256:aaaaaa'}]
"""
    reading = read("resources: [r.yaml]", {"env/r.yaml": release})
    assert {(str(value.reference), value.place) for value in reading.values} == {
        ("ghcr.io/o/app:1.2", "values.image of HelmRelease app (env/r.yaml)"),
        ("ghcr.io/o/side:3", "values.sidecar.image of HelmRelease app (env/r.yaml)"),
        ("r/x@sha256:aaaaaa", "values.list[0] of HelmRelease app (env/r.yaml)"),
    }


@pytest.mark.parametrize(
    ("kustomization", "words"),
    [
        ("resources: ['https://h/o/r?ref=1']", "https://h/o/r?ref=1 is not in the repository"),
        ("resources: ['github.com/o/r']", "github.com/o/r is not in the repository"),
        ("resources: ['git@h:o/r.git']", "git@h:o/r.git is not in the repository"),
        ("components: ['ssh://h/o/r']", "ssh://h/o/r is not in the repository"),
        ("helmCharts: [{name: x}]", "env inflates a Helm chart"),
        ("generators: [g.yaml]", "env runs the generator Magic"),
        ("resources: [missing.yaml]", "there is no file env/missing.yaml"),
        ("resources: [../base, g.json]", "env/g.json: not valid YAML"),
        ("resources: [../outside.yaml]", "'../outside.yaml' is a file outside of env, which kustomize refuses"),
        ("resources: [../../../etc]", "'../../../etc' leaves the repository"),
        ("resources: [/etc/passwd]", "'/etc/passwd' is not a relative path"),
        ("resources: [v.yaml]", "Deployment web, container web (env/v.yaml) has an image with a variable"),
    ],
)
def test_source_that_may_bring_images_is_reported_missing(kustomization: str, words: str) -> None:
    files = BASE | {
        "env/g.yaml": "apiVersion: x/v1\nkind: Magic\nmetadata: {name: x}\n",
        "env/g.json": "{",
        "env/v.yaml": WEB.replace("r/web:1", "r/web:$(TAG)"),
        "outside.yaml": WEB,
    }
    reading = read(kustomization, files)
    assert reading.missing == (words,)
    assert reading.uncertain == ()


@pytest.mark.parametrize(
    ("kustomization", "words"),
    [
        ("images: [{name: 'r/.*', newTag: '2'}]", "the name 'r/.*' is a pattern"),
        ("transformers: [t.yaml]", "env runs the transformer Magic"),
        ("patches: [{path: p.yaml, target: {labelSelector: a=b}}]", "a patch selects by labels"),
        ("patches: [{path: p.yaml, target: {name: '(web)+'}}]", "a patch selects by the pattern '(web)+'"),
        ("replacements: [{targets: [{fieldPaths: [spec.template.spec.containers.0.image]}]}]", "env sets images by"),
        ("replacements: [{targets: [{fieldPaths: ['spec.template.spec.containers.[name=web]']}]}]", "env sets images"),
        ("replacements: [{path: r.yaml}]", "env sets images by replacements"),
        ("images: {", "not valid YAML"),
        ("components: [../env]", "env takes itself in"),
    ],
)
def test_transformer_of_unknown_effect_is_uncertain(kustomization: str, words: str) -> None:
    files = BASE | {
        "env/t.yaml": "apiVersion: x/v1\nkind: Magic\nmetadata: {name: x}\n",
        "env/p.yaml": PATCH % ("web", "{name: web, image: p}"),
        "env/r.yaml": "source: {kind: X}\ntargets: [{fieldPaths: ['spec.template.spec.initContainers.*.image']}]\n",
    }
    assert any(words in reason for reason in read(f"resources: [../base]\n{kustomization}\n", files).unknown)


@pytest.mark.parametrize(
    "kustomization",
    [
        "patches: [{path: p.yaml, target: {labelSelector: a=b}}]",
        "transformers: [t.yaml]",
        "replacements: [{targets: [{fieldPaths: [metadata.name, spec.replicas]}]}]",
        "configMapGenerator: [{name: x, literals: ['url=https://example.com']}]",
        "commonAnnotations: {docs: 'https://example.com'}\nnamespace: x\nreplicas: [{name: a}]",
    ],
)
def test_transformer_without_effect_on_images_is_certain(kustomization: str) -> None:
    files = BASE | {
        "env/p.yaml": PATCH % ("web", "{name: web, env: [{name: A, value: b}]}"),
        "env/t.yaml": "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: a\n",
    }
    reading = read(f"resources: [../base]\n{kustomization}\n", files)
    assert texts(reading) == ["r/init:1", "r/web:1"]
    assert reading.remote == ()


def test_definitions_of_custom_resources_hold_no_image() -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {containers: [{image: x}]}\n"
    assert texts(read("resources: [c.yaml]", {"env/c.yaml": f"{crd}---\n{WEB}"})) == ["r/init:1", "r/web:1"]


def test_rendered_manifests_are_read() -> None:
    assert sorted(image.text for image in read_rendered(f"{WEB}---\n{CRON}".encode()).images) == [
        "r/init:1",
        "r/init:1",
        "r/web:1",
        "r/web:1",
    ]
