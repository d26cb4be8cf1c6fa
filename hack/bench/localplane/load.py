"""The load generator, a separate process: it sends requests to one API server, and prints its figures as JSON.

    python -m hack.bench.localplane.load SCENARIO --kubeconfig FILE

The clients share only the event loop. Each client waits for the response before its next request, as controllers do.
Times are in seconds as the client measures them, including TLS.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import uvloop
import yaml

__all__ = ["SCENARIOS"]

GROUP = "bench.kardinal.io"
KIND_PATH = f"/apis/{GROUP}/v1"
CLIENTS = 16
WRITES = 2000
IDLE_WRITES = 300
LISTED = 10_000
UPDATES = 100_000
WATCHERS = 100
WATCHED_WRITES = 100
WATCHED_PER_SECOND = 20
PAYLOAD = "x" * 1500
"""The data of an object, which has about 2 KB with its metadata and managed fields."""
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = {"Content-Type": "application/merge-patch+json"}

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Server:
    """A client of one API server with one identity."""

    session: aiohttp.ClientSession

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        data = None if body is None else orjson.dumps(body)
        sent = {"Content-Type": "application/json"} | headers
        async with self.session.request(method, path, data=data, headers=sent) as answer:
            content = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
            return content

    async def occurrences(self, text: bytes, path: str, **headers: str) -> int:
        """Return how often a text occurs in a response. It is read in chunks, so that other clients are not delayed."""
        found = 0
        end = b""
        async with self.session.get(path, headers=headers) as answer:
            answer.raise_for_status()
            async for piece in answer.content.iter_any():
                found += (end + piece).count(text)
                end = piece[-len(text) + 1 :]
        return found

    async def status(self, path: str, body: object) -> None:
        await self.send("PATCH", f"{path}/status", body, **MERGE)


def load(name: str, namespace: str) -> dict[str, Any]:
    """Return an object of about 2 KB."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Load",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name, "part": name[-2:]}},
        "spec": {"payload": PAYLOAD, "size": 3, "parts": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]},
    }


def path_of(namespace: str, name: str = "") -> str:
    return f"{KIND_PATH}/namespaces/{namespace}/loads" + (f"/{name}" if name else "")


async def throughput(server: Server, namespace: str) -> Figures:
    """Measure the creates and status patches per second of several concurrent clients."""
    names = [f"load-{number:05}" for number in range(WRITES)]

    async def create(name: str) -> None:
        await server.send("POST", path_of(namespace), load(name, namespace))

    async def patch(name: str) -> None:
        await server.status(path_of(namespace, name), {"status": {"phase": "Ready", "seen": len(name)}})

    return {"creates": WRITES / await _all(names, create), "patches": WRITES / await _all(names, patch)}


async def idle(server: Server, namespace: str) -> Figures:
    """Measure the time of one write without other load."""
    await server.send("POST", path_of(namespace), load("one", namespace))
    took = []
    for number in range(IDLE_WRITES):
        began = time.perf_counter()
        await server.status(path_of(namespace, "one"), {"status": {"phase": "Ready", "seen": number}})
        took.append(time.perf_counter() - began)
    return {"p50": statistics.median(took), "p99": _percentile(took, 99)}


async def fill(server: Server, namespace: str) -> Figures:
    """Create the objects that are listed."""
    names = [f"load-{number:05}" for number in range(LISTED)]
    await _all(names, lambda name: server.send("POST", path_of(namespace), load(name, namespace)))
    return {"objects": LISTED}


async def update(server: Server, namespace: str) -> Figures:
    """Update the objects that `fill` created many times."""
    numbers = range(UPDATES)

    async def patch(number: int) -> None:
        name = f"load-{number % LISTED:05}"
        await server.status(path_of(namespace, name), {"status": {"phase": "Ready", "seen": number}})

    return {"updates": UPDATES / await _all(numbers, patch)}


