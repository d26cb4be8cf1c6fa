"""Measure how a namespace with a backlog and failing Pipelines slows down the promotions of another namespace.

    python -m hack.bench.isolation [--bundles 10000] [--failing 20] [--walks 20] [--rate 50] [--apart] [--control]

The process under test runs plane, controller, agent and simulator (`hack/bench/serve.py`). With `--apart`, plane and
simulator, which only simulate a cluster, are separate processes. Namespace `quiet` promotes one Bundle after the other
through three environments, in three phases:

- without other load;
- while namespace `loud` creates its Bundles, and its Pipelines fail because their repositories do not exist;
- after all of these Bundles have been reconciled.

Half of the Bundles belong to a failing Pipeline, which deletes superseded ones; the other half belong to a Pipeline
that does not exist, and stay. A run is on one machine at one time: compare its ratios, not its times.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hack.bench.subjects import Subject, run_apart, run_subject
from kardinal.clock import SystemClock
from kardinal.git import create_bare_repository
from kardinal.kube import Client, load_connection
from kardinal.objects import CONFIG_MAP, NAMESPACE, JsonObject
from kardinal.promotion.kinds import BUNDLE, PIPELINE
from kardinal_local import sample

ENVIRONMENTS = ("dev", "staging", "prod")
QUIET = "quiet"
LOUD = "loud"
CLIENTS = 8
PAUSE = 3.0
FEW_WRITES = 30
DEADLINE = 300.0


def _pipeline(name: str, namespace: str, url: str) -> JsonObject:
    environments = [
        {
            "name": environment,
            "path": f"environments/{environment}",
            "health": {"type": "resource", "resource": {"name": sample.APP, "namespace": environment}},
        }
        for environment in ENVIRONMENTS
    ]
    return {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"git": {"url": url, "provider": "git"}, "environments": environments, "historyLimit": 50},
    }


def _bundle(name: str, namespace: str, pipeline: str, tag: str) -> JsonObject:
    return {
        "apiVersion": BUNDLE.api_version,
        "kind": BUNDLE.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {"kardinal.io/pipeline": pipeline}},
        "spec": {"artifacts": {"images": [{"reference": f"{sample.IMAGE}:{tag}"}]}},
    }


class Tenants:
    """The namespaces `quiet` and `loud`, with their Pipelines and Bundles."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._walked = 0

    async def prepare(self, repository: Path, *, failing: int) -> None:
        for namespace in (QUIET, LOUD):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self._client.create(NAMESPACE, body)
        await self._client.create(PIPELINE, _pipeline("app", QUIET, repository.as_uri()))
        # These repositories do not exist, so no Bundle of this namespace changes the repository of the other one.
        for number in range(failing + 1):
            nowhere = (repository.parent / f"nowhere-{number}.git").as_uri()
            await self._client.create(PIPELINE, _pipeline(f"failing-{number}", LOUD, nowhere))

    async def walk(self) -> float:
        """Promote one Bundle of the quiet namespace, and return the seconds until it is Verified."""
        self._walked += 1
        name = f"app-{self._walked}"
        async with asyncio.timeout(DEADLINE), self._client.watch(BUNDLE, QUIET, initial_events=True) as events:
            began = time.perf_counter()
            await self._client.create(BUNDLE, _bundle(name, QUIET, "app", f"1.0.{self._walked}"))
            async for event in events:
                metadata = event.object["metadata"]
                status = event.object.get("status", {})
                if metadata.get("name") != name:
                    continue
                if status.get("phase") == "Failed":
                    raise RuntimeError(f"the Bundle {name} failed: {status}")
                if status.get("phase") == "Verified":
                    return time.perf_counter() - began
        raise RuntimeError("the watch ended early")

    async def flood(self, bundles: int, *, failing: int, rate: float, control: bool) -> None:
        """Create the Bundles of the loud namespace.

        `rate` is the number of Bundles per second; 0 means as fast as the clients can. `control` creates ConfigMaps in
        their place, which no program watches.
        """
        numbers = iter(range(bundles))

        async def send() -> None:
            for number in numbers:
                pipeline = "failing-0" if number % 2 else "missing"
                made = _bundle(f"b-{number}", LOUD, pipeline, f"2.0.{number}")
                if control:
                    content = {"data": {"spec": str(made["spec"])}, "metadata": made["metadata"]}
                    await self._client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", **content})
                else:
                    await self._client.create(BUNDLE, made)
                if rate:
                    await asyncio.sleep(CLIENTS / rate)

        for number in range(1, failing + 1):
            await self._client.create(BUNDLE, _bundle(f"f-{number}", LOUD, f"failing-{number}", "3.0.0"))
        await asyncio.gather(*(send() for _ in range(CLIENTS)))

    async def left(self) -> int:
        return len((await self._client.list(BUNDLE, LOUD)).items)

    async def revision(self) -> int:
        """Return the resourceVersion, which counts the writes of the API server."""
        return int((await self._client.list(BUNDLE, LOUD, limit=1)).resource_version)


