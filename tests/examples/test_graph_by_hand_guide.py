"""The objects of docs/guides/graph-by-hand.md are those that a Graph by hand needs."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from kardinal.promotion.api import Bundle
from kardinal.promotion.kinds import BUNDLE
from tests.support.authored import authored_graph
from tests.support.identities import RESOURCES
from tests.support.names import DEV, TEAM
from tests.support.objects import pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```yaml\n(.*?)^```", (ROOT / "docs/guides/graph-by-hand.md").read_text(), re.DOTALL | re.MULTILINE
)


async def test_objects_of_the_guide_let_a_graph_promote_a_bundle(world: World, repository: GitRepository) -> None:
    rights, release = BLOCKS
    for obj in yaml.safe_load_all(rights.replace("namespace: team", f"namespace: {TEAM}")):
        await world.client.apply(RESOURCES[obj["kind"]], obj, field_manager="test", force=True)
    await world.apply(pipeline(repository, provider="git", environments=[DEV]))
    made = yaml.safe_load(release.replace("namespace: team", f"namespace: {TEAM}"))
    await world.apply(made)
    name = Bundle.model_validate(made).metadata.name
    await start_controller(world)
    await world.apply(await authored_graph(world, name))
    await world.wait_for(BUNDLE, name, lambda obj: obj.get("status", {}).get("phase") == "Promoting")
