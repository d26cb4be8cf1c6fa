"""The small reader of kustomizations: what it knows, and that it says what it does not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from kardinal.git import GitRunner, Repositories, create_bare_repository
from kardinal_local.simulator.kustomization import Rendered, RenderError, render
from tests.support.clock import VirtualClock

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


Render = Callable[..., Awaitable[Rendered]]


@pytest.fixture
async def rendered(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Render]:
    """Yield what the reader makes of `env/dev`, given its overlay, in a repository of its own."""
    runner = GitRunner(workers=1)
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=True)

    async def of(overlay: bytes, path: str = "env/dev") -> Rendered:
        bare = tmp_path / "gitops.git"
        files = {
            "base/kustomization.yaml": b"resources: [deployment.yaml]\n",
            "base/deployment.yaml": DEPLOYMENT,
            "env/dev/kustomization.yaml": overlay,
        }
        await runner.run(lambda: create_bare_repository(bare, files, message="Begin", clock=clock))
        repository = repositories.open(bare.as_uri())
        head = await repository.head("main")
        return await repository.inspect(head.commit, lambda tree: render(tree, path))

    yield of
    await repositories.close()
    runner.close()


def _images(result: Rendered) -> list[str]:
    (deployment,) = result.objects
    pod = deployment["spec"]["template"]["spec"]
    return [container["image"] for container in [*pod["initContainers"], *pod["containers"]]]


async def test_resources_namespace_and_images_are_applied(rendered: Render) -> None:
    overlay = b"""
namespace: dev
resources: [../../base]
images: [{name: ghcr.io/acme/app, newTag: "1.0"}]
"""
    result = await rendered(overlay)
    assert result.objects[0]["metadata"]["namespace"] == "dev"
    assert _images(result) == ["ghcr.io/acme/app:1.0", "ghcr.io/acme/app:1.0", "localhost:5000/proxy:1"]


@pytest.mark.parametrize(
    ("entry", "image"),
    [
        (b"{name: ghcr.io/acme/app, newName: mirror.example.com/app}", "mirror.example.com/app:0.1"),
        (b"{name: ghcr.io/acme/app, digest: 'sha256:abc123'}", "ghcr.io/acme/app@sha256:abc123"),
        (b"{name: localhost:5000/proxy, newTag: 2}", "ghcr.io/acme/app:0.1"),
    ],
)
async def test_an_image_entry_changes_name_tag_or_digest(rendered: Render, entry: bytes, image: str) -> None:
    assert _images(await rendered(b"resources: [../../base]\nimages: [" + entry + b"]\n"))[1] == image


async def test_unknown_field_is_named(rendered: Render) -> None:
    result = await rendered(b"resources: [../../base]\npatches: [{path: p.yaml}]\nnamePrefix: x-\n")
    assert result.unknown == ["env/dev/kustomization.yaml: patches", "env/dev/kustomization.yaml: namePrefix"]


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
async def test_a_directory_that_cannot_be_rendered_says_why(rendered: Render, overlay: bytes, message: str) -> None:
    with pytest.raises(RenderError, match=message):
        await rendered(overlay)


async def test_a_directory_without_a_kustomization_is_named(rendered: Render) -> None:
    with pytest.raises(RenderError, match=r"env/prod: there is no kustomization\.yaml"):
        await rendered(b"{}", "env/prod")