def _p95(seconds: Sequence[float]) -> float:
    return sorted(seconds)[max(0, round(0.95 * len(seconds)) - 1)]


async def _until_decided(tenants: Tenants) -> None:
    """Wait until hardly any writes happen; failing Pipelines are still tried again from time to time."""
    before = 0
    after = await tenants.revision()
    while after - before > FEW_WRITES:
        await asyncio.sleep(PAUSE)
        before = after
        after = await tenants.revision()


@asynccontextmanager
async def _programs(directory: Path, *, apart: bool) -> AsyncIterator[Subject]:
    """Run all processes, and yield the process that is measured."""
    if apart:
        async with run_apart(directory) as cluster:
            yield cluster.programs
    else:
        async with run_subject("all", directory / "programs") as subject:
            yield subject


def _print(what: str, seconds: Sequence[float], idle: float) -> None:
    p95 = _p95(seconds)
    print(f"{what:<44} {statistics.median(seconds):7.2f} s {p95:7.2f} s {p95 / idle:6.2f}  ({len(seconds)} walks)")


async def _measure(
    directory: Path, *, bundles: int, failing: int, walks: int, rate: float, apart: bool, control: bool
) -> None:
    repository = directory / "gitops.git"
    await asyncio.to_thread(
        create_bare_repository, repository, sample.files(), message="an application", clock=SystemClock()
    )
    async with _programs(directory, apart=apart) as process:
        connection = await load_connection(process.kubeconfig)
        async with Client(connection, user_agent="kardinal-bench") as client:
            tenants = Tenants(client)
            await tenants.prepare(repository, failing=failing)
            await tenants.walk()
            idle = [await tenants.walk() for _ in range(walks)]
            flood = asyncio.create_task(tenants.flood(bundles, failing=failing, rate=rate, control=control))
            try:
                beside = [await tenants.walk()]
                while not flood.done() or len(beside) < walks:
                    beside.append(await tenants.walk())
                await flood
            finally:
                flood.cancel()
                with suppress(asyncio.CancelledError):
                    await flood
            await _until_decided(tenants)
            settled = [await tenants.walk() for _ in range(walks)]
            left = await tenants.left()
    print(f"isolation on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"{SystemClock().now():%Y-%m-%d}: {bundles} Bundles and {failing} failing Pipelines beside\n")
    print(f"{'Bundle to Verified, three environments':<44} {'median':>9} {'p95':>9} {'ratio':>6}")
    _print("nothing else", idle, _p95(idle))
    _print("while they are created", beside, _p95(idle))
    _print(f"beside the {left} that are left", settled, _p95(idle))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how far one namespace delays another.")
    parser.add_argument("--bundles", type=int, default=10_000)
    parser.add_argument("--failing", type=int, default=20)
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.0, help="Bundles created a second; 0: as fast as possible")
    parser.add_argument("--apart", action="store_true", help="API server and simulator in processes of their own")
    parser.add_argument("--control", action="store_true", help="ConfigMaps instead: what the API server alone costs")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as directory:
        asyncio.run(_measure(Path(directory), **vars(chosen)))


if __name__ == "__main__":
    main()
