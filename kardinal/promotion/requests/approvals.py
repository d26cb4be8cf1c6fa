"""Approve a Bundle at a gate: by a request to the controller, or by an Approval that the person creates.

The controller checks the right and signs, so that its Approval counts in every cluster. One that a person creates
counts where the controller runs with `--approvals-by-admission`.
"""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from kardinal.kube import ApiError, Connection, KubeError
from kardinal.kube.connection import ClusterAccess
from kardinal.kube.transport import Transport
from kardinal.objects import CONFIG_MAP, JsonObject, ResourceType
from kardinal.objects.conditions import format_time
from kardinal.objects.naming import NAME_LIMIT
from kardinal.promotion.api.names import SYSTEM_NAMESPACE
from kardinal.promotion.kinds import APPROVAL, BUNDLE, POLICY_GATE
from kardinal.promotion.requests.intents import stored_bundle
from kardinal.promotion.requests.requester import RequestDenied, Requester
from kardinal.promotion.translation.topology import GateNode, read_topology

__all__ = ["URL", "GivenApproval", "approve", "find_approved_gate", "local_url", "may_approve"]

URL = "KARDINAL_URL"
"""The environment variable with the URL of the controller that a person approves at."""
PATH = "/api/v1/approvals"
LOCAL_INFO = "kardinal-info"
"""ConfigMap in which `kardinal local up` writes the URLs of its servers."""

