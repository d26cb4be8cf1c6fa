"""Requests that nobody should send: seeded, so that what one of them breaks can be broken again.

Each is a sensible request with something wrong: in its path, its query, its headers, its body, or in all of them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from random import Random

import orjson

__all__ = ["Hostile", "hostile_request"]

PATHS = (
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/secrets/a",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/events",
    "/api/v1/namespaces",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/deployments/a",
    "/apis/apps/v1/namespaces/default/deployments/a/status",
    "/apis/example.com/v1/namespaces/default/widgets",
    "/apis/example.com/v1/namespaces/default/widgets/a",
    "/apis/example.com/v1/namespaces/default/widgets/a/status",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases/a",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/a",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/openapi/v3",
    "/version",
)
MEDIA_TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    ";;=",
)
ACCEPTED = (
    "*/*",
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ",;=,\u00ff",
    "q=;q=q",
)
PARAMETERS = [
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "pretty",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "includeObject",
    "propagationPolicy",
    "gracePeriodSeconds",
    "orphanDependents",
]
WORDS = (
    *("", "a", "0", "1", "-1", "true", "x=y", "metadata.name=a", "a in (b", "!", "All", "Strict", "Exact", "\u0000"),
    *("NotOlderThan", "%", "\\", "9" * 40, "a" * 300, "../..", "\ud83d\ude00", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"),
)
FIELDS = (
    *("apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "spec", "status", "data", "op"),
    *("finalizers", "ownerReferences", "managedFields", "resourceVersion", "uid", "generateName", "template", "path"),
    *("containers", "replicas", "selector", "size", "colour", "parts", "value", "$patch", "$retainKeys", "versions"),
    *("deletionTimestamp", "creationTimestamp", "rules", "subjects", "names", "group", "schema", "properties", "type"),
)
KINDS = ("ConfigMap", "Secret", "Pod", "Deployment", "Widget", "Lease", "DeleteOptions", "Status", "List", "")
VERSIONS = ("v1", "apps/v1", "example.com/v1", "coordination.k8s.io/v1", "v9", "", "a/b/c")


@dataclass(frozen=True)
class Hostile:
    """One request; its path is sent as it stands here."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None


def hostile_request(random: Random) -> Hostile:
    method = random.choice(("GET", "GET", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS"))
    headers = {"Accept": random.choice(ACCEPTED), "Accept-Encoding": random.choice(("gzip", "identity", "\u00ff"))}
    body = None
    if method not in {"GET", "HEAD", "OPTIONS"}:
        headers["Content-Type"] = random.choice(MEDIA_TYPES)
        body = _body(random, headers["Content-Type"])
    return Hostile(method, f"{_path(random)}?{_query(random)}", headers, body)


def _path(random: Random) -> str:
    path = random.choice(PATHS)
    if random.random() < 0.2:
        position = random.randrange(1, len(path))
        path = path[:position] + random.choice(("/", "%00", "%2f", "..", "%ff", "x" * 300, "%")) + path[position:]
    return path


def _query(random: Random) -> str:
    pairs = (f"{random.choice(PARAMETERS)}={_quoted(random)}" for _ in range(random.randrange(4)))
    # A watch would stay, and so would a list of the future.
    return "&".join(pair for pair in pairs if not pair.startswith("resourceVersion=9"))


def _quoted(random: Random) -> str:
    word = random.choice(WORDS)
    return "".join(f"%{byte:02x}" for byte in word.encode("utf-8", "surrogatepass"))


def _body(random: Random, media_type: str) -> bytes:
    if "protobuf" in media_type:
        return _protobuf(random)
    document = _operations(random) if "json-patch" in media_type else _object(random)
    body = orjson.dumps(document)
    match random.randrange(8):
        case 0:
            position = random.randrange(len(body))
            body = body[:position] + random.randbytes(random.randrange(1, 5)) + body[position:]
        case 1:
            body = body[: random.randrange(len(body))]
        case 2:
            body = random.choice((b"", b"null", b"[]", b'"a"', b"{}", b"[" * 5000, b'{"a":' * 3000, b"\xff", b"1e999"))
        case 3:
            body = body.replace(b":", b":" + body[:200] + b",", 1)
    return body


def _object(random: Random) -> dict[str, object]:
    sensible = {
        "apiVersion": random.choice(VERSIONS),
        "kind": random.choice(KINDS),
        "metadata": {
            "name": random.choice(("a", "b", "A", "", "a" * 300)),
            "namespace": random.choice(("default", "x")),
        },
    }
    spoiled = {random.choice(FIELDS): _value(random, depth=4) for _ in range(random.randrange(5))}
    return sensible | spoiled


def _operations(random: Random) -> object:
    return [
        {
            "op": random.choice(("add", "remove", "replace", "move", "copy", "test", "x")),
            "path": "/" + "/".join(random.choices((*FIELDS, "0", "-", "~1", "~9", ""), k=random.randrange(4))),
            random.choice(("value", "from", "x")): _value(random, depth=3),
        }
        for _ in range(random.randrange(5))
    ]


def _value(random: Random, *, depth: int) -> object:
    match random.randrange(9 if depth else 6):
        case 0:
            return None
        case 1:
            return random.choice((True, False))
        case 2:
            return random.choice((0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 7))
        case 3:
            return random.choice((0.5, 1e300, -0.0))
        case 4 | 5:
            return random.choice(("", "a", "a/b", "default", "2020-01-01T00:00:00Z", "1", "x" * 2000, "\u0000", "é"))
        case 6:
            return [_value(random, depth=depth - 1) for _ in range(random.randrange(4))]
    return {random.choice(FIELDS): _value(random, depth=depth - 1) for _ in range(random.randrange(4))}


RECORDED = base64.b64decode(
    "azhzAAoMCgJ2MRIGU2VjcmV0EpkDCv0CCgFzEgAaB2RlZmF1bHQiACokM2FiMmVjMjgtNDU2Yi00ZTAyLTgxZTAtNWM0NDNmMDVhNjJjMgQ2OTkz"
)


def _protobuf(random: Random) -> bytes:
    body = bytearray(RECORDED)
    for _ in range(random.randrange(6)):
        body[random.randrange(len(body))] = random.randrange(256)
    return bytes(body[: random.randrange(len(body) + 1)])
