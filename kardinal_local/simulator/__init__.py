"""Stand in for a GitOps tool and a kubelet, so that health can be checked on a machine without a cluster.

Everything it writes says so (field manager, annotation, condition messages). It has an identity of its own, talks
HTTPS, and gets nothing from the agent: it reads the repository and the API server alone, as the real ones would.

    gitops        follows the branch of each Pipeline and applies what its environments render to
    credentials   those of `git.secretRef`, for the hosts that the Secret names
    limits        the condition of a Pipeline that says what is not simulated
    environments  what is known of them, so that only what changed is rendered
    inputs        what a rendering reads
    renderer      renders by kustomize, by kubectl, or with what kustomization knows
    exports       the files of a commit, for a program
    placement     which namespace an object goes to
    failures      Events about what cannot be rendered
    workloads     writes the status of Deployments, which rollout computes
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.git import GitRunner, Repositories
from kardinal.kube import Client
from kardinal.runtime import Clock, Manager
from kardinal_local.simulator.gitops import GitOps
from kardinal_local.simulator.limits import forget_limits
from kardinal_local.simulator.renderer import BuiltInRenderer, Renderer, find_renderer
from kardinal_local.simulator.workloads import Workloads

__all__ = ["DELAY", "BuiltInRenderer", "Renderer", "Simulator", "find_renderer", "forget_limits"]

DELAY = timedelta(seconds=1)
"""How long a simulated rollout takes."""


class Simulator:
    """Runs beside a local plane; a rollout takes `delay`, and `renderer` reads the kustomizations."""

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
        self._gitops = GitOps(self.manager, client, repositories, renderer=renderer, clock=clock)
        Workloads(self.manager, clock=clock, delay=delay)

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        self._gitops.close()
        await self.manager.stop()
