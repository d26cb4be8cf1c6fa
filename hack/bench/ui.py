"""Measure the page: what 50 viewers cost while 1,000 Pipelines promote, and how late they see a change.

    python -m hack.bench.ui [--pipelines 1000] [--viewers 50] [--rate 1000] [--seconds 30]

The process under test has the informers, the feed and the server of the page; changes are put into its informers, as a
watch would, so what is measured is the page alone. Each promotion is seven writes: five of its PromotionStep, two of
its Bundle. Viewers are another process, which reads their streams.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import os
import platform
import statistics
import sys
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from hack.bench.subjects import Subject, run_module
from kardinal.clock import SystemClock
from kardinal.kube import Client, ClusterAccess, Connection
from kardinal.objects import JsonObject, ResourceType, key_of
from kardinal.runtime import Manager
from kardinal.runtime.logging import configure
from kardinal.runtime.routes import RouteGroup
from kardinal_controller.caches import Caches
from kardinal_controller.ui.access import Seat
from kardinal_controller.ui.model import Viewer
from kardinal_controller.ui.server import PageServer

NAMESPACES = 20
ENVIRONMENTS = ("dev", "test", "staging", "prod")
STATES = ("Promoting", "WaitingForMerge", "HealthChecking", "HealthChecking", "Verified")
API_VERSION = "kardinal.io/v1alpha1"
SAMPLED = 0.005

Json = dict[str, Any]


# The process under test.


class _Everyone:
    """An access that lets everyone see everything."""

    groups: Sequence[RouteGroup[Any]] = ()

    @asynccontextmanager
    async def authenticated(self, request: web.Request) -> AsyncIterator[Seat]:
        user = request.headers["X-Viewer"]
        viewer = Viewer(
            user=user, groups=[], auth="token", may_act=False, reads_as_viewer=False, namespaces=[], version="bench"
        )
        yield Seat(viewer=viewer, lists=self._lists)

    async def still_valid(self, seat: Seat) -> str:
        return ""

    async def _lists(self, resource: ResourceType, namespace: str) -> bool:
        return True


class _Fleet:
    """Pipelines with their Bundles and PromotionSteps, in the informers of a program that has no API server."""

    def __init__(self, caches: Caches, pipelines: int) -> None:
        self._caches = caches
        self._pipelines = pipelines
        self._version = 0
        self._now = SystemClock().now().replace(microsecond=0)

    def create(self) -> None:
        """Fill the informers: each Pipeline has a Bundle that is Verified everywhere, and one that is in dev."""
        pipelines = {}
        bundles = {}
        steps = {}
        for number in range(self._pipelines):
            namespace, name = _place(number)
            for obj in (self._pipeline(namespace, name),):
                pipelines[key_of(obj)] = obj
            for tag in (1, 2):
                obj = self._bundle(namespace, name, tag)
                bundles[key_of(obj)] = obj
            for environment in ENVIRONMENTS:
                obj = self._step(namespace, name, environment)
                steps[key_of(obj)] = obj
        for informer, objects in (
            (self._caches.pipelines, pipelines),
            (self._caches.bundles, bundles),
            (self._caches.graphs, {}),
            (self._caches.steps, steps),
            (self._caches.gates, {}),
        ):
            informer.replace(objects, "1")

    async def promote(self, rate: float, seconds: float) -> None:
        """Promote Pipelines one after the other; print when each last write was, by the key of its row."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for number in range(int(rate * seconds / 60)):
            namespace, name = _place(number % self._pipelines)
            environment = ENVIRONMENTS[number // self._pipelines % len(ENVIRONMENTS)]
            due = begin + number * 60 / rate
            await asyncio.sleep(max(due - loop.time(), 0))
            for state in STATES:
                self._change_step(namespace, name, environment, state)
                if state in ("Promoting", "Verified"):
                    self._change_bundle(namespace, name, environment, state)
                await asyncio.sleep(0)
            written = {"row": f"{namespace}/{name}", "at": time.monotonic()}
            print(orjson.dumps(written).decode(), flush=True)

    def _change_step(self, namespace: str, pipeline: str, environment: str, state: str) -> None:
        before = self._caches.steps.get(namespace, f"{pipeline}-2-{environment}")
        if before is None:
            return
        after = copy.deepcopy(before)
        moment = SystemClock().now().isoformat()
        after["metadata"]["resourceVersion"] = self._next()
        after["status"] = {"state": state, "message": f"{state} at {moment}", "currentStep": 0, "healthy": True}
        if state == "Verified":
            after["status"] |= {"verifiedAt": moment, "promotedAt": moment, "commit": "c0ffee" + "0" * 34}
        self._caches.steps.apply("MODIFIED", after)

    def _change_bundle(self, namespace: str, pipeline: str, environment: str, state: str) -> None:
        before = self._caches.bundles.get(namespace, f"{pipeline}-2")
        if before is None:
            return
        after = copy.deepcopy(before)
        after["metadata"]["resourceVersion"] = self._next()
        entry: Json = {"state": state}
        if state == "Verified":
            entry["verifiedAt"] = SystemClock().now().isoformat()
        after["status"]["environments"][environment] = entry
        self._caches.bundles.apply("MODIFIED", after)

    def _next(self) -> str:
        self._version += 1
        return str(self._version + 1)

    def _object(self, kind: str, namespace: str, name: str, **content: Any) -> JsonObject:
        labels = content.pop("labels", {})
        metadata = {
            "namespace": namespace,
            "name": name,
            "uid": f"{kind}-{namespace}-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": self._now.isoformat(),
            "labels": labels,
        }
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **content}

    def _pipeline(self, namespace: str, name: str) -> JsonObject:
        environments = [{"name": each, "path": f"{name}/{each}"} for each in ENVIRONMENTS]
        git = {"url": f"https://git.example.com/{namespace}/gitops.git", "provider": "git"}
        return self._object("Pipeline", namespace, name, spec={"git": git, "environments": environments})

    def _bundle(self, namespace: str, pipeline: str, tag: int) -> JsonObject:
        moment = self._now.isoformat()
        verified = {"state": "Verified", "verifiedAt": moment, "commit": "c0ffee" + "0" * 34}
        images = [{"name": "app", "reference": f"registry.example.com/{pipeline}:1.{tag}.0"}]
        states = {each: verified if tag == 1 else {"state": "Pending"} for each in ENVIRONMENTS}
        status = {
            "phase": "Verified" if tag == 1 else "Promoting",
            "pipeline": pipeline,
            "sequence": tag,
            "version": f"1.{tag}.0",
            "graphRef": f"{pipeline}-{tag}",
            "environments": states,
        }
        return self._object(
            "Bundle",
            namespace,
            f"{pipeline}-{tag}",
            labels={"kardinal.io/pipeline": pipeline},
            spec={"type": "image", "artifacts": {"images": images}, "provenance": {"author": "ada"}},
            status=status,
        )

    def _step(self, namespace: str, pipeline: str, environment: str) -> JsonObject:
        spec = {
            "pipeline": pipeline,
            "environment": environment,
            "bundleRef": f"{pipeline}-2",
            "path": f"{pipeline}/{environment}",
            "git": {"url": f"https://git.example.com/{namespace}/gitops.git", "provider": "git"},
            "steps": [{"uses": each} for each in ("git-clone", "kustomize-set-image", "git-push", "health-check")],
            "health": {"type": "resource", "resource": {"name": pipeline, "namespace": environment}, "timeout": "10m"},
        }
        labels = {"kardinal.io/pipeline": pipeline, "kardinal.io/bundle": f"{pipeline}-2"}
        name = f"{pipeline}-2-{environment}"
        return self._object("PromotionStep", namespace, name, labels=labels, spec=spec, status={"state": "Pending"})


