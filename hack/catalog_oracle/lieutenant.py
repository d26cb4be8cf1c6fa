"""A stand-in for the Lieutenant API, which tells Commodore about clusters and tenants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["answers", "serving"]


def answers(documents: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what Lieutenant answers to the paths of the tenants and clusters of these documents."""
    documents = list(documents)
    tenants = {found["metadata"]["name"]: found["spec"] for found in documents if found["kind"] == "CatalogTenant"}
    found = {f"/tenants/{name}": _tenant(name, spec) for name, spec in tenants.items()}
    for document in documents:
        if document["kind"] == "CatalogCluster":
            name = document["metadata"]["name"]
            found[f"/clusters/{name}"] = _cluster(name, document["spec"])
    return found


def _tenant(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    answer = {
        "id": name,
        "displayName": spec.get("displayName", name),
        "globalGitRepoURL": spec["global"]["url"],
        "gitRepo": {"url": spec["inventory"]["url"]},
    }
    return answer | _revisions(spec)


def _cluster(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    answer = {
        "id": name,
        "displayName": spec.get("displayName", name),
        "tenant": spec["tenant"],
        "facts": spec.get("facts", {}),
        "gitRepo": {"url": spec["catalog"]["url"]},
    }
    if "dynamicFacts" in spec:
        answer["dynamicFacts"] = spec["dynamicFacts"]
    return answer | _revisions(spec)


def _revisions(spec: Mapping[str, Any]) -> dict[str, str]:
    fields = {"globalGitRepoRevision": "global", "tenantGitRepoRevision": "inventory"}
    return {
        field: spec[repository]["revision"]
        for field, repository in fields.items()
        if "revision" in spec.get(repository, {})
    }


@contextmanager
def serving(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Serve these answers on loopback; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = found.get(self.path.partition("?")[0].rstrip("/"))
            body = json.dumps(answer if answer is not None else {"reason": "not found"}).encode()
            self.send_response(200 if answer is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the base class)
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
