"""A world in which supply chains run."""

from __future__ import annotations

import pytest

from tests.supplychain.chains import Chains
from tests.support.world import World


@pytest.fixture
async def chains(world: World) -> Chains:
    return await Chains.start(world)
