"""The life of `kardinal local up`: who may start it, what it leaves on the disk, and how it ends."""

from __future__ import annotations

import shutil
import signal
import stat
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from kardinal.objects import SECRET
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from tests.agent.hosted import git_secret
from tests.resilience.processes import Local, Shell, make_namespace, state, wait_for
from tests.support.fake_gitea import fake_giteas
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import GitRepository


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.local_only("the directory and the process of a plane")
@pytest.mark.timeout(180)
async def test_plane_is_private_alone_on_its_directory_and_keeps_its_data(
    shell: Shell, repository: GitRepository, tmp_path: Path
) -> None:
    own = shell.home / ".kube" / "config"
    own.parent.mkdir()
    own.write_text("this is nobody else's business\n")
    directory = tmp_path / "local"
    local = Local(shell, directory, "--simulate")
    await local.up()
    first = local.process
    pid = local.pid

    assert f"export KUBECONFIG={local.kubeconfig}" in first.lines
    assert _mode(directory) == 0o700
    assert {path.name: oct(_mode(path)) for path in directory.iterdir() if _mode(path) & 0o077} == {}
    assert own.read_text() == "this is nobody else's business\n"
    assert list(own.parent.iterdir()) == [own]

    refused = await shell.run("kardinal", "local", "up", "--dir", directory, code=1)
    assert str(pid) in refused
    assert "Traceback" not in refused
    status = await shell.run("kardinal", "local", "status", "--dir", directory)
    (server,) = [line.split()[-1] for line in first.lines if line.startswith("API server")]
    stable = [line for line in first.lines if line.startswith(("export", "API server", "webhook", "metrics", "health"))]
    assert [line.partition("=")[0] for line in stable[:2]] == ["export KUBECONFIG", "export KARDINAL_URL"]
    assert f"{stable[1].partition('=')[2]}/api/v1/bundles" == stable[3].split()[-1]
    assert f"process {pid} runs on {directory}" in status
    assert status.splitlines()[1:] == stable
    (link,) = [line.split()[-1] for line in first.lines if line.startswith("web page")]
    url, _, code = link.partition("/ui/#code=")
    async with aiohttp.ClientSession() as browser:
        async with browser.post(f"{url}/api/ui/v1/session", json={"code": code}) as answer:
            assert (await answer.json())["viewer"]["user"] == "admin"
        async with browser.get(f"{url}/api/ui/v1/viewer") as answer:
            assert answer.status == 401, "a link of loopback is for the page that has opened it"

    async with local.client() as client:
        await client.create(PIPELINE, pipeline(repository, namespace="default"))
    await local.kill()
    assert "nothing runs" in await shell.run("kardinal", "local", "status", "--dir", directory, code=1)

    await local.up()
    assert f"API server   {server}" in local.process.lines
    assert stable == local.process.lines[: len(stable)]
    async with local.client() as client:
        assert (await client.get(PIPELINE, "my-app", "default"))["spec"]["environments"][0]["name"] == DEV
    local.process.send(signal.SIGINT)
    await _ended_cleanly(local)


@pytest.mark.local_only("the directory and the process of a plane")
@pytest.mark.timeout(180)
async def test_down_ends_it_as_sigterm_does(shell: Shell, tmp_path: Path) -> None:
    local = Local(shell, tmp_path / "local")
    await local.up()
    pid = local.pid
    said = await shell.run("kardinal", "local", "down", "--dir", local.directory)
    assert said == f"stopped process {pid}"
    await _ended_cleanly(local)
    assert "nothing runs" in await shell.run("kardinal", "local", "down", "--dir", local.directory)


async def _ended_cleanly(local: Local) -> None:
    assert await local.process.ended() == 0
    assert local.process.lines[-1] == "stopping"
    assert "Traceback" not in local.process.output


@pytest.mark.local_only("the programs of a plane")
@pytest.mark.timeout(180)
async def test_hosts_are_asked_as_often_as_it_is_told_to(
    shell: Shell, repository: GitRepository, tmp_path: Path
) -> None:
    git = shutil.which("git")
    assert git is not None, "repositories on other machines need git"
    shell.tools = (Path(git).parent,)
    local = Local(shell, tmp_path / "local", "--scm-poll-interval", "1s")
    with fake_giteas(tmp_path / "served", now=lambda: datetime.now(UTC)) as served:
        host = served(repository)
        reviewed = environment(DEV, approval="pr-review")
        way = pipeline(host.url, provider=host.provider, environments=[reviewed])
        way["spec"]["git"]["secretRef"] = {"name": "git"}
        await local.up()
        async with local.client() as client:
            await make_namespace(client)
            await client.create(SECRET, git_secret(host))
            await client.create(PIPELINE, way)
            await client.create(BUNDLE, bundle("my-app-1"))
            await wait_for(client, PROMOTION_STEP, state("WaitingForMerge"), f"my-app-1-{DEV}")
            # No webhook tells of it, and by default five minutes pass until the host is asked.
            host.merge(next(iter(host.pulls)))
            await wait_for(client, PROMOTION_STEP, state("HealthChecking"), f"my-app-1-{DEV}", namespace=TEAM)
        await local.kill()


async def test_interval_of_hosts_needs_the_controllers(shell: Shell, tmp_path: Path) -> None:
    command = ("kardinal", "local", "up", "--dir", tmp_path / "local", "--scm-poll-interval")
    assert "--scm-poll-interval needs the controllers" in await shell.run(*command, "1s", "--only", "plane", code=2)
    assert "is not a duration" in await shell.run(*command, "soon", code=2)
