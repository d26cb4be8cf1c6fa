"""A plain HTTP client of the plane, and a small kind to try it on: the requests of the contract suite, without a tape.

These tests look at what is on the wire, below any client of ours.
"""

from __future__ import annotations

import base64
import io
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml
from yarl import URL

from tests.local.contract import examples
from tests.local.contract.examples import JsonObject, config_map
from tests.local.contract.verbs import Answer, Stream, Verbs
from tests.local.contract.wire import DEFINITIONS

__all__ = [
    "CONFIG_MAPS",
    "DEFINITIONS",
    "WIDGETS",
    "Answer",
    "Http",
    "JsonObject",
    "config_map",
    "session_for",
    "until",
    "widget",
    "widget_definition",
]

GROUP = "example.com"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class WatchStream(Stream):
    """One watch, event by event."""

    def __init__(self, session: aiohttp.ClientSession, path: str, query: dict[str, str]) -> None:
        self._request = session.get(path, params=query)

    async def __aenter__(self) -> WatchStream:
        self.answer = await self._request.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.answer.close()


class Http(Verbs):
    """Requests of one identity."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        **query: object,
    ) -> Answer:
        content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        data = None if content is None else io.BytesIO(content)
        sent = {"Content-Type": content_type, **(headers or {})} if data is not None else headers
        params = {key: str(value) for key, value in query.items()}
        async with self.session.request(
            method, URL(path, encoded=True), data=data, headers=sent, params=params
        ) as answer:
            content = await answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "")
            return Answer(answer.status, orjson.loads(content) if is_json else content, answer.headers)

    def watch(self, path: str, **query: object) -> WatchStream:
        return WatchStream(self.session, path, {"watch": "true", **{key: str(value) for key, value in query.items()}})

    async def define(self, definition: JsonObject) -> None:
        """Create a definition and wait until its kind is served."""
        created = await self.post(DEFINITIONS, definition)
        assert created.status == 201, created.body
        name = definition["metadata"]["name"]
        await until(lambda: self._is_established(name))

    async def _is_established(self, name: str) -> bool:
        found = await self.get(f"{DEFINITIONS}/{name}")
        conditions = found.body["status"].get("conditions", [])
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    async def gone(self, path: str) -> None:
        """Wait until nothing is at `path`."""

        async def absent() -> bool:
            return (await self.get(path)).status == 404

        await until(absent)


async def until(condition: Callable[[], Any]) -> None:
    """Ask until the answer is yes; each question is a request, and pytest's timeout is the end of patience."""
    while not await condition():
        pass


def session_for(kubeconfig: Path, *, token: str | None = None) -> aiohttp.ClientSession:
    """A session as the user of `kubeconfig`, or with another token."""
    config = yaml.safe_load(kubeconfig.read_bytes())
    cluster = config["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    token = config["users"][0]["user"]["token"] if token is None else token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return aiohttp.ClientSession(cluster["server"], connector=aiohttp.TCPConnector(ssl=context), headers=headers)


def widget_definition(**version: Any) -> JsonObject:
    """A definition of a small namespaced kind with a status, to try the server on."""
    return examples.widget_definition(GROUP, **version)


def widget(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    return examples.widget(GROUP, name, labels=labels, **spec)
