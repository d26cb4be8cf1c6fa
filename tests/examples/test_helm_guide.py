"""The guide to Helm charts shows what happens: its Pipelines are promoted on its values files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/guides/helm.md").read_text(), re.DOTALL | re.MULTILINE)
FILES = {found[1]: block for block in BLOCKS if (found := re.match(r"# (environments/\S+)\n", block))}
PIPELINES = {
    made["spec"]["environments"][0]["name"]: made
    for block in BLOCKS
    if (made := yaml.safe_load(block)).get("kind") == "Pipeline"
    and made["spec"]["environments"][0]["update"]["strategy"] == "helm"
}
IMAGES = [
    {"name": "my-app", "reference": "ghcr.io/acme/my-app:1.1.0"},
    {"name": "web", "reference": "ghcr.io/acme/web:2.1.0"},
]


@pytest.mark.parametrize(("environment", "images"), [("dev", IMAGES[:1]), ("prod", IMAGES)])
async def test_the_values_of_the_guide_take_the_images(
    world: World, repository: GitRepository, environment: str, images: list[dict[str, str]]
) -> None:
    (path, text), *_ = [(path, text) for path, text in FILES.items() if path.startswith(f"environments/{environment}/")]
    repository.commit({path: text})
    await start_controller(world)
    environments = PIPELINES[environment]["spec"]["environments"]
    await world.apply(pipeline(repository, environments=environments), bundle("app-1", artifacts={"images": images}))
    step = await world.wait_for(
        PROMOTION_STEP,
        names.step_name("app-1", environment),
        lambda step: (step.get("status") or {}).get("state") in ("HealthChecking", "Failed"),
    )
    assert step["status"]["state"] == "HealthChecking", step["status"]["message"]
    assert repository.read(path) == text.replace("1.0.0", "1.1.0").replace("2.0.0", "2.1.0")
