"""The rights of the programs in a cluster, read from deploy/ and compared with the requests of a world.

An API server refuses what is not theirs, but a program may try again and a test not notice. So that none is shipped
without a permission it needs, each world that runs one compares its requests with the rules of its ServiceAccount when
the world ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import NamedTuple

import pytest

from kardinal_local.plane import LoggedRequest
from tests.support.identities import SYSTEM_NAMESPACE, documents_of, shipped_rights
from tests.support.world import World

__all__ = ["ROLES", "Permission", "granted_to", "hold_to_permissions", "needed_by", "virtual"]

ROLES = {
    "controller": (
        "kardinal-controller",
        "kardinal-controller-secrets",
        "kardinal-controller-holidays",
        "kardinal-tools",
        "kardinal-graph-kinds",
    ),
    # In a world the control plane is also the cluster of the agent.
    "agent": ("kardinal-agent", "kardinal-agent-secrets", "kardinal-agent-control-plane", "kardinal-tools"),
    # It acts as accounts of tenants beside, which is in none of these.
    "supplychain": ("kardinal-supplychain", "kardinal-supplychain-kinds"),
}

_VIRTUAL_VERBS = frozenset({"execute", "serve", "report"})


class Permission(NamedTuple):
    """A verb on `plural.group` or `plural.group/subresource`, in every namespace or in that of the programs."""

    resource: str
    verb: str
    namespace: str = ""


def virtual(permission: Permission) -> bool:
    """Return whether only admission policies ask for this, and no request."""
    return permission.verb in _VIRTUAL_VERBS


def needed_by(request: LoggedRequest, granted: frozenset[Permission]) -> Iterator[Permission]:
    """Return what a cluster would ask for before it lets this request pass: of what is granted, the narrowest."""
    if request.resource.startswith(("/", "selfsubject")):
        return  # Everybody who is authenticated may ask what is served, and what is allowed.
    resource = "/".join(filter(None, (request.resource, request.subresource)))
    # Server-side apply of what is not there yet asks for both.
    verbs = [request.verb, "create"] if request.verb == "patch" and request.code == 201 else [request.verb]
    for verb in verbs:
        inside = Permission(resource, verb, SYSTEM_NAMESPACE)
        own = request.namespace == SYSTEM_NAMESPACE and inside in granted
        yield inside if own else Permission(resource, verb)


@cache
def granted_to(identity: str) -> frozenset[Permission]:
    """Return what the ClusterRoles of deploy/, and the Role of the identity's own namespace, allow it."""
    roles = [
        doc
        for doc in (*shipped_rights(), *documents_of("holidays/*.yaml"))
        if doc["kind"] in ("Role", "ClusterRole") and doc["metadata"]["name"] in ROLES[identity]
    ]
    return frozenset(
        permission
        for role in roles
        for permission in _permissions(role["rules"], namespace=role["metadata"].get("namespace", ""))
    )


def _permissions(rules: list[dict[str, list[str]]], *, namespace: str) -> Iterator[Permission]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                plural, slash, subresource = resource.partition("/")
                for verb in rule["verbs"]:
                    yield Permission(f"{plural}.{group}".removesuffix(".") + slash + subresource, verb, namespace)


def hold_to_permissions(world: World, identity: str, *, beyond: Collection[Permission] = ()) -> None:
    """Fail the test at its end when `identity` did what deploy/ does not allow, nor the test, which gives `beyond`."""
    granted = granted_to(identity) | set(beyond)
    user = world.user(identity)
    denied: set[Permission] = set()

    def check(request: LoggedRequest) -> None:
        if request.user == user:
            denied.update(set(needed_by(request, granted)) - granted)

    def report() -> None:
        if denied:
            pytest.fail(f"deploy/ does not allow the {identity}: {sorted(denied)}", pytrace=False)

    world.cleanup.callback(report)
    world.cleanup.callback(world.audit.subscribe(check).close)
