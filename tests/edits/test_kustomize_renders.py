"""kubectl's kustomize renders an edited kustomization to the promoted image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from kardinal.edits.images import PromotedImage
from kardinal.edits.kustomize.kustomization import set_images
from kardinal.objects.image_reference import ImageReference
from tests.support.kubectl import Kubectl

DIGEST = "sha256:" + "ab" * 32

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: x}}}}
  template:
    metadata: {{labels: {{app: x}}}}
    spec:
      containers:
      - {{name: main, image: "{image}"}}
"""

CASES = {
    # name: (image in the manifest, images in the kustomization, promoted reference)
    "added": ("ghcr.io/o/app:1", "", "ghcr.io/o/app:2.0.0"),
    "number": ("ghcr.io/o/app:1", "images: [{name: ghcr.io/o/app, newTag: '1'}]", "ghcr.io/o/app:123e4"),
    "float": ("ghcr.io/o/app:1", "images:\n- name: ghcr.io/o/app\n  newTag: x", "ghcr.io/o/app:1.10"),
    "digest": (
        "ghcr.io/o/app:1",
        "images:\n- name: ghcr.io/o/app\n  newTag: 1.2.3",
        f"ghcr.io/o/app@{DIGEST}",
    ),
    "both": ("ghcr.io/o/app:1", "images:\n- name: ghcr.io/o/app\n  newTag: 1.2.3", f"ghcr.io/o/app:2.0.0@{DIGEST}"),
    "renamed": ("placeholder", "images:\n- name: placeholder\n  newName: ghcr.io/o/app", "ghcr.io/o/app:2.0.0"),
    "by-artifact": ("artifact", "images:\n- name: artifact\n  newTag: x", "ghcr.io/o/app:2.0.0"),
    "short": ("nginx", "images: [{name: nginx}]", "docker.io/library/nginx:1.27.1"),
    "mirror": ("ghcr.io/o/app:1", "images: [{name: ghcr.io/o/app, newName: mirror/app}]", "ghcr.io/o/app:2.0.0"),
}
MIRRORED = {"mirror": "mirror/app:2.0.0"}


async def test_the_rendered_deployment_runs_the_promoted_image(
    kubectl: Callable[[Path], Kubectl], tmp_path: Path
) -> None:
    for name, (image, images, reference) in CASES.items():
        directory = tmp_path / "all" / name
        directory.mkdir(parents=True)
        (directory / "deployment.yaml").write_text(DEPLOYMENT.format(name=name, image=image))
        text = f"resources:\n- deployment.yaml\n{images}\n"
        promoted = PromotedImage("artifact", ImageReference.parse(reference))
        (directory / "kustomization.yaml").write_bytes(set_images(text.encode(), [promoted]))
    (tmp_path / "all" / "kustomization.yaml").write_text(yaml.safe_dump({"resources": list(CASES)}))

    rendered = await kubectl(tmp_path / "no-kubeconfig")("kustomize", str(tmp_path / "all"))

    found = {
        document["metadata"]["name"]: document["spec"]["template"]["spec"]["containers"][0]["image"]
        for document in yaml.safe_load_all(rendered)
    }
    assert found.keys() == CASES.keys()
    for name, (_, _, reference) in CASES.items():
        expected = ImageReference.parse(MIRRORED.get(name, reference))
        assert expected.runs(ImageReference.parse(found[name])), (name, found[name])
