"""The sample of `kardinal sample` in a running `kardinal local up`, as the guide makes it."""

from __future__ import annotations

from pathlib import Path

import yaml

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE
from tests.resilience.processes import Local, wait_for
from tests.support.objects import bundle

__all__ = ["NAMESPACE", "POLICIES", "apply", "create", "link_of", "make_sample", "reaches"]

NAMESPACE = "default"
POLICIES = "platform-policies"
"""The namespace of the gates of the organisation."""
KINDS = {resource.kind: resource for resource in (PIPELINE, POLICY_GATE)}


async def link_of(local: Local) -> str:
    """Return the link that `kardinal local up` printed, with its one-time code."""
    line = await local.process.says("web page")
    return line.split()[-1]


async def make_sample(local: Local, directory: Path) -> None:
    """Make the sample's repository, Pipeline and gates."""
    await local.kardinal("sample", str(directory))
    for file in ("gates.yaml", "pipeline.yaml"):
        await apply(local, *yaml.safe_load_all((directory / file).read_text()))


async def apply(local: Local, *objects: JsonObject) -> None:
    """Create or change Pipelines and gates."""
    async with local.client() as client:
        for obj in objects:
            obj["metadata"].setdefault("namespace", NAMESPACE)
            await client.apply(KINDS[obj["kind"]], obj, field_manager="test", force=True)


async def create(local: Local, version: str, *, pipeline: str = "podinfo") -> str:
    """Create a Bundle of podinfo; return its name."""
    name = f"{pipeline}-{version.replace('.', '-')}"
    image = "ghcr.io/acme/podinfo"
    async with local.client() as client:
        await client.create(BUNDLE, bundle(name, image=image, tag=version, pipeline=pipeline, namespace=NAMESPACE))
    return name


async def reaches(local: Local, bundle: str, **states: str) -> None:
    """Return when a Bundle is in these states, such as `prod="WaitingForMerge"`."""

    def is_there(found: JsonObject) -> bool:
        environments = (found.get("status") or {}).get("environments") or {}
        return all((environments.get(name) or {}).get("state") == state for name, state in states.items())

    async with local.client() as client:
        await wait_for(client, BUNDLE, is_there, bundle, namespace=NAMESPACE)
