"""The Pipelines in the pictures of the web page, promoted by the commands that a team uses.

Each is in another state: one waits for a review, one is paused, one failed, one waits for an agent,
one is held by a gate, one moves and one is at rest. Nothing is invented but the names. Rollouts are simulated: first
quick ones, and at last some that take so long that a picture finds them unfinished.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from kardinal.clock import SystemClock
from kardinal.git import create_bare_repository
from kardinal.kube import Client, load_connection
from kardinal.objects import NAMESPACE, JsonObject
from kardinal.promotion.kinds import PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal_local.serving import PlaneOptions
from kardinal_local.stack import POLICY_NAMESPACE, Stack, run_stack, start_simulator

__all__ = ["Team", "run_team"]

DEADLINE = 240.0
"""The time in seconds within which a Bundle must reach a state; machines may be busy."""
LOOK_AGAIN = 0.5
SLOW_ROLLOUT = timedelta(hours=1)
HEALTH_TIMEOUT = "20s"
"""For the environment that is to fail; a quick rollout takes a second."""


@dataclass(frozen=True, slots=True)
class Application:
    """A Pipeline with a repository of its own: a base, and a kustomization for each environment."""

    namespace: str
    name: str
    version: str
    """The version that its repository begins with."""
    environments: tuple[dict[str, Any], ...]
    """As in the spec of the Pipeline."""
    replicas: int = 3

    @property
    def image(self) -> str:
        return f"ghcr.io/acme/{self.name}"

    def files(self) -> dict[str, bytes]:
        """Return the files of the repository by path."""
        base = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [deployment.yaml]\n"
        overlay = (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../../base]\n"
            f'images:\n  - name: {self.image}\n    newTag: "{self.version}"\n'
        )
        deployment = (
            f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {self.name}}}\nspec:\n"
            f"  replicas: {self.replicas}\n  selector: {{matchLabels: {{app: {self.name}}}}}\n  template:\n"
            f"    metadata: {{labels: {{app: {self.name}}}}}\n"
            f"    spec: {{containers: [{{name: {self.name}, image: {self.image}}}]}}\n"
        )
        overlays = {f"environments/{each['name']}/kustomization.yaml": overlay.encode() for each in self.environments}
        return {"base/kustomization.yaml": base.encode(), "base/deployment.yaml": deployment.encode(), **overlays}

    def pipeline(self, repository: Path) -> JsonObject:
        git = {"url": repository.as_uri(), "provider": "local"}
        return {
            "apiVersion": PIPELINE.api_version,
            "kind": PIPELINE.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"git": git, "environments": list(self.environments)},
        }


REVIEWED = {"name": "prod", "approval": "pr-review"}
CHECKOUT = Application(
    "shop",
    "checkout",
    "4.10.3",
    ({"name": "dev"}, {"name": "staging", "health": {"timeout": HEALTH_TIMEOUT}}, REVIEWED),
)
PAYMENTS = Application("shop", "payments", "2.29.0", ({"name": "dev"}, {"name": "staging"}, REVIEWED))
SEARCH = Application(
    "shop",
    "search",
    "0.9.0",
    (
        {"name": "dev"},
        {"name": "staging"},
        {"name": "load-test", "dependsOn": ["dev"]},
        {"name": "prod", "dependsOn": ["staging", "load-test"]},
    ),
    replicas=6,
)
CATALOGUE = Application(
    "shop",
    "catalogue",
    "1.43.0",
    ({"name": "dev"}, {"name": "staging", "health": {"timeout": "2h"}}, {"name": "prod"}),
)
CART = Application("shop", "cart", "3.1.0", ({"name": "dev"}, {"name": "staging"}, {"name": "prod"}))
MAILER = Application(
    "platform",
    "mailer",
    "3.0.2",
    ({"name": "eu"}, {"name": "us", "shard": "us-east"}),
)
LEDGER = Application(
    "finance",
    "ledger",
    "7.0.2",
    (
        {"name": "dev"},
        {"name": "staging"},
        {"name": "prod-eu", "dependsOn": ["staging"]},
        {"name": "prod-us", "dependsOn": ["staging"]},
    ),
)
APPLICATIONS = (CHECKOUT, PAYMENTS, SEARCH, CATALOGUE, CART, MAILER, LEDGER)


class Team:
    """The people whose Pipelines are shown, and the page that they look at."""

    def __init__(self, stack: Stack, client: Client, directory: Path) -> None:
        self.stack = stack
        self._client = client
        self._directory = directory
        self._names: dict[str, str] = {}

    async def create_pipelines(self) -> None:
        """Create the repositories, the Pipelines and the gates that do not depend on the hour."""
        for namespace in sorted({each.namespace for each in APPLICATIONS}):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self._client.apply(NAMESPACE, body, field_manager="team")
        for each in APPLICATIONS:
            repository = self._repository(each)
            await asyncio.to_thread(
                create_bare_repository, repository, each.files(), message=f"Run {each.name}", clock=SystemClock()
            )
            await self._client.apply(PIPELINE, each.pipeline(repository), field_manager="team")
        soak = "bundle.upstreamSoakMinutes >= 0.05"
        message = "three seconds without a failure"
        await self._create_gate("shop", "soak", expression=soak, appliesTo=["staging", "load-test"], message=message)
        await self._create_gate("shop", "long-soak", expression=soak, appliesTo=["prod"], message=message)

    async def promote_quickly(self) -> None:
        """Promote what has long been there, and the new versions as far as they have come."""
        async with self._simulator():
            await asyncio.gather(
                self._history_of_search(),
                self._history(CHECKOUT, "4.11.2"),
                self._history(PAYMENTS, "2.29.7"),
                self._history(CATALOGUE, "1.43.2"),
                self._history(CART, "3.1.4"),
                self._history(LEDGER, "7.0.3"),
                self._bring(MAILER, "3.1.0", author="ada", reaches={"eu": "Verified"}),
            )
            await self._close_prod_of_search()
            await asyncio.gather(
                self._bring(SEARCH, "0.9.4", author="noor", reaches={"staging": "Verified", "load-test": "Verified"}),
                self._bring(CHECKOUT, "4.12.0", author="dana", target="dev", reaches={"dev": "Verified"}),
                self._bring(CATALOGUE, "1.44.0", author="lee", target="dev", reaches={"dev": "Verified"}),
                self._bring(CART, "3.2.0", author="kim", target="dev", reaches={"dev": "Verified"}),
                self._bring(PAYMENTS, "2.30.1", author="ada", reaches={"prod": "WaitingForMerge"}),
            )

    @asynccontextmanager
    async def promote_slowly(self) -> AsyncIterator[None]:
        """Let the new versions go on, with rollouts that do not finish, until the block ends."""
        async with self._simulator(SLOW_ROLLOUT):
            await self.kardinal("pause", "cart", "-n", "shop", "--reason", "incident 4711: the cart loses items")
            await asyncio.gather(
                self._send_on(CATALOGUE, "1.44.0", "prod", reaches={"staging": "HealthChecking"}),
                self._send_on(CHECKOUT, "4.12.0", "prod", reaches={"staging": "Failed"}),
                self._send_on(CART, "3.2.0", "prod"),
            )
            yield

    async def kardinal(self, *arguments: str) -> str:
        """Return what a command printed that was called by a person of the team, and succeeded."""
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).parent / "kardinal",
            *arguments,
            env={**os.environ, "KUBECONFIG": str(self.stack.plane.kubeconfig), "NO_COLOR": "1"},
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"kardinal {' '.join(arguments)} ended with {process.returncode}")
        return said.decode().strip()

    def bundle(self, version: str) -> str:
        """Return the name of the Bundle of a version, such as `search-0-9-4-…`."""
        return self._names[version]

    def _repository(self, application: Application) -> Path:
        return self._directory / application.namespace / application.name

    async def _history(self, application: Application, *versions: str) -> None:
        """Promote versions one after the other to every environment; a person merges where prod is reviewed."""
        last = application.environments[-1]
        for version in versions:
            if last.get("approval") == "pr-review":
                await self._bring(application, version, author="ada", reaches={last["name"]: "WaitingForMerge"})
                of = ("--repo", self._repository(application).as_uri(), "-n", application.namespace)
                await self.kardinal("pr", "merge", "1", *of)
            else:
                await self._bring(application, version, author="ada")
            await self._until(application, version, {each["name"]: "Verified" for each in application.environments})

    async def _history_of_search(self) -> None:
        """Promote versions that came less far than others."""
        await self._bring(SEARCH, "0.9.1", author="lee", target="dev", reaches={"dev": "Verified"})
        await self._bring(SEARCH, "0.9.2", author="noor", target="staging", reaches={"staging": "Verified"})
        await self._history(SEARCH, "0.9.3")

    async def _bring(
        self,
        application: Application,
        version: str,
        *,
        author: str,
        target: str | None = None,
        reaches: Mapping[str, str] | None = None,
    ) -> None:
        """Create a Bundle as CI does, and wait until its promotions have reached these states, by environment."""
        name = await self.kardinal(
            *("create", "bundle", application.name, "-n", application.namespace, "-o", "name"),
            *("--image", f"{application.image}:{version}", "--author", author, "--commit", "4f2a9c1d7b3e"),
            *("--ci-run", f"https://ci.example.com/{application.name}/{version}"),
            *(("--target", target) if target else ()),
        )
        self._names[version] = name.rpartition("/")[2]
        await self._until(application, version, reaches or {})

    async def _send_on(
        self, application: Application, version: str, target: str, *, reaches: Mapping[str, str] | None = None
    ) -> None:
        """Let a Bundle go further than it was to go at first."""
        of = ("-n", application.namespace, "--env", target, "--bundle", self.bundle(version))
        await self.kardinal("promote", application.name, *of)
        await self._until(application, version, reaches or {})

    async def _until(self, application: Application, version: str, states: Mapping[str, str]) -> None:
        """Wait until the promotions of a Bundle are in these states, by environment."""
        found: dict[str, str] = {}
        try:
            async with asyncio.timeout(DEADLINE):
                while not states.items() <= found.items():
                    await asyncio.sleep(LOOK_AGAIN)
                    steps = await self._steps(application, version)
                    found = {each["spec"]["environment"]: each.get("status", {}).get("state") for each in steps}
        except TimeoutError:
            raise RuntimeError(f"{application.name} {version} is not {states}, but {found}") from None

    async def _steps(self, application: Application, version: str) -> list[JsonObject]:
        """Return the PromotionSteps of the Bundle of a version."""
        steps = (await self._client.list(PROMOTION_STEP, application.namespace)).items
        return [step for step in steps if step["spec"]["bundleRef"] == self.bundle(version)]

    async def _close_prod_of_search(self) -> None:
        """Create the org gate of the hours in which prod is open: by day, or else by night when it is day."""
        hour = SystemClock().now().hour
        first, last = (9, 17) if not 9 <= hour < 17 else (0, 8)
        expression = f"!schedule.isWeekend && schedule.hour >= {first} && schedule.hour < {last}"
        message = f"prod changes from {first:02}:00 to {last:02}:00 UTC, not at weekends"
        match = {"paths": ["environments/prod"], "pipelines": [SEARCH.name]}
        await self._create_gate(POLICY_NAMESPACE, "business-hours", expression=expression, message=message, match=match)

    async def _create_gate(self, namespace: str, name: str, **spec: Any) -> None:
        if namespace == SEARCH.namespace:
            spec = {"match": {"pipelines": [SEARCH.name]}, **spec}
        body = {
            "apiVersion": POLICY_GATE.api_version,
            "kind": POLICY_GATE.kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {"kardinal.io/type": "gate"}},
            "spec": spec,
        }
        await self._client.apply(POLICY_GATE, body, field_manager="team")

    @asynccontextmanager
    async def _simulator(self, delay: timedelta | None = None) -> AsyncIterator[None]:
        async with AsyncExitStack() as resources:
            await start_simulator(resources, self.stack.plane, self._directory / "local", delay=delay, renderer=None)
            yield


@asynccontextmanager
async def run_team(directory: Path) -> AsyncIterator[Team]:
    """Run what `kardinal local up` runs in a directory, without a simulator; the team has no Pipelines yet."""
    async with run_stack(directory / "local", options=PlaneOptions(port=0)) as stack:
        connection = await load_connection(stack.plane.kubeconfig)
        async with Client(connection, user_agent="kardinal-pictures") as client:
            yield Team(stack, client, directory)
