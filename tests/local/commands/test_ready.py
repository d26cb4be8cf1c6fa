"""Readiness of `kardinal local up`, as a script that waits for its kubeconfig finds it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kardinal.promotion.kinds import PIPELINE
from tests.local.plane.wire import Http, session_for
from tests.resilience.processes import DEADLINE, Local, Process, Shell
from tests.support.commands import KARDINAL

pytestmark = [pytest.mark.local_only("the directory and the process of a plane"), pytest.mark.timeout(180)]

LOOK_AGAIN = 0.01
PIPELINES = f"/apis/{PIPELINE.group}/{PIPELINE.version}/{PIPELINE.plural}"
NAMESPACES = "/api/v1/namespaces"


async def _until_there(path: Path, process: Process) -> None:
    async with asyncio.timeout(DEADLINE):
        while not path.exists():
            assert process.running, process.output
            await asyncio.sleep(LOOK_AGAIN)


@pytest.mark.parametrize(("options", "served"), [((), PIPELINES), (("--only", "plane"), NAMESPACES)])
async def test_all_is_served_as_soon_as_there_is_a_kubeconfig(
    shell: Shell, tmp_path: Path, options: tuple[str, ...], served: str
) -> None:
    kubeconfig = tmp_path / "local" / "kubeconfig"
    process = await shell.start(str(KARDINAL), "local", "up", "--port", "0", "--dir", kubeconfig.parent, *options)
    await _until_there(kubeconfig, process)
    async with session_for(kubeconfig) as session:
        http = Http(session)
        assert (await http.get("/readyz")).body == b"ok"
        assert (await http.get(served)).status == 200


async def test_the_kubeconfig_of_an_earlier_run_says_nothing_about_the_next(shell: Shell, tmp_path: Path) -> None:
    local = Local(shell, tmp_path / "local")
    await local.up()
    await local.kill()
    assert local.kubeconfig.exists()
    await local.begin()
    async with asyncio.timeout(DEADLINE), session_for(local.kubeconfig_for("installer")) as session:
        http = Http(session)
        ready = False
        while not ready:
            there = local.kubeconfig.exists()
            ready = (await http.get("/readyz")).status == 200
            assert ready or not there
        await _until_there(local.kubeconfig, local.process)
        assert (await http.get(PIPELINES)).status == 200
