"""Kustomizations of our own: every workload below every kind of layer, with every kind of entry."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

__all__ = ["generated"]

_POD = (
    "spec: {containers: [{name: web, image: 'r.example:5000/team/web:1'}, {name: side, image: nginx}],"
    " initContainers: [{name: init, image: 'r.example:5000/team/web:1'}]}"
)
_WORKLOADS = {
    "deployment": ("apps/v1", "Deployment", f"spec:\n  selector: {{matchLabels: {{a: b}}}}\n  template: {{{_POD}}}"),
    "daemonset": ("apps/v1", "DaemonSet", f"spec: {{template: {{{_POD}}}}}"),
    "cronjob": ("batch/v1", "CronJob", f"spec: {{jobTemplate: {{spec: {{template: {{{_POD}}}}}}}}}"),
    "pod": ("v1", "Pod", _POD),
    "custom": ("x.io/v1", "Rollout", f"spec: {{strategies: [{{template: {{{_POD}}}}}]}}"),
}
_PATCH = "patches:\n- target: {name: web}\n  patch: |\n    - {op: add, path: /metadata/labels, value: {a: b}}\n"
_LAYERS = {
    "plain": {"env": "resources: [web.yaml]\n", "place": "env"},
    "base": {"env": "resources:\n  - ../base\nnamePrefix: dev-\n", "base": "resources: [web.yaml]\n", "place": "base"},
    "middle": {
        "env": f"# the top\nresources: [../mid]\n{_PATCH}",
        "mid": "resources: [../base]\nimages: [{name: nginx, newTag: '1.27'}]\n",
        "base": "resources: [web.yaml]\n",
        "place": "base",
    },
    "component": {
        "env": "resources: [../base]\ncomponents: [../part]\nlabels: [{pairs: {c: d}}]\n",
        "part": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        "images: [{name: nginx, newTag: '1.26'}]\n",
        "base": "resources: [web.yaml]\n",
        "place": "base",
    },
}
_ENTRIES = {
    "none": "",
    "tag": 'images:\n- name: r.example:5000/team/web\n  newTag: "1.0" # moved\n',
    "digest": f"images:\n  - digest: sha256:{'ab' * 32}\n    name: nginx\n",
    "mirror": "images: [{name: nginx, newName: mirror.example/nginx, newTag: '2'}]\n",
    "others": "images:\n- {name: unused, newTag: x}\nnamespace: here\n",
}


def generated() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a name and the files of each; the kustomization is in `env`."""
    for (workload, (api, kind, spec)), (layer, parts), (entry, images) in itertools.product(
        _WORKLOADS.items(), _LAYERS.items(), _ENTRIES.items()
    ):
        texts = {name: text for name, text in parts.items() if name != "place"}
        texts["env"] += images
        files = {f"{name}/kustomization.yaml": text for name, text in texts.items()}
        manifest = f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: web}}\n{spec}\n"
        yield f"{workload} {layer} {entry}", {**files, f"{parts['place']}/web.yaml": manifest}
