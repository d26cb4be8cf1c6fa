"""Measure supply chains: the cost of one change, of doing nothing, and of a start.

    python -m hack.bench.supplychain [--workloads 10,1000] [--seconds 60]

A chain has five resources: the first has an output, three take it, and the fifth is a run. For each number of
Workloads, the first objects of some get new outputs, one after another, as a builder would write them. Reported are the
requests of the program and the reconciles for one such change, the time from the output to the write of a consumer,
also of one whose template is written for ytt, the requests while nothing happens for so many seconds, whether a restart
changes any object, and memory. Figures of time are those of a busy machine if it is busy: compare the least ones.

The local plane is one process, the program another.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson

from hack.bench.subjects import Request, Requests, Subject, difference, run_module, run_subject
from hack.renderers.assets import find
from kardinal.clock import SystemClock
from kardinal.kube import Client, load_connection
from kardinal.objects import CONFIG_MAP, NAMESPACE, JsonObject
from kardinal.runtime.logging import configure
from kardinal_local.definitions import install_definitions
from kardinal_local.rights import supply_chain_manifests
from kardinal_supplychain.api.crds import definitions
from kardinal_supplychain.api.kinds import (
    CLUSTER_CONFIG_TEMPLATE,
    CLUSTER_SUPPLY_CHAIN,
    CLUSTER_TEMPLATE,
    GROUP,
    VERSION,
    WORKLOAD,
)
from kardinal_supplychain.options import SupplyChainOptions
from kardinal_supplychain.program import NAME, SupplyChains

API_VERSION = f"{GROUP}/{VERSION}"
TEAM = "team"
LABEL = {"type": "web"}
REVISION = "revision"
"""The annotation of the first object of a chain that is its output."""
CONSUMERS = ("config", "service", "route")
RENDERED = "rendered"
"""The type of the Workload whose consumer is rendered by ytt, and the name of that consumer's resource."""
CHANGES = 50
DEADLINE = 300.0
PROGRAM = ("kardinal-supplychain", "default")
"""The users that the program makes requests as: its own account, and that of the Workloads."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The requests and reconciles of the program, between two moments."""

    requests: Requests
    reconciles: int

    def __str__(self) -> str:
        told = ", ".join(f"{count} {each.verb} {each.resource}" for each, count in sorted(self.requests.items()))
        return f"{self.reconciles} reconciles; requests: {told or 'none'}"


