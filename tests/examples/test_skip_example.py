"""The command in the comment of the example about skipping, typed beside a controller."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE
from tests.bundles.reading import phase, reason
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.names import POLICIES, TEAM
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_a_bundle_that_skips_staging_without_a_token_ends_skip_denied(
    world: World, cli: Cli, repository: GitRepository
) -> None:
    gates = (EXAMPLES / "gates.yaml").read_text()
    (command,) = re.findall(r"(kardinal create bundle .*?) ends SkipDenied", gates)
    await start_controller(world)
    await world.apply(*map(_of_this_run, yaml.safe_load_all(gates)))
    pipeline = _of_this_run(yaml.safe_load((EXAMPLES / "pipeline.yaml").read_text()))
    pipeline["spec"]["git"]["url"] = repository.url
    await world.apply(pipeline)
    head = repository.head()
    words = command.replace("…", "ghcr.io/acme/my-app:1.29.0").split()[1:]
    created = await cli(*words, "-o", "name")
    denied = await world.wait_for(BUNDLE, created.strip().partition("/")[2], phase("SkipDenied"))
    assert reason(denied) == "SkipDenied"
    assert await world.objects(GRAPH) == []
    assert repository.head() == head


def _of_this_run(example: dict[str, Any]) -> dict[str, Any]:
    """Return an example in the namespaces of this run."""
    namespaces = {"default": TEAM, "platform-policies": POLICIES}
    return example | {"metadata": example["metadata"] | {"namespace": namespaces[example["metadata"]["namespace"]]}}
