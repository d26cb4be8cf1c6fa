"""One fresh API server per test.

Starting one takes milliseconds. Making its certificate authority takes longer, so all planes of a run share one; and so
does putting into it what kardinal needs, so such a plane begins with a copy of a directory in which that was done.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from kardinal.kube import Client, load_connection
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, JsonObject
from kardinal_local.plane import Authority, LocalPlane
from kardinal_local.stack import until_served
from tests.support.clock import VirtualClock
from tests.support.identities import RESOURCES, rights
from tests.support.names import POLICIES, TEAM
from tests.support.objects import namespace
from tests.support.secret_values import look_at_change

DEFINITIONS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session")
def authority() -> Authority:
    """Return the certificate authority of all planes of this run."""
    return Authority.create()


def shipped_definitions() -> list[JsonObject]:
    """Return the CustomResourceDefinitions as they are shipped, which takes a tenth of making them from the models."""
    return [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in sorted(DEFINITIONS.glob("*.yaml"))]


@pytest.fixture(scope="session")
def definitions() -> list[JsonObject]:
    """Return the CustomResourceDefinitions as they are shipped."""
    return shipped_definitions()


@pytest.fixture
def fault_seed() -> int | None:
    """Return the seed of injected faults, for tests that set it by `parametrize`; without one there are none."""
    return None


@pytest.fixture
async def plane(
    tmp_path: Path, clock: VirtualClock, authority: Authority, fault_seed: int | None
) -> AsyncIterator[LocalPlane]:
    """Run an API server with its built-in kinds and namespaces, and nothing else."""
    plane = await LocalPlane.start(tmp_path / "plane", clock=clock, authority=authority, chaos=fault_seed)
    plane._store.committed.listen(look_at_change)
    yield plane
    await plane.stop()


@pytest.fixture(scope="session")
def prepared_directory(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, definitions: list[JsonObject]
) -> Path:
    """Return the directory of a plane on which kardinal could be started."""
    directory = tmp_path_factory.mktemp("prepared") / "plane"
    asyncio.run(_prepare(directory, authority=authority, definitions=definitions))
    return directory


async def _prepare(directory: Path, *, authority: Authority, definitions: list[JsonObject]) -> None:
    plane = await LocalPlane.start(directory, clock=VirtualClock(), authority=authority)
    async with Client(await load_connection(plane.kubeconfig), user_agent="kardinal-test") as client:
        await asyncio.gather(
            *(client.create(CUSTOM_RESOURCE_DEFINITION, definition) for definition in definitions),
            *(client.create(NAMESPACE, namespace(name)) for name in (TEAM, POLICIES)),
        )
        for document in rights():
            await client.apply(RESOURCES[document["kind"]], document, field_manager="kardinal-test", force=True)
        await until_served(client, {definition["metadata"]["name"] for definition in definitions})
    await plane.stop()


@pytest.fixture
def copied_directory(prepared_directory: Path, tmp_path: Path) -> Path:
    """Return a copy of that directory, made before there is an event loop whose detector looks at each file."""
    return shutil.copytree(prepared_directory, tmp_path / "plane")


@pytest.fixture
async def prepared_plane(
    copied_directory: Path, clock: VirtualClock, authority: Authority, fault_seed: int | None
) -> AsyncIterator[LocalPlane]:
    """Run an API server that kardinal could be started on."""
    plane = await LocalPlane.start(copied_directory, clock=clock, authority=authority, chaos=fault_seed)
    plane._store.committed.listen(look_at_change)
    yield plane
    await plane.stop()
