"""Create what a plane starts with: namespaces with their accounts, and the roles and bindings of every cluster.

The roles are those of the real server, word for word; `bootstrap.jsonl` holds them as `hack/kube/bootstrap_policy.py`
found them there. All of it is written as it is instead of through the rules for requests, and into a new file at once,
because a plane has to start in milliseconds. What a person deleted comes back at the next start; what a person changed
stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import orjson

from kardinal_local.plane.builtin import NAMESPACE
from kardinal_local.plane.documents import JsonObject, timestamp
from kardinal_local.plane.security.access import RBAC_GROUP
from kardinal_local.plane.storage import Store

__all__ = ["SYSTEM_NAMESPACES", "bootstrap", "first_objects"]

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "kardinal-system")
# Read with the module: no file is opened on the event loop.
_POLICY = tuple(Path(__file__).with_name("bootstrap.jsonl").read_bytes().splitlines())


def first_objects(now: datetime) -> Iterator[tuple[str, JsonObject]]:
    """The resources and documents that a new plane starts with."""
    moment = timestamp(now)
    return ((resource, _stamped(document, moment)) for resource, document in _documents())


def bootstrap(store: Store, *, now: datetime) -> None:
    """Create what is missing."""
    for resource, document in _documents():
        metadata = document["metadata"]
        if store.get(resource, namespace=metadata.get("namespace", ""), name=metadata["name"]) is None:
            store.put(resource, _stamped(document, timestamp(now)))


def _documents() -> Iterator[tuple[str, JsonObject]]:
    for name in SYSTEM_NAMESPACES:
        yield NAMESPACE.storage, _namespace(name)
    for line in _POLICY:
        document: JsonObject = orjson.loads(line)
        yield f"{document['kind'].lower()}s.{RBAC_GROUP}", document
    for name in SYSTEM_NAMESPACES:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        yield "serviceaccounts", account


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


def _stamped(document: JsonObject, moment: str) -> JsonObject:
    metadata = document["metadata"]
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": moment}
    for managed in metadata.get("managedFields", ()):
        managed["time"] = moment
    return document
