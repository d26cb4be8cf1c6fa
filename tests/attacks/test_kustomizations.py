"""A kustomization costs its reader a bounded amount, whatever it refers to and however often."""

from __future__ import annotations

from functools import partialmethod

import pytest

from kardinal.edits.kustomize.layers import Layers
from kardinal.edits.kustomize.manifests import TooLarge, Volume
from kardinal.edits.kustomize.reading import read_kustomization
from kardinal.tree.overlay import Overlay

POD = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {template: {spec: {containers: [%s]}}}\n"
WEB = POD.replace("%s", "{name: a, image: 'r/a:1'}")
TARGET = "target: {kind: Deployment}"


def copies(times: int) -> str:
    """Return a JSON patch that doubles what is there, again and again."""
    return "".join(f"- {{op: copy, from: /spec/template, path: /spec/template/x{n}}}\n" for n in range(times))


ATTACKS = {
    "cycle": {
        "kustomization.yaml": "resources: [a]",
        "a/kustomization.yaml": "resources: [../b]",
        "b/kustomization.yaml": "resources: [../a]",
    },
    "doubling layers": {
        **{f"l{n}/kustomization.yaml": f"resources: [../l{n + 1}, ../l{n + 1}/.]" for n in range(30)},
        "kustomization.yaml": "resources: [l0]",
        "l30/kustomization.yaml": "resources: [w.yaml]",
        "l30/w.yaml": WEB,
    },
    "long chain": {
        **{f"l{n}/kustomization.yaml": f"resources: [../l{n + 1}]" for n in range(200)},
        "kustomization.yaml": "resources: [l0]",
    },
    "laughs": {
        "kustomization.yaml": "resources: [w.yaml]",
        "w.yaml": "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 60)),
    },
    "merge laughs": {
        "kustomization.yaml": "resources: [w.yaml]",
        "w.yaml": "a0: &a0 {x: y}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 60)),
    },
    "itself": {"kustomization.yaml": "resources: [w.yaml]", "w.yaml": "a: &a [*a]\n"},
    "deep": {"kustomization.yaml": "resources: [w.yaml]", "w.yaml": "[" * 100_000},
    "copies": {
        "kustomization.yaml": f"resources: [w.yaml]\npatches: [{{path: p.yaml, {TARGET}}}]",
        "w.yaml": WEB,
        "p.yaml": copies(60),
    },
    "deeper by patches": {
        "kustomization.yaml": "resources: [w.yaml]\npatches:\n"
        + f"- {{path: p.yaml, {TARGET}}}\n" * 1_500
        + f"- {{path: q.yaml, {TARGET}}}\n",
        "w.yaml": WEB,
        "p.yaml": "- {op: move, from: /spec, path: /y}\n- {op: add, path: /spec, value: {}}\n"
        "- {op: move, from: /y, path: /spec/x}\n",
        "q.yaml": "- {op: copy, from: /spec, path: /z}\n",
    },
    "many patches of many objects": {
        "kustomization.yaml": "resources: [w.yaml]\npatches:\n" + f"- {{path: p.yaml, {TARGET}}}\n" * 500,
        "w.yaml": "\n---\n".join([WEB] * 500),
        "p.yaml": POD.replace("%s", "{name: b, image: b}"),
    },
    "many entries of many images": {
        "kustomization.yaml": "resources: [w.yaml]\nimages:\n" + "- {name: r/a, newTag: '1'}\n" * 3_000,
        "w.yaml": POD.replace("%s", ", ".join(["{name: a, image: 'r/a:1'}"] * 3_000)),
    },
    "names without end": {
        "kustomization.yaml": f"namePrefix: {'x' * 100_000}\nresources: [w.yaml]",
        "w.yaml": "\n---\n".join([WEB] * 500),
    },
    "suffixes without end": {
        "kustomization.yaml": "resources: [w.yaml]\nimages:\n" + f"- {{name: r/a, tagSuffix: {'x' * 9_000}}}\n",
        "w.yaml": WEB,
    },
    "patterns": {
        "kustomization.yaml": f"resources: [w.yaml]\npatches: [{{path: p.yaml, target: {{name: '{'(a+)+' * 20}b'}}}}]",
        "w.yaml": WEB.replace("name: w", f"name: {'a' * 200}"),
        "p.yaml": POD.replace("%s", "{name: a, image: b}"),
    },
    "numbers without end": {
        "kustomization.yaml": f"resources: [w.yaml]\npatches: [{{path: p.yaml, {TARGET}}}]",
        "w.yaml": WEB,
        "p.yaml": f"- {{op: add, path: /spec/template/spec/containers/{'9' * 5_000}, value: x}}\n",
    },
    "not text": {"kustomization.yaml": "resources: [w.yaml]", "w.yaml": "\x00\x01"},
}


@pytest.mark.parametrize("files", ATTACKS.values(), ids=ATTACKS)
def test_reading_ends_and_says_that_it_does_not_know(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Read within a tenth of the volume, which is used up as the whole of it is."""
    whole = Volume()
    tenth = Volume(bytes=whole.bytes // 10, files=whole.files // 10, values=whole.values // 10)
    monkeypatch.setattr(Layers, "__init__", partialmethod(Layers.__init__, volume=tenth))
    tree = Overlay(None, changes={f"env/{path}": text.encode() for path, text in files.items()})
    assert read_kustomization(tree, "env").unknown


def test_a_volume_is_one_for_everything_that_is_read() -> None:
    volume = Volume(values=3)
    volume.take(values=2)
    with pytest.raises(TooLarge):
        volume.take(values=2)
