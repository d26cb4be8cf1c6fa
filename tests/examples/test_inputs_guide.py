"""The guide to inputs shows what happens: its Pipeline copies the bases of a tag and sets the image."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from tests.agent.inputs import platform_repository
from tests.support.names import DEV
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/guides/inputs.md").read_text(), re.DOTALL | re.MULTILINE)


async def test_the_pipeline_of_the_guide_takes_in_the_bases_of_a_tag(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    made = yaml.safe_load(BLOCKS[0])
    kustomization = BLOCKS[1]
    platform = platform_repository(tmp_path)
    web = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: a, image: %s}]}}}\n"
    platform.commit({"bases/web/service.yaml": web % IMAGE})
    platform.git("tag", "v1.4.0", "main")
    platform.commit({"bases/web/service.yaml": "later\n"})
    here = f"environments/{DEV}"
    text = kustomization.replace("ghcr.io/myorg/my-app", IMAGE)
    repository.commit({f"{here}/kustomization.yaml": text, f"{here}/base/old.yaml": "old\n"})
    (environment,) = made["spec"]["environments"]
    assert environment["steps"][1]["config"]["url"] == "https://github.com/myorg/platform"
    environment["steps"][1]["config"]["url"] = platform.url
    await start_controller(world)
    await world.apply(pipeline(repository, environments=[environment | {"name": DEV}]), bundle("app-1"))
    step = await world.wait_for(
        PROMOTION_STEP,
        names.step_name("app-1", DEV),
        lambda step: (step.get("status") or {}).get("state") in ("HealthChecking", "Failed"),
    )
    assert step["status"]["state"] == "HealthChecking", step["status"]["message"]
    assert repository.files(here) == ["base/kustomization.yaml", "base/service.yaml", "kustomization.yaml"]
    assert repository.read(f"{here}/base/service.yaml") == web % IMAGE
    assert repository.read(f"{here}/kustomization.yaml") == text.replace("1.0.0", "1.1.0")
    assert len(repository.promotions(DEV)) == 1
