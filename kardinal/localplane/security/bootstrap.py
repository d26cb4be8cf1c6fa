"""What is there before anybody asks: namespaces, and the roles and bindings of every cluster (local-plane.md 5.1).

The roles are those of the real server, word for word; `bootstrap.jsonl` holds them as `hack/kube/bootstrap_policy.py`
found them there. They are written as they are instead of through the rules for requests, because a plane has to start
in milliseconds. What a person deleted comes back at the next start; what a person changed stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import orjson

from kardinal.localplane.builtin import NAMESPACE
from kardinal.localplane.documents import JsonObject, timestamp
from kardinal.localplane.security.access import RBAC_GROUP
from kardinal.localplane.storage import Store
from kardinal.runtime.clock import Clock

__all__ = ["SYSTEM_NAMESPACES", "bootstrap"]

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "kardinal-system")
# Read with the module: no file is opened on the event loop.
_POLICY = tuple(Path(__file__).with_name("bootstrap.jsonl").read_bytes().splitlines())


def bootstrap(store: Store, *, clock: Clock) -> None:
    """Create what is missing."""
    now = timestamp(clock.now())
    for storage, document in _documents():
        if store.get(storage, namespace="", name=document["metadata"]["name"]) is None:
            store.put(storage, _stamped(document, now=now))


def _documents() -> Iterator[tuple[str, JsonObject]]:
    for name in SYSTEM_NAMESPACES:
        yield NAMESPACE.storage, _namespace(name)
    for line in _POLICY:
        document: JsonObject = orjson.loads(line)
        yield f"{document['kind'].lower()}s.{RBAC_GROUP}", document


def _namespace(name: str) -> JsonObject:
    fields: JsonObject = {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}}
    managed = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}, "managedFields": [managed]},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _stamped(document: JsonObject, *, now: str) -> JsonObject:
    metadata = document["metadata"]
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": now}
    for managed in metadata["managedFields"]:
        managed["time"] = now
    return document