class Bench:
    """A plane with supply chains; `start` runs the program."""

    def __init__(self, client: Client, plane: Subject) -> None:
        self._client = client
        self._plane = plane
        self._stack = AsyncExitStack()
        self.program: Subject | None = None

    async def start(self) -> None:
        kubeconfig = self._plane.kubeconfig.with_name("kubeconfig.supplychain")
        self.program = await self._stack.enter_async_context(run_module(__spec__.name, "--serve", str(kubeconfig)))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def install(self) -> None:
        await install_definitions(self._client, await asyncio.to_thread(definitions))
        for resource, manifest in supply_chain_manifests():
            await self._client.apply(resource, manifest, field_manager="bench")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}}
        await self._client.create(NAMESPACE, namespace)
        for obj in _templates():
            kind = CLUSTER_TEMPLATE if obj["kind"] == CLUSTER_TEMPLATE.kind else CLUSTER_CONFIG_TEMPLATE
            await self._client.create(kind, obj)
        for chain in (_chain("shops", LABEL, _TAKERS), _chain(RENDERED, {"type": RENDERED}, _RENDERED_TAKER)):
            await self._client.create(CLUSTER_SUPPLY_CHAIN, chain)

    async def grow(self, before: int, number: int) -> None:
        """Create Workloads up to a number, and give each a first output."""
        for index in range(before, number):
            await self.create(_name(index), LABEL)
        await self.rest()
        if len([each for each in await self._objects() if _is_source(each)]) != number:
            raise RuntimeError("not every Workload was stamped")
        for index in range(before, number):
            await self.write(_name(index), "0")
        await self.rest()

    async def create(self, name: str, labels: JsonObject) -> None:
        metadata = {"name": name, "namespace": TEAM, "labels": labels}
        workload = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": {}}
        await self._client.create(WORKLOAD, workload)

    async def write(self, workload: str, revision: str) -> None:
        """Give the first object of a Workload an output."""
        body = {"metadata": {"annotations": {REVISION: revision}}}
        await self._client.patch(CONFIG_MAP, f"{workload}-source", TEAM, body)

    async def changed(self, workload: str, consumer: str, revision: str) -> float:
        """Give an object an output, and return the seconds until this consumer was written."""
        async with asyncio.timeout(DEADLINE):
            name = f"{workload}-{consumer}"
            latest = (await self._client.list(CONFIG_MAP, TEAM, limit=1)).resource_version
            async with self._client.watch(CONFIG_MAP, TEAM, resource_version=latest) as events:
                began = time.perf_counter()
                await self.write(workload, revision)
                async for event in events:
                    if event.object["metadata"].get("name") == name and event.object["data"]["revision"] == revision:
                        return time.perf_counter() - began
        raise RuntimeError("the watch has ended")

    async def counts(self) -> Counts:
        if self.program is None:
            raise RuntimeError("the program does not run")
        requests: Requests = Requests()
        for user, verb, resource, subresource, count in await self._plane.ask():
            if user.rpartition(":")[2] in PROGRAM and verb != "watch":
                place = f"{resource}/{subresource}" if subresource else resource
                requests[Request("program", verb, place)] += count
        return Counts(requests, (await self.program.ask())["reconciles"])

    async def since(self, before: Counts) -> Counts:
        now = await self.counts()
        return Counts(difference(now.requests, before.requests), now.reconciles - before.reconciles)

    async def rest(self) -> None:
        """Wait until the program makes no requests for two seconds."""
        async with asyncio.timeout(DEADLINE):
            before = await self.counts()
            while True:
                await asyncio.sleep(2)
                now = await self.counts()
                if now == before:
                    return
                before = now

    async def versions(self) -> dict[str, tuple[str, str]]:
        """Return uid and version of all objects of the team."""
        owners = (await self._client.list(WORKLOAD, TEAM)).items
        found = [each["metadata"] for each in [*owners, *await self._objects()]]
        return {each["uid"]: (each["name"], each["resourceVersion"]) for each in found}

    async def _objects(self) -> list[JsonObject]:
        return (await self._client.list(CONFIG_MAP, TEAM)).items


def _name(index: object) -> str:
    return f"shop-{index}"


def _is_source(obj: JsonObject) -> bool:
    name: str = obj["metadata"]["name"]
    return name.startswith(_name("")) and name.endswith("-source")


def _templates() -> Iterator[JsonObject]:
    name = "$(workload.metadata.name)$"
    yield _template("source", f"{name}-source", {"url": "here"}, configPath=f"metadata.annotations.{REVISION}")
    data = {"revision": "$(config)$"}
    for consumer in CONSUMERS:
        yield _template(consumer, f"{name}-{consumer}", data, configPath="data.revision")
    run = _template("run", "", data, lifecycle="immutable", healthRule={"alwaysHealthy": {}})
    run["spec"]["template"]["metadata"] = {"generateName": f"{name}-run-"}
    yield {**run, "kind": CLUSTER_TEMPLATE.kind}
    rendered = _template(RENDERED, "", {}, ytt=_YTT, configPath="data.revision")
    del rendered["spec"]["template"]
    yield rendered


def _template(name: str, made: str, data: JsonObject, **spec: object) -> JsonObject:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": made}, "data": data}
    return {
        "apiVersion": API_VERSION,
        "kind": CLUSTER_CONFIG_TEMPLATE.kind,
        "metadata": {"name": name},
        "spec": {"template": body, **spec},
    }


_TAKERS = {**dict.fromkeys(CONSUMERS, CLUSTER_CONFIG_TEMPLATE.kind), "run": CLUSTER_TEMPLATE.kind}
_RENDERED_TAKER = {RENDERED: CLUSTER_CONFIG_TEMPLATE.kind}
"""The resources that take the output, with the kinds of their templates."""

_YTT = f"""\
#@ load("@ytt:data", "data")
apiVersion: v1
kind: ConfigMap
metadata:
  name: #@ data.values.workload.metadata.name + "-{RENDERED}"
data:
  revision: #@ data.values.config
"""