def _place(number: int) -> tuple[str, str]:
    return f"team-{number % NAMESPACES}", f"app-{number}"


@dataclass(slots=True)
class _Stalls:
    """The longest times for which the event loop ran nothing else, in seconds.

    `late`: how much later than asked it ran this task, which includes the time that other processes had the processor.
    `busy`: the processor time of its thread between two runs of this task.
    """

    late: float = 0.0
    busy: float = 0.0

    async def sample(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            asked = loop.time() + SAMPLED
            spent = time.thread_time()
            await asyncio.sleep(SAMPLED)
            self.late = max(self.late, loop.time() - asked)
            self.busy = max(self.busy, time.thread_time() - spent)

    def taken(self) -> Json:
        """Return the longest ones since the last call."""
        found = {"late": self.late, "busy": self.busy}
        self.late = self.busy = 0.0
        return found


async def _serve(pipelines: int) -> None:
    clock = SystemClock()
    connection = Connection(ClusterAccess("https://127.0.0.1:1"))
    async with Client(connection, user_agent="kardinal-bench") as client:
        caches = Caches(Manager(client, clock=clock, name="bench"))
        fleet = _Fleet(caches, pipelines)
        fleet.create()
        stalls = _Stalls()
        sampling = asyncio.create_task(stalls.sample())
        page = PageServer(caches, _Everyone(), clock=clock, address="127.0.0.1:0")
        begin = time.monotonic()
        await page.start()
        await page.feed.complete()
        ready = {"url": page.url, "ready": time.monotonic() - begin, "stall": stalls.taken()}
        print(orjson.dumps(ready).decode(), flush=True)
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            command = orjson.loads(line)
            stalls.taken()
            if command["do"] == "promote":
                await fleet.promote(command["rate"], command["seconds"])
            else:
                await asyncio.sleep(command["seconds"])
            # What was written last is published, too.
            await asyncio.sleep(1)
            print(orjson.dumps({"done": True, "stall": stalls.taken()}).decode(), flush=True)
        sampling.cancel()
        await page.stop()


# The viewers.


@dataclass(slots=True)
class _Viewer:
    """One open stream; `patches` are the times at which patches of a row arrived, for a viewer that looks into them."""

    name: str
    looks: bool = False
    size: int = 0
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    patches: dict[str, list[float]] = field(default_factory=dict)

    async def follow(self, session: aiohttp.ClientSession, url: str) -> None:
        headers = {"X-Viewer": self.name, "Accept-Encoding": "gzip"}
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        rest = b""
        async with session.get(f"{url}/api/ui/v1/stream/overview", headers=headers) as answer:
            async for chunk in answer.content.iter_any():
                arrived = time.monotonic()
                self.size += len(chunk)
                if self.complete.is_set() and not self.looks:
                    continue
                rest += unpacking.decompress(chunk)
                *events, rest = rest.split(b"\n\n")
                for event in events:
                    self._take(event, arrived)

    def _take(self, event: bytes, arrived: float) -> None:
        if event.startswith(b"event: complete"):
            self.complete.set()
        elif event.startswith(b"event: patch"):
            for row in orjson.loads(event[event.index(b"\ndata: ") + 7 :]).get("rows", {}):
                self.patches.setdefault(row, []).append(arrived)


@dataclass(slots=True)
class _Run:
    """The cost of one command to the process under test."""

    cpu: float
    stall: Json
    written: list[Json]


async def _command(subject: Subject, **command: Any) -> _Run:
    process = subject.process
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process under test has no pipes")
    before = subject.cpu()
    process.stdin.write(orjson.dumps(command) + b"\n")
    written: list[Json] = []
    while True:
        line = orjson.loads(await process.stdout.readline())
        if "done" in line:
            return _Run(subject.cpu() - before, line["stall"], written)
        written.append(line)


def _shown(stall: Json) -> str:
    return f"loop busy {stall['busy'] * 1000:.0f} ms at most (late {stall['late'] * 1000:.0f} ms)"


def _latencies(viewer: _Viewer, written: Sequence[Json]) -> list[float]:
    found = []
    for write in written:
        later = [moment for moment in viewer.patches.get(write["row"], ()) if moment >= write["at"]]
        found += later[:1] and [later[0] - write["at"]]
    return sorted(found)


async def _measure(*, pipelines: int, viewers: int, rate: int, seconds: int) -> None:
    print(f"the page on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"{SystemClock().now():%Y-%m-%d}: {pipelines} Pipelines of {len(ENVIRONMENTS)} environments, ", end="")
    print(f"{2 * pipelines} Bundles, load {os.getloadavg()[0]:.1f}\n")
    async with run_module("hack.bench.ui", "--serve", "--pipelines", str(pipelines)) as subject:
        url = subject.answer["url"]
        print(f"rows computed at the start   {subject.answer['ready']:.2f} s", end="")
        print(f", {_shown(subject.answer['stall'])}, {subject.memory():.0f} MiB")
        alone = await _command(subject, do="promote", rate=rate, seconds=seconds)
        print(f"{rate} promotions a minute     {alone.cpu / seconds:.1%} of a core without viewers")
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=timeout, auto_decompress=False
        ) as session:
            for name in ("connect", "connect again"):
                memory = subject.memory()
                people = [_Viewer(f"viewer-{number}", looks=not number) for number in range(viewers)]
                begin = time.monotonic()
                waiting = asyncio.create_task(_command(subject, do="wait", seconds=2))
                following = [asyncio.create_task(each.follow(session, url)) for each in people]
                await asyncio.gather(*(each.complete.wait() for each in people))
                took = time.monotonic() - begin
                run = await waiting
                size = statistics.median(each.size for each in people)
                print(f"{viewers} viewers {name:<14} {took:.2f} s, {_shown(run.stall)}, ", end="")
                print(
                    f"{size / 1000:.0f} KB each, {(subject.memory() - memory) * 1024 / viewers:.0f} KiB of memory each"
                )
                if name == "connect":
                    await _print_promotions(subject, people, alone, rate=rate, seconds=seconds)
                for task in following:
                    task.cancel()
                await asyncio.gather(*following, return_exceptions=True)


async def _print_promotions(
    subject: Subject, people: Sequence[_Viewer], alone: _Run, *, rate: int, seconds: int
) -> None:
    sizes = [each.size for each in people]
    run = await _command(subject, do="promote", rate=rate, seconds=seconds)
    late = _latencies(people[0], run.written)
    each = statistics.median(now.size - before for now, before in zip(people, sizes, strict=True))
    more = (run.cpu - alone.cpu) / seconds
    print(f"{rate} promotions a minute     {run.cpu / seconds:.1%} of a core, {more:+.1%} for the viewers, ", end="")
    print(f"{each / 1000 * 60 / seconds:.0f} KB a minute each, {_shown(run.stall)}")
    print(f"write to patch               p50 {late[len(late) // 2] * 1000:.0f} ms, ", end="")
    print(f"p95 {late[int(len(late) * 0.95)] * 1000:.0f} ms, {len(late)} of {len(run.written)} writes seen")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what viewers of the page cost.")
    parser.add_argument("--pipelines", type=int, default=1000)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--rate", type=int, default=1000, help="promotions a minute")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--serve", action="store_true", help="be the process under test")
    options = vars(parser.parse_args())
    if options.pop("serve"):
        configure(level="error")
        asyncio.run(_serve(options["pipelines"]))
    else:
        asyncio.run(_measure(**options))


if __name__ == "__main__":
    main()
