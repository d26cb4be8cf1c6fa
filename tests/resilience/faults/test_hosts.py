"""Whatever a host does to whatever a promotion asks of it, the change lands once or the status says why not."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from kardinal.objects import JsonObject
from tests.agent.hosted import hosted_step
from tests.agent.promotion_steps import create, is_held, reached, state, wake
from tests.resilience.faults import strikes
from tests.resilience.faults.cells import CELLS, FLOWS, GITHUB, Cell
from tests.resilience.faults.promotions import assert_no_secret, prepare, start, survive
from tests.resilience.faults.strikes import Day
from tests.support.names import DEV
from tests.support.world import World

DEADLY = (strikes.die_before, strikes.die_after)
SLOW = (strikes.drip, strikes.stall)
TABLE = [
    *(pytest.param("gitea", cell, id=f"gitea-{cell}") for cell in CELLS),
    *(pytest.param("github", cell, id=f"github-{cell}", marks=pytest.mark.every_host) for cell in GITHUB),
]


@pytest.mark.virtual_time("lives through Retry-After and the back-off")
@pytest.mark.parametrize(("day", "cell"), TABLE, indirect=["day"])
async def test_a_fault_costs_no_change_and_makes_none_twice(
    world: World, day: Day, monkeypatch: pytest.MonkeyPatch, cell: Cell
) -> None:
    if cell.strike in SLOW:
        monkeypatch.setattr("kardinal_agent.execution.effects.STEP_DEADLINE", 0.75)
    day.strikes(cell.effect, cell.strike, times=cell.times, spared=cell.spared)
    with capture_logs() as lines:
        agent = await start(world, day)
        await prepare(world, day)
        await create(world, hosted_step(day.host, **FLOWS[cell.flow]))
        if cell.strike in DEADLY:
            await survive(world, day, agent)
        status = await ended(world, day, cell)

    assert cell.says in status["message"]
    if cell.state == "Failed":
        assert status["conditions"][0]["reason"] == cell.reason
    repository = day.host.repository
    assert len(repository.promotions(DEV)) == cell.commits
    assert len(day.host.proposals()) == cell.pulls
    calls = [line for line in day.seen if re.search(cell.effect, line)]
    assert 1 <= day.struck <= len(calls) <= cell.calls, calls
    await assert_no_secret(world, lines)


async def ended(world: World, day: Day, cell: Cell) -> JsonObject:
    """Live until the promotion has ended; a person merges what waits for one."""
    if cell.state == "Verified" and cell.flow == "review":
        await world.until(lambda: day.struck >= cell.times)
        await reached(world, "WaitingForMerge")
        day.host.merge(1)
        await wake(world)
    if cell.state == "Held":
        await world.until(lambda: is_held(world))
        return await state(world)
    return await reached(world, cell.state)


@pytest.mark.parametrize(("cells", "least"), [(CELLS, 60), (GITHUB, 40)])
def test_no_two_cells_of_a_host_are_the_same(cells: Sequence[Cell], least: int) -> None:
    assert len(cells) >= least
    assert len({(cell.effect, cell.strike, cell.flow, cell.times, cell.spared) for cell in cells}) == len(cells)
