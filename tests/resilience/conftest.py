"""Everything running in one world: the controller with its agent, the simulator, and a repository to promote in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import DEPLOYMENT
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.resilience.installation import install
from tests.resilience.processes import shell
from tests.support.objects import namespace
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import APPLICATION, IMAGE, GitRepository
from tests.support.world import World

__all__ = ["install", "shell"]

JsonObject = dict[str, Any]


@pytest.fixture
async def running(world: World) -> ControlPlane:
    """Return the programs of `kardinal local up --simulate`, on the world's clock."""
    controller = await start_controller(world)
    await start_simulator(world)
    return controller


@pytest.fixture
def phase(world: World) -> Callable[..., Awaitable[JsonObject]]:
    """Live until a Bundle is in a phase."""

    async def reached(name: str, wanted: str) -> JsonObject:
        return await world.wait_for(BUNDLE, name, lambda bundle: bundle.get("status", {}).get("phase") == wanted)

    return reached


@pytest.fixture
def state(world: World) -> Callable[..., Awaitable[JsonObject]]:
    """Live until the step of a Bundle in an environment is in a state."""

    async def reached(bundle: str, environment: str, wanted: str) -> JsonObject:
        return await world.wait_for(
            PROMOTION_STEP, f"{bundle}-{environment}", lambda step: step.get("status", {}).get("state") == wanted
        )

    return reached


@pytest.fixture
async def controller_alone(world: World) -> ControlPlane:
    """Return the controller with its agent, and nothing that deploys."""
    return await start_controller(world)


@pytest.fixture
def deployed(world: World, repository: GitRepository) -> Callable[[str], Awaitable[None]]:
    """Deploy what an environment's overlay says, once, as a person with kubectl would."""

    async def deploy(environment: str) -> None:
        await world.until(lambda: repository.promotions(environment))
        (tag,) = [line.split()[1].strip('"') for line in _overlay(repository, environment) if "newTag" in line]
        await world.apply(namespace(environment), _deployment(environment, f"{IMAGE}:{tag}"))
        if world.server.runs_workloads:
            return
        status = {
            "observedGeneration": 1,
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": 1,
            "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
        }
        await world.client.patch(
            DEPLOYMENT, APPLICATION, environment, {"status": status}, kind=PatchType.MERGE, subresource="status"
        )

    return deploy


def _overlay(repository: GitRepository, environment: str) -> list[str]:
    return repository.read(f"environments/{environment}/kustomization.yaml").splitlines()


def _deployment(namespace_: str, image: str) -> JsonObject:
    labels = {"app": APPLICATION}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": APPLICATION, "namespace": namespace_},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}},
        },
    }
