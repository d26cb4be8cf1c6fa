"""Asking a starting API server until it answers.

One that says it is ready may still answer 429 for seconds while its caches of custom kinds fill, so ready means here
that custom kinds are listed and watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiohttp

__all__ = ["DEFINITIONS", "Patience"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLL_SECONDS = 0.02

JsonObject = Mapping[str, Any]

_PROBES: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "probes.readiness.kardinal.io"},
    "spec": {
        "group": "readiness.kardinal.io",
        "scope": "Cluster",
        "names": {"plural": "probes", "kind": "Probe"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Patience:
    """Requests that are repeated until they are answered as wanted; `check` raises when waiting has become useless."""

    def __init__(self, session: aiohttp.ClientSession, check: Callable[[], None]) -> None:
        self._session = session
        self._check = check

    async def answers(self, path: str, *, status: int = 200) -> None:
        async def answered() -> bool:
            try:
                async with self._session.get(path) as answer:
                    return answer.status == status
            except aiohttp.ClientConnectionError:
                return False

        await self._until(answered)

    async def create(self, path: str, document: JsonObject) -> None:
        async with self._session.post(path, json=document) as answer:
            answer.raise_for_status()

    async def define(self, definitions: Sequence[JsonObject]) -> None:
        """Create custom kinds and wait until each is served, and one more that is taken away again."""
        for definition in (*definitions, _PROBES):
            await self.create(DEFINITIONS, definition)
        for definition in (*definitions, _PROBES):
            spec = definition["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            await self.answers(path)
            await self.answers(f"{path}?watch=true&resourceVersion=0&timeoutSeconds=1")
        probe = f"{DEFINITIONS}/{_PROBES['metadata']['name']}"
        async with self._session.delete(probe) as answer:
            answer.raise_for_status()
        await self.answers(probe, status=404)

    async def node(self, name: str) -> None:
        """Create a node and wait until it is ready."""
        await self.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})

        async def ready() -> bool:
            async with self._session.get(f"/api/v1/nodes/{name}") as answer:
                conditions = (await answer.json())["status"].get("conditions", [])
            return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

        await self._until(ready)

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        while not await condition():
            self._check()
            await asyncio.sleep(POLL_SECONDS)
