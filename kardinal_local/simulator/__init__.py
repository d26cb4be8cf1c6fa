"""Simulate a GitOps tool and a kubelet, so that health can be checked on a machine without a cluster.

The objects that it writes are marked as simulated by their field manager, an annotation and the messages of conditions.
It has its own identity, uses HTTPS, and gets nothing from the agent: like the real tools, it reads only the repository
and the API server.

    simulator = Simulator(client, repositories, runner=runner, clock=SystemClock(), renderer=renderer)
    await simulator.start()

gitops          follow the branch of each Pipeline, and apply the rendered objects of its environments
credentials     the credentials in `git.secretRef`, for the hosts that the Secret names
limits          the condition `Simulated` of a Pipeline, with the features that are not simulated
environments    the last rendering of each environment, so that only changed ones are rendered
inputs          the files that a rendering reads
renderer        render by kustomize, kubectl, or the built-in reader
kustomization   the built-in reader of kustomizations
exports         the files of a commit, written to disk for a program
placement       the namespace of each object
failures        Events about environments that cannot be rendered
workloads       write the status of Deployments
rollout         compute the status of a Deployment
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.clock import Clock
from kardinal.git import GitRunner, Repositories
from kardinal.kube import Client
from kardinal.runtime import Manager
from kardinal_local.simulator.gitops import GitOps
from kardinal_local.simulator.limits import forget_limits
from kardinal_local.simulator.renderer import BuiltInRenderer, DirectoryRenderer, find_renderer
from kardinal_local.simulator.workloads import Workloads

__all__ = ["DELAY", "BuiltInRenderer", "DirectoryRenderer", "Simulator", "find_renderer", "forget_limits"]

DELAY = timedelta(seconds=1)
"""The duration of a simulated rollout."""


class Simulator:
    """The controllers of the simulator, which run beside a local plane.

    `delay` is the duration of a rollout; defaults to 1 s. `renderer` renders the directories of environments.
    """

    def __init__(
        self,
        client: Client,
        repositories: Repositories,
        *,
        runner: GitRunner,
        clock: Clock,
        delay: timedelta = DELAY,
        renderer: DirectoryRenderer,
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
