"""A server to ask: one connection pool, a namespace of its own, definitions that go when it is left."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml
from yarl import URL

from tests.local.contract.fuzz.builtins import BUILTINS, root_of
from tests.local.contract.fuzz.outcomes import HUNG_UP
from tests.local.contract.fuzz.steps import PATCH_TYPES, JsonObject

__all__ = ["Server", "serving"]

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POLL_SECONDS = 0.02


class Server:
    """Requests of an admin."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def ask(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", **query: str
    ) -> tuple[int, Any]:
        data = None if body is None else orjson.dumps(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        url = URL(path, encoded=True).with_query(query)
        try:
            async with self._session.request(method, url, data=data, headers=headers) as answer:
                content = await answer.read()
                return answer.status, orjson.loads(content) if "json" in answer.content_type else content.decode()
        except aiohttp.ServerDisconnectedError:
            return HUNG_UP, "the server hung up"

    async def prepare(self, definitions: list[JsonObject], *, namespace: str) -> None:
        """Have the definitions served and the namespace there."""
        await asyncio.gather(*(self._define(crd) for crd in definitions))
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        status, answer = await self.ask("POST", "/api/v1/namespaces", body)
        if status not in (201, 409):
            raise RuntimeError(f"the namespace was refused: {answer}")

    async def tidy(self, definitions: list[JsonObject], *, namespace: str) -> None:
        """Take away what was prepared, and the finalizers that would keep it."""
        collections = [
            f"/apis/{crd['spec']['group']}/v1/namespaces/{namespace}/{crd['spec']['names']['plural']}"
            for crd in definitions
        ]
        for api_version, plural in BUILTINS.values():
            collections.append(f"{root_of(api_version)}/namespaces/{namespace}/{plural}")
        await asyncio.gather(*(self._release(collection) for collection in collections))
        paths = [f"{_DEFINITIONS}/{crd['metadata']['name']}" for crd in definitions]
        await asyncio.gather(*(self.ask("DELETE", path) for path in [*paths, f"/api/v1/namespaces/{namespace}"]))

    async def _release(self, collection: str) -> None:
        _, found = await self.ask("GET", collection)
        free = {"metadata": {"finalizers": None}}
        for item in found["items"]:
            if item["metadata"].get("finalizers"):
                path = f"{collection}/{item['metadata']['name']}"
                await self.ask("PATCH", path, free, content_type=PATCH_TYPES["merge"])

    async def _define(self, crd: JsonObject) -> None:
        status, answer = await self.ask("POST", _DEFINITIONS, crd)
        if status not in (201, 409):
            raise RuntimeError(f"a generated definition was refused: {orjson.dumps(answer).decode()}")
        spec = crd["spec"]
        path = f"/apis/{spec['group']}/v1/{spec['names']['plural']}"
        while (await self.ask("GET", path))[0] != 200:
            await asyncio.sleep(_POLL_SECONDS)


@asynccontextmanager
async def serving(kubeconfig: Path) -> AsyncIterator[Server]:
    """The server of a kubeconfig's current context; a URL in its place is not enough: it takes credentials."""
    config = yaml.safe_load(kubeconfig.read_bytes())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    async with aiohttp.ClientSession(
        cluster["server"],
        connector=aiohttp.TCPConnector(ssl=_trust(cluster, user), limit=8),
        headers={"Authorization": f"Bearer {user['token']}"} if "token" in user else {},
        timeout=aiohttp.ClientTimeout(total=60),
    ) as session:
        yield Server(session)


def _trust(cluster: JsonObject, user: JsonObject) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if "certificate-authority-data" in cluster:
        context.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    elif "certificate-authority" in cluster:
        context.load_verify_locations(cafile=cluster["certificate-authority"])
    elif cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "client-certificate" in user:
        context.load_cert_chain(user["client-certificate"], user["client-key"])
    return context
