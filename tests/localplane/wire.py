"""A plain HTTP client of the plane, and a small kind to try it on.

These tests look at what is on the wire, below any client of ours.
"""

from __future__ import annotations

import base64
import io
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml
from yarl import URL

JsonObject = dict[str, Any]

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Answer:
    """What the plane answered."""

    status: int
    body: Any
    headers: Any = field(repr=False)

    @property
    def revision(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


class WatchStream:
    """One watch, event by event."""

    def __init__(self, session: aiohttp.ClientSession, path: str, query: dict[str, str]) -> None:
        self._request = session.get(path, params=query)

    async def __aenter__(self) -> WatchStream:
        self.answer = await self._request.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.answer.close()

    async def next(self) -> tuple[str, Any]:
        """The type and object of the next event."""
        line = await self.answer.content.readline()
        assert line, "the watch ended"
        event = orjson.loads(line)
        return event["type"], event["object"]

    async def names(self, number: int) -> list[tuple[str, str]]:
        """Types and names of the next events."""
        events = [await self.next() for _ in range(number)]
        return [(kind, found["metadata"]["name"]) for kind, found in events]

    async def ended(self) -> bool:
        """Whether the server ended the watch without another event."""
        return await self.answer.content.readline() == b""


class Http:
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

    async def get(self, path: str, **query: Any) -> Answer:
        return await self("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("PUT", path, body, **query)

    async def merge(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("PATCH", path, body, content_type="application/merge-patch+json", **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self("DELETE", path, body, **query)

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
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "default": 3},
                    "colour": {"type": "string", "enum": ["red", "green"]},
                    "parts": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
                        },
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                    },
                },
                "x-kubernetes-validations": [
                    {"rule": "!has(oldSelf.colour) || self.colour == oldSelf.colour", "message": "colour is immutable"}
                ],
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                    **version,
                }
            ],
        },
    }


def widget(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def config_map(name: str, *, labels: dict[str, str] | None = None, **data: str) -> JsonObject:
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
