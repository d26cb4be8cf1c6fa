"""A stand-in for what a laptop lacks: a GitOps tool and a kubelet, so that health means something without a cluster.

It is labelled as such wherever it shows (field manager, annotation, condition messages), works with an identity of its
own over HTTPS, and hears nothing from the agent: it sees the repository and the API server alone, as real ones would.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.git import GitRunner, Repositories
from kardinal.kube import Client
from kardinal.runtime import Clock, Manager
from kardinal_local.simulator.gitops import GitOps
from kardinal_local.simulator.renderer import BuiltInRenderer, Renderer, find_renderer
from kardinal_local.simulator.workloads import Workloads

__all__ = ["DELAY", "BuiltInRenderer", "Renderer", "Simulator", "find_renderer"]

DELAY = timedelta(seconds=1)
"""How long a simulated rollout takes."""


class Simulator:
    """Start it beside a local plane; `delay` is how long a rollout takes, `renderer` who reads kustomizations."""

    def __init__(
        self,
        client: Client,
        repositories: Repositories,
        *,
        runner: GitRunner,
        clock: Clock,
        delay: timedelta = DELAY,
        renderer: Renderer,
    ) -> None:
        self.runner = runner
        self.manager = Manager(client, clock=clock, name="kardinal-simulator")
        self._gitops = GitOps(self.manager, client, repositories, renderer=renderer)
        Workloads(self.manager, clock=clock, delay=delay)

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        self._gitops.close()
        await self.manager.stop()
