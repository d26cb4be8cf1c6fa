"""Hostile others beside the real programs: `/healthz` answers, memory stays bounded, and honest promotions go on.

`python -m hack.bench.hostile` measures all places, for longer and one behaviour after the other; here those that cost
most come at once.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from kardinal.processes.memory_shares import children_memory
from tests.support.hostile.beside import running
from tests.support.hostile.measuring import measured
from tests.support.hostile.places import PLACES, Place
from tests.support.hostile.server import TRAP

SEED = 23
BOUND = 64 << 20
CHILDREN = 2 * children_memory()
"""Bytes of children: renderers and Git transfers have a share each."""

TESTED = ("webhook and probes", "API of a host", "registry", "custom step", "cluster of health", "Git transfer")
"""Places that are tested: those that talk with servers or clients of others. The bench has all of them."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory of processes, and addresses of this machine"),
    pytest.mark.local_only("processes of a plane"),
    pytest.mark.timeout(300),
]


@pytest.mark.parametrize("place", [place for place in PLACES if place.name in TESTED], ids=lambda place: place.name)
async def test_hostile_server_costs_a_bounded_part_of_the_program(place: Place) -> None:
    with tempfile.TemporaryDirectory(prefix="kardinal-hostile-") as name:
        async with running(Path(name) / "run", seed=SEED) as beside, AsyncExitStack() as begun:
            with measured(beside.process.pid, beside.probes) as cost:
                for behaviour in place.part:
                    await begun.enter_async_context(place.begin(beside, behaviour, SEED))
                await beside.promote()
            assert TRAP not in await beside.requests()
    assert cost.asked > 0
    assert cost.failed == 0
    assert cost.memory <= BOUND
    assert cost.children <= CHILDREN