def _chain(name: str, selector: JsonObject, takers: dict[str, str]) -> JsonObject:
    source = {"name": "source", "templateRef": {"kind": CLUSTER_CONFIG_TEMPLATE.kind, "name": "source"}}
    takes = {"configs": [{"name": "source", "resource": "source"}]}
    others = [{"name": taker, "templateRef": {"kind": kind, "name": taker}, **takes} for taker, kind in takers.items()]
    spec = {"selector": selector, "resources": [source, *others]}
    return {"apiVersion": API_VERSION, "kind": "ClusterSupplyChain", "metadata": {"name": name}, "spec": spec}


async def _measure(bench: Bench, number: int, *, idle: float) -> None:
    print(f"{number:,} Workloads of 5 resources", flush=True)
    # One that has no runs yet which retention deletes.
    last = _name(number - 1)
    await bench.write(last, "first")
    await bench.rest()
    before = await bench.counts()
    await bench.write(last, "second")
    await bench.rest()
    print(f"  one change: {await bench.since(before)}")
    taken = [await bench.changed(_name(change % number), CONSUMERS[0], f"c{change}") for change in range(CHANGES)]
    print(f"  from an output to its consumer: {_spread(taken)}")
    await bench.rest()
    before = await bench.counts()
    await asyncio.sleep(idle)
    print(f"  {idle:.0f} s of nothing: {await bench.since(before)}")
    versions = await bench.versions()
    memory = bench.program.memory() if bench.program is not None else 0.0
    await bench.stop()
    began = time.perf_counter()
    await bench.start()
    await bench.rest()
    changed = len(versions.items() ^ (await bench.versions()).items())
    print(f"  a restart: {changed} objects changed, {time.perf_counter() - began:.0f} s until it rests")
    print(f"  memory: {memory:.0f} MiB", flush=True)


async def _measure_ytt(bench: Bench) -> None:
    if find("ytt") is None:
        print("no consumer is rendered by ytt: `make renderers` builds it")
        return
    await bench.create(RENDERED, {"type": RENDERED})
    await bench.rest()
    taken = [await bench.changed(RENDERED, RENDERED, f"c{change}") for change in range(CHANGES)]
    print(f"from an output to its consumer, rendered by ytt: {_spread(taken)}", flush=True)


def _spread(seconds: list[float]) -> str:
    taken = sorted(each * 1e3 for each in seconds)
    late = taken[int(len(taken) * 0.95)]
    return f"least {taken[0]:.0f} ms, p50 {statistics.median(taken):.0f} ms, p95 {late:.0f} ms"


async def _bench(numbers: list[int], idle: float) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with AsyncExitStack() as stack:
            plane = await stack.enter_async_context(run_subject("plane", Path(directory) / "plane"))
            client = Client(await load_connection(plane.kubeconfig), user_agent="kardinal-bench")
            await stack.enter_async_context(client)
            bench = Bench(client, plane)
            await bench.install()
            await bench.start()
            stack.push_async_callback(bench.stop)
            await _measure_ytt(bench)
            before = 0
            for number in sorted(numbers):
                await bench.grow(before, number)
                await _measure(bench, number, idle=idle)
                before = number


async def _serve(kubeconfig: Path) -> None:
    """Run the program; answer each line of standard input with the number of reconciles so far."""
    options = SupplyChainOptions(metrics_address=None, metrics_auth="none", probe_address=None, ytt=find("ytt"))
    async with Client(await load_connection(kubeconfig), user_agent=NAME) as client:
        program = SupplyChains(options, client, clock=SystemClock())
        await program.start()
        print("{}", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(orjson.dumps({"reconciles": _reconciles(program)}).decode(), flush=True)
        await program.stop()


def _reconciles(program: SupplyChains) -> int:
    results = ("success", "requeue_after", "error")
    labels = [{"controller": "workload", "result": result} for result in results]
    name = "controller_runtime_reconcile_total"
    return sum(int(program.manager.metrics.get_sample_value(name, each) or 0) for each in labels)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.supplychain", description="Measure supply chains.")
    parser.add_argument("--workloads", default="10,1000", help="numbers of Workloads; default: 10,1000")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long nothing happens; default: 60")
    parser.add_argument("--serve", type=Path, metavar="KUBECONFIG", help=argparse.SUPPRESS)
    options = parser.parse_args()
    configure(level="error")
    if options.serve is not None:
        asyncio.run(_serve(options.serve))
        return
    asyncio.run(_bench([int(each) for each in options.workloads.split(",")], options.seconds))


if __name__ == "__main__":
    main()