_SELF_REVIEW = ResourceType("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
_ACCESS_REVIEW = ResourceType(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenApproval:
    """An Approval that was created, by the controller or by the person."""

    name: str
    gate: str
    """The gate as `namespace/name`."""
    via: Literal["controller", "admission"]


async def find_approved_gate(requester: Requester, bundle: str, environment: str, gate: str | None) -> str:
    """Return the gate before an environment of a Bundle as `namespace/name`.

    `gate` is `[namespace/]name`; without it, the only gate there that reads approvals. Raises `RequestDenied`, with the
    gates in the remedy.
    """
    await stored_bundle(requester, bundle)
    graph = await requester.reader.graph(requester.namespace, bundle)
    if graph is None:
        raise RequestDenied(
            f"Bundle {bundle} has no gates", remedy="One that was created a moment ago has a Graph soon."
        )
    here = [each for each in read_topology(graph).gates if each.environment == environment]
    if not here:
        raise RequestDenied(f"no gate holds Bundle {bundle} before {environment}")
    reading = _reading(graph)
    fitting = [each for each in here if (each.id in reading if gate is None else gate in (each.name, _full(each)))]
    if len(fitting) == 1:
        return _full(fitting[0])
    names = ", ".join(_full(each) for each in fitting or here)
    if gate is not None:
        raise RequestDenied(
            f"{len(fitting) or 'no'} gates before {environment} fit {gate}", remedy=f"There are: {names}"
        )
    what = "several gates read approvals" if fitting else "no gate reads approvals"
    raise RequestDenied(f"{what} of Bundle {bundle} before {environment}", remedy=f"Name one with --gate: {names}")


async def may_approve(requester: Requester, gate: str) -> bool:
    """Return whether the person may approve at the gate `namespace/name`. Raises `KubeError`."""
    namespace, _, name = gate.partition("/")
    attributes = {
        "group": POLICY_GATE.group,
        "version": POLICY_GATE.version,
        "resource": POLICY_GATE.plural,
        "verb": "approve",
        "namespace": namespace,
        "name": name,
    }
    body = {"apiVersion": _ACCESS_REVIEW.api_version, "kind": _ACCESS_REVIEW.kind, "metadata": {}}
    review = await requester.client.create(_ACCESS_REVIEW, {**body, "spec": {"resourceAttributes": attributes}})
    return (review.get("status") or {}).get("allowed") is True


async def approve(
    requester: Requester,
    bundle: str,
    environment: str,
    gate: str,
    *,
    url: str | None,
    reason: str | None = None,
    expires_at: datetime | None = None,
) -> GivenApproval:
    """Approve a Bundle at the gate `namespace/name`: at `url`, if the person has a bearer token, else as the person.

    Raises `RequestDenied`, also for a URL over which a token is not sent in the clear, and `KubeError`.
    """
    further = {"reason": reason, "expiresAt": format_time(expires_at) if expires_at else None}
    wanted = {"bundle": bundle, "environment": environment, "gate": gate, **{k: v for k, v in further.items() if v}}
    authorization = (await requester.client.connection.access()).authorization or ""
    if url is None or not authorization.startswith("Bearer "):
        name = await _create(requester, wanted)
        return GivenApproval(name=name, gate=gate, via="admission")
    name = await _post(url, authorization, {"namespace": requester.namespace, **wanted})
    return GivenApproval(name=name, gate=gate, via="controller")


async def local_url(requester: Requester) -> str | None:
    """Return the URL of the controller that `kardinal local up` runs on this machine; None for another API server."""
    try:
        stored = await requester.client.get(CONFIG_MAP, LOCAL_INFO, SYSTEM_NAMESPACE)
    except KubeError:
        return None
    url = (stored.get("data") or {}).get("api")
    # A token is sent there, so no object of a cluster may name a server elsewhere.
    return url if isinstance(url, str) and _is_loopback(url) else None


async def _post(url: str, authorization: str, body: JsonObject) -> str:
    if urlsplit(url).scheme != "https" and not _is_loopback(url):
        raise RequestDenied(
            f"a token is not sent to {url} in the clear",
            remedy="Set KARDINAL_URL to an address that begins with https://",
        )
    access = ClusterAccess(server=url, authorization=authorization)
    try:
        async with Transport(Connection(access), user_agent="kardinal-cli") as transport:
            answer = await transport.request("POST", PATH, body=body)
    except ApiError as error:
        raise RequestDenied(error.message) from None
    except KubeError as error:
        raise RequestDenied(f"{url} has not answered: {error.message}", remedy="Check KARDINAL_URL.") from None
    return str(answer.value.get("name", ""))


async def _create(requester: Requester, wanted: JsonObject) -> str:
    client = requester.client
    bundle = await stored_bundle(requester, wanted["bundle"])
    asked = {"apiVersion": _SELF_REVIEW.api_version, "kind": _SELF_REVIEW.kind, "metadata": {}}
    review = await client.create(_SELF_REVIEW, asked)
    uid = bundle["metadata"]["uid"]
    approver = ((review.get("status") or {}).get("userInfo") or {}).get("username", "")
    suffix = secrets.token_hex(5)
    stem = f"{wanted['bundle']}-{wanted['gate'].rpartition('/')[2]}"[: NAME_LIMIT - len(suffix) - 1].rstrip("-.")
    owner = {"apiVersion": BUNDLE.api_version, "kind": BUNDLE.kind, "name": wanted["bundle"], "uid": uid}
    created = await client.create(
        APPROVAL,
        {
            "apiVersion": APPROVAL.api_version,
            "kind": APPROVAL.kind,
            "metadata": {
                "name": f"{stem}-{suffix}",
                "namespace": requester.namespace,
                "ownerReferences": [owner],
            },
            "spec": {**wanted, "uid": uid, "approver": approver},
        },
        field_manager=requester.field_manager,
    )
    return str(created["metadata"]["name"])


def _reading(graph: JsonObject) -> set[str]:
    """Return the ids of the gate nodes whose expressions read approvals."""
    nodes = graph.get("spec", {}).get("nodes", ())
    specs = {node["id"]: (node.get("template") or {}).get("spec") or {} for node in nodes}
    return {node for node, spec in specs.items() if "approvals" in str(spec.get("expression", ""))}


def _full(gate: GateNode) -> str:
    return f"{gate.namespace}/{gate.name}"


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
