"""The sample of `kardinal sample` in a running `kardinal local up`, as the guide makes it."""

from __future__ import annotations

from pathlib import Path

import yaml

from kardinal.promotion.kinds import PIPELINE, POLICY_GATE
from tests.resilience.processes import Local, Shell

__all__ = ["create", "link_of", "make_sample"]

KINDS = {resource.kind: resource for resource in (PIPELINE, POLICY_GATE)}


async def link_of(local: Local) -> str:
    """Return the link that `kardinal local up` printed, with its one-time code."""
    line = await local.process.says("web page")
    return line.split()[-1]


async def make_sample(shell: Shell, local: Local, directory: Path) -> None:
    """Make the sample's repository, Pipeline and gates."""
    await shell.run("kardinal", "sample", directory, kubeconfig=local.kubeconfig)
    async with local.client() as client:
        for file in ("gates.yaml", "pipeline.yaml"):
            for obj in yaml.safe_load_all((directory / file).read_text()):
                obj["metadata"].setdefault("namespace", "default")
                await client.apply(KINDS[obj["kind"]], obj, field_manager="test")


async def create(shell: Shell, local: Local, version: str) -> None:
    """Create a Bundle of podinfo, as CI does."""
    image = f"ghcr.io/acme/podinfo:{version}"
    await shell.run("kardinal", "create", "bundle", "podinfo", "--image", image, kubeconfig=local.kubeconfig)
