"""`kardinal ui` serves the page of the user of a kubeconfig, and ends at Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kardinal.objects import NAMESPACE
from kardinal.promotion.kinds import PIPELINE, POLICY_GATE
from kardinal_controller.ui.access import SESSION_HEADER
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.commands import KARDINAL
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.people import people_of
from tests.support.promoted import step_of
from tests.support.world import World
from tests.ui.viewers import OTHER, answer_of

REPOSITORY = "https://git.example.com/acme/gitops.git"


class Opened:
    """A page that a person has opened by its link."""

    def __init__(
        self, process: asyncio.subprocess.Process, session: aiohttp.ClientSession, url: str, code: str
    ) -> None:
        self.process = process
        self._session = session
        self._url = url
        self.code = code
        self._headers: dict[str, str] = {}

    async def log_in(self) -> tuple[int, Any]:
        async with self._session.post(f"{self._url}/api/ui/v1/session", json={"code": self.code}) as answer:
            status, found = await answer_of(answer)
        self._headers = {SESSION_HEADER: found.get("secret", "")}
        return status, found

    async def rows(self) -> list[str]:
        async with self._session.get(f"{self._url}/api/ui/v1/pipelines", headers=self._headers) as answer:
            return [f"{each['namespace']}/{each['name']}" for each in (await answer.json())["items"]]

    async def environment(self, name: str) -> Any:
        url = f"{self._url}/api/ui/v1/pipelines/{TEAM}/my-app/environments/{name}"
        async with self._session.get(url, headers=self._headers) as answer:
            return await answer.json()

    async def press(self, action: str) -> int:
        body = {"namespace": TEAM, "pipeline": "my-app"}
        url = f"{self._url}/api/ui/v1/actions/{action}"
        async with self._session.post(url, json=body, headers=self._headers) as answer:
            return answer.status

    async def end(self) -> tuple[int | None, str]:
        """Press Ctrl-C; returns the exit code, and what was printed beside the link."""
        self.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(20):
            _, told = await self.process.communicate()
        return self.process.returncode, told.decode()


async def start(kubeconfig: Path, *arguments: str) -> asyncio.subprocess.Process:
    environment = {"PATH": os.environ["PATH"], "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    return await asyncio.create_subprocess_exec(
        KARDINAL,
        "ui",
        *arguments,
        env=environment | {"LANG": "C.UTF-8", "USER": "tester"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def opened(kubeconfig: Path, *arguments: str) -> AsyncIterator[Opened]:
    process = await start(kubeconfig, "--no-browser", *arguments)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30), aiohttp.ClientSession() as session:
            url, _, code = (await process.stdout.readline()).decode().strip().partition("/ui/#code=")
            yield Opened(process, session, url, code)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def attempt(kubeconfig: Path, *arguments: str) -> tuple[int | None, str]:
    process = await start(kubeconfig, *arguments)
    async with asyncio.timeout(30):
        _, told = await process.communicate()
    return process.returncode, told.decode()


@pytest.fixture
async def team(world: World, commands: None) -> None:
    """Make a Pipeline in each of two namespaces, and the roles of deploy/."""
    namespace = {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": OTHER}}
    await world.client.apply(RESOURCES["Namespace"], namespace, field_manager="test", force=True)
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    for where in (TEAM, OTHER):
        await world.client.create(PIPELINE, pipeline(REPOSITORY, namespace=where, provider="git"))


async def test_the_page_shows_and_does_what_its_user_may(world: World, team: None) -> None:
    async with opened(world.server.kubeconfig) as page:
        status, answer = await page.log_in()
        assert (status, answer["viewer"]["mayAct"]) == (200, True)
        assert set(await page.rows()) == {f"{TEAM}/my-app", f"{OTHER}/my-app"}
        assert await page.press("pause") == 200
        assert (await page.log_in())[0] == 401
        code, told = await page.end()
    assert code == 0, told
    assert "It shows all namespaces" in told
    assert page.code not in told
    assert len(await world.objects(POLICY_GATE)) == 1


async def test_the_page_of_a_user_of_one_namespace_shows_that(world: World, team: None, tmp_path: Path) -> None:
    async with people_of(world) as people:
        kubeconfig = await people.kubeconfig_of_account("dana", tmp_path)
        account = f"system:serviceaccount:{TEAM}:dana"
        code, told = await attempt(kubeconfig, "--no-browser")
        assert code == 1
        assert "cannot list" in told or "forbidden" in told
        assert "Ask for a role that allows it" in told
        await people.bind(account, "kardinal-viewer", namespace=TEAM)
        await people.until_allowed(account, ("list", "graphs.experimental.kro.run"))
    async with opened(kubeconfig) as page:
        _, answer = await page.log_in()
        assert answer["viewer"]["namespaces"] == [TEAM]
        assert await page.rows() == [f"{TEAM}/my-app"]
        assert await page.press("pause") == 403
        code, told = await page.end()
    assert code == 0
    assert f"the page shows {TEAM}. Another: -n NAMESPACE" in told


async def test_a_page_of_a_named_namespace_shows_that(world: World, team: None) -> None:
    async with opened(world.server.kubeconfig, "-n", OTHER) as page:
        await page.log_in()
        assert await page.rows() == [f"{OTHER}/my-app"]


async def test_drawer_links_its_application_in_argo_cd(world: World, team: None) -> None:
    await world.apply(bundle("my-app-1"))
    (step,) = await world.apply(step_of("my-app-1", DEV))
    health = {"type": "argocd", "kind": "Application", "namespace": "argocd", "name": "my-app-dev"}
    await ScriptedAgent(world).step(step["metadata"]["name"], state="HealthChecking", health=health)
    async with opened(world.server.kubeconfig, "--argocd-url=https://argocd.example.com/") as page:
        await page.log_in()
        links = (await page.environment(DEV))["links"]
    assert [each["url"] for each in links] == ["https://argocd.example.com/applications/argocd/my-app-dev"]


async def test_reason_why_the_page_is_not_served_has_the_remedy(world: World, commands: None, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, told = await attempt(world.server.kubeconfig, "--no-browser", "--port", str(port))
    assert code == 1
    assert f"127.0.0.1:{port} cannot be listened on" in told
    assert "--port 0" in told
    code, told = await attempt(world.server.kubeconfig, "--port", "70000")
    assert (code, "--port" in told) == (2, True)
    code, told = await attempt(world.server.kubeconfig, "--argocd-url", "javascript:alert(1)")
    assert (code, "is no address such as" in told) == (2, True)
    code, told = await attempt(tmp_path / "absent", "--no-browser")
    assert (code, "does not exist" in told) == (1, True)
    assert "Traceback" not in told
