"""The small reader of kustomizations: what it knows, and that it says what it does not."""

from __future__ import annotations

import pytest

from kardinal.localplane.simulator.kustomization import RenderError, render

DEPLOYMENT = b"""
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  template:
    spec:
      initContainers: [{name: init, image: ghcr.io/acme/app}]
      containers:
        - {name: app, image: "ghcr.io/acme/app:0.1"}
        - {name: sidecar, image: "localhost:5000/proxy:1"}
"""


class Files:
    """A tree in memory."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)

    def is_dir(self, path: str) -> bool:
        return any(name.startswith(f"{path}/") for name in self._files)

    def entries(self, directory: str) -> list[str]:
        prefix = f"{directory}/" if directory else ""
        return sorted({name.removeprefix(prefix).split("/")[0] for name in self._files if name.startswith(prefix)})


def _tree(overlay: bytes) -> Files:
    return Files(
        {
            "base/kustomization.yaml": b"resources: [deployment.yaml]\n",
            "base/deployment.yaml": DEPLOYMENT,
            "env/dev/kustomization.yaml": overlay,
        }
    )


def _images(overlay: bytes) -> list[str]:
    (deployment,) = render(_tree(overlay), "env/dev").objects
    pod = deployment["spec"]["template"]["spec"]
    return [container["image"] for container in [*pod["initContainers"], *pod["containers"]]]


def test_resources_namespace_and_images_are_applied() -> None:
    overlay = b"""
namespace: dev
resources: [../../base]
images: [{name: ghcr.io/acme/app, newTag: "1.0"}]
"""
    (deployment,) = render(_tree(overlay), "env/dev").objects
    assert deployment["metadata"]["namespace"] == "dev"
    assert _images(overlay) == ["ghcr.io/acme/app:1.0", "ghcr.io/acme/app:1.0", "localhost:5000/proxy:1"]


@pytest.mark.parametrize(
    ("entry", "image"),
    [
        (b"{name: ghcr.io/acme/app, newName: mirror.example.com/app}", "mirror.example.com/app:0.1"),
        (b"{name: ghcr.io/acme/app, digest: 'sha256:abc123'}", "ghcr.io/acme/app@sha256:abc123"),
        (b"{name: localhost:5000/proxy, newTag: 2}", "ghcr.io/acme/app:0.1"),
    ],
)
def test_an_image_entry_changes_name_tag_or_digest(entry: bytes, image: str) -> None:
    assert _images(b"resources: [../../base]\nimages: [" + entry + b"]\n")[1] == image


def test_what_it_does_not_know_is_named() -> None:
    rendered = render(_tree(b"resources: [../../base]\npatches: [{path: p.yaml}]\nnamePrefix: x-\n"), "env/dev")
    assert rendered.unknown == ["env/dev/kustomization.yaml: patches", "env/dev/kustomization.yaml: namePrefix"]


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        (b"resources: [missing.yaml]", "resource missing.yaml does not exist"),
        (b"resources: [https://example.com/x]", "outside the repository"),
        (b"resources: [../../../etc/passwd]", "outside the repository"),
        (b"resources: [.]", "more than"),
        (b"resources: [a\n", "not YAML"),
        (b"- a list", "not a kustomization"),
    ],
)
def test_a_directory_that_cannot_be_rendered_says_why(overlay: bytes, message: str) -> None:
    with pytest.raises(RenderError, match=message):
        render(_tree(overlay), "env/dev")


def test_a_directory_without_a_kustomization_is_named() -> None:
    with pytest.raises(RenderError, match=r"env/prod: there is no kustomization\.yaml"):
        render(_tree(b"{}"), "env/prod")
