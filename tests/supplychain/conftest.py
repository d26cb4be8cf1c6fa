"""A world in which supply chains run; the program ytt, and renderers that run it or a script in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.renderers.assets import find
from kardinal_supplychain.ytt import Ytt
from tests.resilience.processes import shell
from tests.supplychain.chains import Chains
from tests.support.world import World

__all__ = ["shell"]

StartYtt = Callable[..., Ytt]


@pytest.fixture
async def chains(world: World) -> Chains:
    return await Chains.start(world)


@pytest.fixture
def start_ytt() -> Iterator[StartYtt]:
    """Return a function that makes a renderer with the arguments of `Ytt`, which is closed after the test."""
    made: list[Ytt] = []

    def start(program: Path | None = None, **options: int) -> Ytt:
        made.append(Ytt(program, **options))
        return made[-1]

    yield start
    for ytt in made:
        ytt.close()


@pytest.fixture
def real_ytt() -> Path:
    """Return the path of the program; skip where it is not built."""
    found = find("ytt")
    if found is None:
        pytest.skip("there is no ytt: `make renderers` builds it")
    return found
