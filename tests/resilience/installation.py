"""kardinal, installed as its users have it: on a laptop by `kardinal local up`, in a cluster by `kardinal-controller`.

A test in real time asks for an installation and gets the one that the run is about: with `--target=assets` the programs
run against a real API server, pods become ready on a node, and what applies the rendered directories is a GitOps tool
and no more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from kardinal.clock import SystemClock
from kardinal.git import GitRunner, Repositories
from kardinal.kube import Client, load_connection
from kardinal_local.simulator import BuiltInRenderer
from tests.resilience.processes import Local, Shell
from tests.support.programs import GitOpsTool
from tests.support.real import RealServer

__all__ = ["Install", "Installation", "install"]


class Installation(Protocol):
    """Running programs of kardinal, and the API server they share."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        ...

    def kubeconfig_for(self, identity: str) -> Path: ...

    async def up(self) -> None:
        """Start."""
        ...

    def client(self) -> AbstractAsyncContextManager[Client]: ...

    async def kardinal(self, *arguments: str) -> str:
        """Return what a command printed that was called with this kubeconfig, and succeeded."""
        ...


class InCluster:
    """The controller as a process beside a real API server."""

    def __init__(self, shell: Shell, server: RealServer, stack: AsyncExitStack, *, deploys: bool) -> None:
        self._shell = shell
        self._server = server
        self._stack = stack
        self._deploys = deploys

    @property
    def kubeconfig(self) -> Path:
        return self._server.kubeconfig

    def kubeconfig_for(self, identity: str) -> Path:
        return self._server.kubeconfig_for(identity)

    async def up(self) -> None:
        if self._deploys:
            await self._start_gitops_tool()
        await self._shell.start(
            "kardinal-controller",
            f"--kubeconfig={self.kubeconfig_for('controller')}",
            f"--git-cache-dir={self._shell.temporary / 'mirrors'}",
            "--allow-local-repositories",
            "--api-bind-address=127.0.0.1:0",
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        )

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with Client(await load_connection(self.kubeconfig), user_agent="kardinal-test") as client:
            yield client

    async def kardinal(self, *arguments: str) -> str:
        return await self._shell.run("kardinal", *arguments, kubeconfig=self.kubeconfig)

    async def _start_gitops_tool(self) -> None:
        clock = SystemClock()
        runner = GitRunner(workers=2)
        self._stack.callback(runner.close)
        directory = self._shell.temporary / "gitops"
        repositories = Repositories(directory, runner=runner, clock=clock, allow_local=True)
        self._stack.push_async_callback(repositories.close)
        connection = await load_connection(self.kubeconfig_for("simulator"))
        client = await self._stack.enter_async_context(Client(connection, user_agent="gitops"))
        tool = GitOpsTool(client, repositories, runner=runner, clock=clock, renderer=BuiltInRenderer())
        self._stack.push_async_callback(tool.stop)
        await tool.start()


Install = Callable[..., Installation]


@pytest.fixture
async def install(shell: Shell, real_server: RealServer | None, tmp_path: Path) -> AsyncIterator[Install]:
    """Make an installation, not yet started; unless `deploys` is False, something deploys what is promoted."""
    async with AsyncExitStack() as stack:
        if real_server is not None:
            real_server.reset()

        def made(*, deploys: bool = True) -> Installation:
            if real_server is not None:
                return InCluster(shell, real_server, stack, deploys=deploys)
            return Local(shell, tmp_path / "local", *(["--simulate"] if deploys else []))

        yield made
        if real_server is not None:
            real_server.release()
