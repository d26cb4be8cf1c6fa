"""The guide to Gitea shows what happens: a reviewed promotion with its Secret, its `git` and its webhook."""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.objects import SECRET, JsonObject
from kardinal.promotion.kinds import BUNDLE
from tests.agent.promotion_steps import deploy
from tests.examples.test_webhook_commands import NEWEST, run
from tests.hosts.host import PATIENCE
from tests.support.gitea import GiteaProject
from tests.support.kubectl import Kubectl
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.secret_values import know_secret
from tests.support.world import World

GUIDE = (Path(__file__).parents[2] / "docs/guides/gitea.md").read_text()
MANIFESTS = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)]
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)

SECOND = timedelta(seconds=1)


def git_secret(project: GiteaProject) -> JsonObject:
    """Return the Secret of the guide for a real host."""
    (made,) = [each for each in MANIFESTS if each.get("kind") == "Secret"]
    made["metadata"]["namespace"] = TEAM
    made["metadata"]["annotations"]["kardinal.io/hosts"] = project.server.url.partition("://")[2]
    values = {"token": project.people["bot"].token, "ca.crt": project.server.authority}
    assert made["stringData"].keys() == values.keys()
    del made["stringData"]
    return {**made, "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}}


def way(project: GiteaProject) -> JsonObject:
    """Return a Pipeline with the `git` of the guide."""
    git = next(each["spec"]["git"] for each in MANIFESTS if "webhookSecretRef" in each.get("spec", {}).get("git", {}))
    made = pipeline(project.url, environments=[environment(DEV, approval="pr-review")])
    made["spec"]["git"] = {**git, "url": project.url}
    return made


async def until(asked: Callable[[], Any]) -> Any:
    """Return the answer once there is one; the host delivers in its own time."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await asked()):
            await asyncio.sleep(0.1)
    return found


@pytest.mark.virtual_time("seconds until progress is written")
@pytest.mark.parametrize("kubectl", [NEWEST], indirect=True)
async def test_a_reviewed_promotion_by_the_commands_of_the_guide(
    gitea_project: GiteaProject, world: World, kubectl: Callable[[Path], Kubectl], tmp_path: Path
) -> None:
    project = gitea_project
    project.protect("main", enable_status_check=True, status_check_contexts=["kardinal"])

    cluster = kubectl(world.server.kubeconfig)
    (tmp_path / "kubectl").symlink_to(cluster.binary)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "NAMESPACE": TEAM}
    await run("sh", COMMANDS, KUBECONFIG=str(world.server.kubeconfig), **variables)
    stored = (await world.get(SECRET, "gitea-webhook"))["data"]["webhookSecret"]
    secret = base64.b64decode(stored).decode()
    know_secret(secret)

    controller = await start_controller(world)
    target = f"{controller.api_url}/webhooks/gitea/{TEAM}/my-app"
    hook = {"url": target, "content_type": "json", "secret": secret}
    events = ["pull_request", "push"]
    project.api("POST", f"{project.path}/hooks", {"type": "gitea", "active": True, "events": events, "config": hook})
    await deploy(world)
    await world.apply(git_secret(project), way(project), bundle("my-app-1", tag="1.1.0"))

    async def proposed() -> JsonObject:
        await world.live(SECOND)
        entry = (await world.get(BUNDLE, "my-app-1")).get("status", {}).get("environments", {}).get(DEV, {})
        return entry if entry.get("state") == "WaitingForMerge" else {}

    entry = await until(proposed)
    number = entry["prURL"].rpartition("/")[2]
    merge = f"{project.path}/pulls/{number}/merge"

    async def merged() -> bool:
        # Gitea compares branches and reads statuses in the background.
        status, _ = await asyncio.to_thread(project.ask, "POST", merge, {"Do": "squash"}, by="alice")
        return status == 200

    await until(merged)

    async def verified() -> bool:
        await world.live(SECOND)
        return bool((await world.get(BUNDLE, "my-app-1"))["status"]["phase"] == "Verified")

    await until(verified)