async def lists(server: Server, namespace: str) -> Figures:
    """Measure a list of all objects, as objects and as a Table, and the time that other clients wait meanwhile."""
    figures: Figures = {}
    for name, headers in (("json", {}), ("table", {"Accept": TABLE})):
        async with _pinging(server) as waits:
            began = time.perf_counter()
            found = await server.occurrences(b'"name":"load-', path_of(namespace), **headers)
            figures[name] = time.perf_counter() - began
        if found != LISTED:
            raise RuntimeError(f"the list of {name} is not whole: {found} objects")
        figures[f"{name}_stall"] = max(waits)
    return figures


async def watch(server: Server, namespace: str) -> Figures:
    """Measure the time from the start of a write until each of many watchers has received it."""
    await server.send("POST", path_of(namespace), load("watched", namespace))
    sent: dict[int, float] = {}
    took: list[float] = []
    ready = asyncio.Semaphore(0)

    async def follow() -> None:
        left = WATCHED_WRITES
        query = f"{path_of(namespace)}?watch=true&fieldSelector=metadata.name%3Dwatched"
        async with server.session.get(query) as answer:
            async for line in answer.content:
                now = time.perf_counter()
                number = orjson.loads(line)["object"].get("status", {}).get("seen", 0)
                if number == 0:
                    ready.release()
                    continue
                took.append(now - sent[number])
                left -= 1
                if not left:
                    return

    watchers = [asyncio.create_task(follow()) for _ in range(WATCHERS)]
    for _ in watchers:
        await ready.acquire()
    began = time.perf_counter()
    for number in range(1, WATCHED_WRITES + 1):
        await asyncio.sleep(max(0.0, began + number / WATCHED_PER_SECOND - time.perf_counter()))
        sent[number] = time.perf_counter()
        await server.status(path_of(namespace, "watched"), {"status": {"phase": "Ready", "seen": number}})
    await asyncio.gather(*watchers)
    return {"p50": statistics.median(took), "p99": _percentile(took, 99)}


SCENARIOS: dict[str, Callable[[Server, str], Awaitable[Figures]]] = {
    one.__name__: one for one in (throughput, idle, fill, update, lists, watch)
}


async def _all(items: Any, work: Callable[[Any], Awaitable[object]]) -> float:
    """Process all items by concurrent clients, and return the seconds until all are done."""
    waiting = iter(items)

    async def client() -> None:
        for item in waiting:
            await work(item)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return time.perf_counter() - began


@asynccontextmanager
async def _pinging(server: Server) -> AsyncIterator[list[float]]:
    """Measure the latency of the smallest request again and again during the block, and yield the list of times."""
    waits: list[float] = []
    connected = asyncio.Event()

    async def ping() -> None:
        await server.send("GET", "/livez")
        connected.set()
        while True:
            began = time.perf_counter()
            await server.send("GET", "/livez")
            waits.append(time.perf_counter() - began)

    pinging = asyncio.create_task(ping())
    await connected.wait()
    try:
        yield waits
    finally:
        pinging.cancel()


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def _session(kubeconfig: Path) -> aiohttp.ClientSession:
    config = yaml.safe_load(kubeconfig.read_bytes())
    cluster = config["clusters"][0]["cluster"]
    user = config["users"][0]["user"]
    context = ssl.create_default_context(cafile=cluster["certificate-authority"])
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    headers = {"Authorization": f"Bearer {user['token']}", "User-Agent": "bench"}
    timeout = aiohttp.ClientTimeout(total=600)
    return aiohttp.ClientSession(cluster["server"], connector=connector, headers=headers, timeout=timeout)


async def _measure(scenario: str, kubeconfig: Path, namespace: str) -> Figures:
    async with _session(kubeconfig) as session:
        return await SCENARIOS[scenario](Server(session), namespace)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    options = parser.parse_args()
    figures = uvloop.run(_measure(options.scenario, options.kubeconfig, options.namespace))
    sys.stdout.write(orjson.dumps(figures).decode() + "\n")


if __name__ == "__main__":
    main()
