"""Requests to a real API server between and beside those of a test, which the test's request log does not hold."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
import yaml

from kardinal.objects import ResourceType
from tests.support.exchange import RefusedRequest, exchange

__all__ = ["Administrator"]

JsonObject = dict[str, Any]

_SECONDS = 30.0
_APPLY = "application/apply-patch+yaml"


class Administrator:
    """A blocking connection with an administrator's client certificate, as the launcher's kubeconfig has one."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        user = document["users"][0]["user"]
        self.url: str = cluster["server"]
        self.authority = Path(cluster["certificate-authority"])
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._connection = http.client.HTTPSConnection(urlsplit(self.url).netloc, context=context, timeout=_SECONDS)

    def get(self, path: str) -> JsonObject:
        return self._ask("GET", path, None)

    def cached(self, resource: ResourceType) -> list[JsonObject]:
        """All objects of a kind as the server remembers them, which may be behind what it has stored."""
        return cast("list[JsonObject]", self.get(f"{resource.path()}?resourceVersion=0")["items"])

    def apply(self, resource: ResourceType, document: JsonObject) -> None:
        metadata = document["metadata"]
        path = resource.path(namespace=metadata.get("namespace"), name=metadata["name"])
        self._ask("PATCH", f"{path}?fieldManager=test&force=true", document, content_type=_APPLY)

    def merge(self, path: str, change: JsonObject) -> None:
        self._ask("PATCH", path, change, content_type="application/merge-patch+json")

    def post(self, path: str, body: JsonObject) -> JsonObject:
        return self._ask("POST", path, body)

    def refusal(self, path: str, body: JsonObject, *, user: str) -> str:
        """Post as another user; returns why it was refused, or nothing."""
        try:
            self._ask("POST", path, body, user=user)
        except RefusedRequest as refused:
            return str(refused)
        return ""

    def delete(self, path: str) -> None:
        self._ask("DELETE", path, None)

    def close(self) -> None:
        self._connection.close()

    def _ask(
        self,
        method: str,
        path: str,
        body: JsonObject | None,
        *,
        content_type: str = "application/json",
        user: str | None = None,
    ) -> JsonObject:
        headers = {"User-Agent": "settle", "Content-Type": content_type, "Accept": "application/json"}
        if user is not None:
            headers["Impersonate-User"] = user
        data = None if body is None else orjson.dumps(body)
        content = exchange(self._connection, method, path, data, headers)
        found: JsonObject = orjson.loads(content)
        return found
