"""A plain HTTP client of an API server that keeps what it hears.

The cases of the suite look at what is on the wire, below any client of ours. Everything that a case asks for is on its
tape; what it does to wait or to tidy up is not, because nobody knows how often it has to ask.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from tests.local.contract.connection import Connection
from tests.local.contract.examples import JsonObject, widget, widget_definition
from tests.local.contract.scope import Scope
from tests.local.contract.tape import Exchange, Tape
from tests.local.contract.verbs import Answer, Stream, Verbs

__all__ = ["Answer", "Api", "WatchStream"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_POLL_SECONDS = 0.02
"""Between two questions to a real server, which has others to answer; the local plane needs none."""


class WatchStream(Stream):
    """One watch, event by event; only the events that are taken are on the tape."""

    def __init__(self, api: Api, path: str, query: dict[str, object], headers: dict[str, str]) -> None:
        self._api = api
        self._arguments = (path, query, headers)

    async def __aenter__(self) -> WatchStream:
        path, query, headers = self._arguments
        self.answer, self._exchange = await self._api.open("GET", path, None, query=query, headers=headers)
        self.status = self.answer.status
        self._exchange.answer["events"] = []
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.answer.close()
        # The socket goes in the next rounds of the loop, which may be the last ones of the test.
        for _ in range(3):
            await asyncio.sleep(0)

    def heard(self, event: JsonObject) -> None:
        self._exchange.answer["events"].append(event)

    async def ended(self) -> bool:
        ended = await super().ended()
        self._exchange.answer["ended"] = ended
        return ended


@dataclass(frozen=True)
class Api(Verbs):
    """Requests of one identity."""

    session: aiohttp.ClientSession
    connection: Connection
    tape: Tape
    scope: Scope
    real: bool
    headers: tuple[tuple[str, str], ...] = ()
    token: str | None = None

    # Where things are.

    @property
    def server(self) -> str:
        return self.connection.server

    @property
    def namespace(self) -> str:
        """A namespace of this test alone, made before the next request."""
        return self.scope.use_namespace()

    @property
    def group(self) -> str:
        """An API group of this test alone."""
        return self.scope.group

    def another_namespace(self, suffix: str) -> str:
        """The name of a namespace that the case makes itself; it is deleted in the end."""
        return self.scope.another_namespace(suffix)

    def path(
        self,
        plural: str,
        name: str = "",
        *,
        group: str = "",
        version: str = "v1",
        namespace: str | None = "",
        subresource: str = "",
    ) -> str:
        """The path of a collection, an object or a subresource; in this test's namespace unless told otherwise."""
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        inside = () if namespace is None else ("namespaces", namespace or self.namespace)
        return "/".join(filter(None, (root, *inside, plural, name, subresource)))

    def widgets(self, **version: Any) -> JsonObject:
        """The definition of a small kind in this test's group."""
        return widget_definition(self.group, **version)

    def widget(self, name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
        return widget(self.group, name, labels=labels, **spec)

    # Who asks.

    def as_user(self, name: str, *, groups: tuple[str, ...] = ()) -> Api:
        """The administrator in the name of somebody else."""
        impersonated = (("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups))
        return replace(self, headers=(*self.headers, *impersonated))

    def with_token(self, token: str) -> Api:
        """Whoever the token says, or nobody when it is empty."""
        return replace(self, token=token)

    @property
    def silent(self) -> Api:
        """The same without a recording: for preparation, for what others change, for requests at once."""
        return replace(self, tape=Tape())

    # What is asked.

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        message: str = "",
        **query: object,
    ) -> Answer:
        """One request; `message="loose"` says that the words of a refusal may differ."""
        typed = {} if body is None else {"Content-Type": content_type}
        loose = message == "loose"
        answer, exchange = await self.open(
            method, path, body, query=query, headers=typed | (headers or {}), loose=loose
        )
        async with answer:
            content = await answer.read()
        # The index of the OpenAPI documents is JSON and called text.
        is_json = content.startswith(b"{") or ("json" in answer.headers.get("Content-Type", "") and content)
        found = orjson.loads(content) if is_json else content
        exchange.answer["body"] = found if is_json else content.decode(errors="backslashreplace")
        return Answer(answer.status, found, answer.headers)

    async def open(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        query: dict[str, object],
        headers: dict[str, str],
        loose: bool = False,
    ) -> tuple[aiohttp.ClientResponse, Exchange]:
        """Send a request and return with the head of its answer."""
        await self.scope.prepare(replace(self.silent, headers=(), token=None))
        url = URL(path, encoded=True).update_query({key: str(value) for key, value in query.items()})
        content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        exchange = self.tape.start(f"{method} {url}", body=content, loose=loose)
        sent = CIMultiDict([*self.headers, *headers.items()])
        sent.setdefault("User-Agent", "contract/1.0")
        token = self.connection.token if self.token is None else self.token
        if token and "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {token}"
        answer = await self.session.request(
            method,
            URL(self.server + str(url), encoded=True),
            data=None if content is None else io.BytesIO(content),
            headers=sent,
            allow_redirects=False,
            ssl=self.connection.tls if self.token is None else self.connection.anonymous_tls,
        )
        exchange.answered(answer.status, answer.headers)
        return answer, exchange

    def note(self, what: str, value: Any) -> None:
        """Put on tape what a case derived from silent answers that are too large or too much of one machine."""
        # As JSON, which is what a recording can hold: it knows no tuples.
        self.tape.start(what, body=None, loose=False).answer["body"] = orjson.loads(orjson.dumps(value))

    def watch(self, path: str, *, headers: dict[str, str] | None = None, **query: object) -> WatchStream:
        return WatchStream(self, path, {"watch": "true", **query}, headers or {})

    # Waiting; none of it is on the tape.

    async def until(self, condition: Callable[[], Awaitable[Any]]) -> None:
        """Ask until the answer is yes; the timeout of the test is the end of patience."""
        while not await condition():
            await asyncio.sleep(_POLL_SECONDS if self.real else 0)

    async def gone(self, path: str) -> None:
        """Wait until nothing is at `path`."""

        async def absent() -> bool:
            return (await self.silent.get(path)).status == 404

        await self.until(absent)

    async def define(self, definition: JsonObject) -> None:
        """Create a definition and wait until its kinds are served, lists and watches included."""
        created = await self.silent.post(DEFINITIONS, definition)
        assert created.status == 201, created.body
        spec = definition["spec"]
        self.scope.defined(definition["metadata"]["name"])
        for version in spec["versions"]:
            if version["served"]:
                at = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
                await self.until(partial(self._serves, at))
        if self.real:
            await self._age(f"{DEFINITIONS}/{definition['metadata']['name']}")

    async def _serves(self, path: str) -> bool:
        if (await self.silent.get(path)).status != 200:
            return False
        async with self.silent.watch(path, resourceVersion=0) as stream:
            return stream.status == 200

    async def _age(self, path: str) -> None:
        """Have a kind be served for an hour already.

        For two seconds after it began to serve a kind, a server sleeps two seconds before it creates an object of it,
        in case a server beside it has not heard of the kind yet.
        """
        conditions = (await self.silent.get(path)).body["status"]["conditions"]
        [index] = (index for index, one in enumerate(conditions) if one["type"] == "Established")
        began = datetime.fromisoformat(conditions[index]["lastTransitionTime"])
        earlier = (began - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
        at = f"/status/conditions/{index}"
        # No more than the time: controllers write conditions beside it. And in the server's own name: the definition
        # looks as if nobody else had touched it.
        operations = [
            {"op": "test", "path": f"{at}/type", "value": "Established"},
            {"op": "replace", "path": f"{at}/lastTransitionTime", "value": earlier},
        ]
        aged = await self.silent.json(f"{path}/status", operations, fieldManager="kube-apiserver")
        assert aged.status == 200, aged.body
