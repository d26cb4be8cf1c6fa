"""One fresh API server per test.

Starting one takes milliseconds; making its certificate authority takes longer, so all planes of a run share one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from kardinal.kube import JsonObject
from kardinal.localplane import Authority, LocalPlane
from tests.support.clock import VirtualClock

DEFINITIONS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The certificate authority of all planes of this run."""
    return Authority.create()


@pytest.fixture(scope="session")
def definitions() -> list[JsonObject]:
    """The CustomResourceDefinitions as they are shipped."""
    return [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in sorted(DEFINITIONS.glob("*.yaml"))]


@pytest.fixture
def weather() -> int | None:
    """The seed of the plane's bad weather, for tests that set it by `parametrize`; all others have a fair day."""
    return None


@pytest.fixture
async def plane(
    tmp_path: Path, clock: VirtualClock, authority: Authority, weather: int | None
) -> AsyncIterator[LocalPlane]:
    """An API server with its built-in kinds and namespaces, and nothing else."""
    plane = await LocalPlane.start(tmp_path / "plane", clock=clock, authority=authority, chaos=weather)
    yield plane
    await plane.stop()
