"""`kardinal-supplychain` as a process, killed between two writes: runs and Bundles are what they were."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kardinal_supplychain.api.kinds import WORKLOAD
from tests.resilience.processes import DEADLINE, Process, Shell, wait_for
from tests.resilience.proxy import HoldingProxy, holding_proxy
from tests.supplychain.chains import apply, install_kinds
from tests.supplychain.shop import MAY, is_ready, made, once_each, shop, shop_chain
from tests.support.accounts import make_account
from tests.support.world import World

KILLS = {0: "b", 3: "a", 4: "b"}
"""The value of a change, by the number of the write at which it ends: the first run, the Bundle, the status."""
_EVENTS = re.compile(r"/events\b")


class Mortal:
    """The program behind a proxy that holds one of its writes."""

    def __init__(self, shell: Shell, proxy: HoldingProxy, kubeconfig: Path) -> None:
        self._shell = shell
        self._proxy = proxy
        self._kubeconfig = kubeconfig
        self._process: Process | None = None

    async def start(self) -> None:
        self._process = await self._shell.start(
            "kardinal-supplychain",
            f"--kubeconfig={self._kubeconfig}",
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        )

    def hold(self, number: int, *, carried_out: bool) -> None:
        """Hold the write of this number, from 0; Events are not counted."""
        self._proxy.hold(_nth_write(number), carried_out=carried_out)

    async def kill(self) -> None:
        """Kill the process once its write is held."""
        assert self._process is not None
        async with asyncio.timeout(DEADLINE):
            await self._proxy.held.wait()
        self._process.kill()
        await self._process.ended()


def _nth_write(number: int) -> Callable[[str, str], bool]:
    left = number

    def is_wanted(method: str, path: str) -> bool:
        nonlocal left
        if method == "GET" or _EVENTS.search(path):
            return False
        left -= 1
        return left < 0

    return is_wanted


@pytest.fixture
async def mortal(world: World, shell: Shell, tmp_path: Path) -> AsyncIterator[Mortal]:
    await install_kinds(world)
    await make_account(world, "dev", *MAY, lent_to="supplychain")
    before = world.server.kubeconfig_for("supplychain")
    kubeconfig = tmp_path / "proxy.json"
    async with holding_proxy(before=before, kubeconfig=kubeconfig) as proxy:
        yield Mortal(shell, proxy, kubeconfig)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("carried_out", [False, True], ids=["before", "after"])
async def test_killed_process_makes_no_run_and_no_bundle_twice(
    world: World, mortal: Mortal, *, carried_out: bool
) -> None:
    """Killed before or after a write, the next process completes it and changes nothing else."""
    values = ["a"]
    await apply(world, *shop_chain(), shop("a"))
    await mortal.start()
    await wait_for(world.client, WORKLOAD, is_ready(1), "web")
    for write, value in KILLS.items():
        mortal.hold(write, carried_out=carried_out)
        await apply(world, shop(value))
        await mortal.kill()
        before = await made(world)
        await mortal.start()
        values.append(value)
        await wait_for(world.client, WORKLOAD, is_ready(len(values)), "web")
        assert before.objects <= (await made(world)).objects
    # By its answer to this change, the last process has seen all that was there when it started.
    await apply(world, shop("c"))
    await wait_for(world.client, WORKLOAD, is_ready(len(values) + 1), "web")
    assert (await made(world)).images == once_each(*values, "c")
