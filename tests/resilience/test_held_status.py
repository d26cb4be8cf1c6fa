"""An effect that was made and never noted: the agent dies while the status write that follows it is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest

from kardinal.kube import Client
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from tests.resilience.installation import Install, Installation
from tests.resilience.processes import DEADLINE, IN_TEAM, Shell, make_namespace, phase, state, wait_for
from tests.resilience.proxy import HoldingProxy, holding_proxy
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import GitRepository


class Edge:
    """A control plane, and an agent of shard edge that reaches it through a proxy."""

    def __init__(
        self, shell: Shell, local: Installation, client: Client, proxy: HoldingProxy, kubeconfig: Path
    ) -> None:
        self.local = local
        self.client = client
        self._shell = shell
        self._proxy = proxy
        self._kubeconfig = kubeconfig

    async def promote(self, repository: GitRepository, **fields: str) -> None:
        dev = environment(DEV, shard="edge", **fields)
        await make_namespace(self.client)
        await self.client.create(PIPELINE, pipeline(repository, environments=[dev]))
        await self.client.create(BUNDLE, bundle("b"))

    async def step(self) -> JsonObject:
        found: JsonObject = (await self.client.get(PROMOTION_STEP, f"b-{DEV}", TEAM)).get("status", {})
        return found

    async def live_until_unnoted(self, effect: Callable[[], object]) -> None:
        """Run an agent until it writes the first status after `effect`; that write is lost with the agent."""
        self._proxy.hold(
            lambda method, path: method == "PATCH" and path.endswith(f"/b-{DEV}/status") and bool(effect())
        )
        agent = await self._shell.agent("edge", kubeconfig=self._kubeconfig)
        async with asyncio.timeout(DEADLINE):
            await self._proxy.held.wait()
        agent.kill()
        await agent.ended()

    async def live_until(self, wanted: str) -> None:
        """Run an agent until the promotion is in a state."""
        await self._shell.agent("edge", kubeconfig=self._kubeconfig)
        await wait_for(self.client, PROMOTION_STEP, state(wanted), f"b-{DEV}")


@pytest.fixture
async def edge(install: Install, shell: Shell, tmp_path: Path) -> AsyncIterator[Edge]:
    local = install()
    await local.up()
    kubeconfig = tmp_path / "proxy.json"
    before = local.kubeconfig_for("agent")
    async with local.client() as client, holding_proxy(before=before, kubeconfig=kubeconfig) as proxy:
        yield Edge(shell, local, client, proxy, kubeconfig)


@pytest.mark.timeout(180)
async def test_a_push_that_was_never_noted_is_not_made_again(edge: Edge, repository: GitRepository) -> None:
    await edge.promote(repository)
    await edge.live_until_unnoted(lambda: repository.promotions(DEV))
    (pushed,) = repository.promotions(DEV)
    assert "commit" not in await edge.step()

    repository.commit({"README": "another commit"})
    await edge.live_until("Verified")
    assert repository.promotions(DEV) == [pushed]
    assert (await edge.step())["commit"] == pushed.sha


@pytest.mark.timeout(180)
async def test_a_pull_request_that_was_never_noted_is_not_opened_again(edge: Edge, repository: GitRepository) -> None:
    def opened() -> str:
        return repository.git("for-each-ref", "refs/kardinal/pull")

    await edge.promote(repository, approval="pr-review")
    await edge.live_until_unnoted(opened)
    refs = opened()
    assert "pullRequest" not in await edge.step()

    await edge.live_until("WaitingForMerge")
    assert opened() == refs
    (pull_request,) = orjson.loads(await edge.local.kardinal("pr", "list", "--all", "-o", "json", *IN_TEAM))
    assert (await edge.step())["pullRequest"]["number"] == pull_request["number"]
    await edge.local.kardinal("pr", "merge", str(pull_request["number"]), *IN_TEAM)
    await wait_for(edge.client, BUNDLE, phase("Verified"), "b")
    assert len(repository.promotions(DEV)) == 1
