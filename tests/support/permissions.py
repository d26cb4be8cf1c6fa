"""The rights of the programs in a cluster, read from deploy/ and compared with the requests of a world.

An API server refuses what is not theirs, but a program may try again and a test not notice. So that none is shipped
without a permission it needs, each world that runs one compares its requests with the rules of its ServiceAccount when
the world ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from kardinal_local.plane import LoggedRequest
from tests.support.world import World

__all__ = ["ROLES", "Permission", "granted_to", "hold_to_permissions", "needed_by"]

DEPLOY = Path(__file__).parents[2] / "deploy"

ROLES = {
    "controller": ("kardinal-controller",),
    # In a world the control plane is also the cluster of the agent.
    "agent": ("kardinal-agent", "kardinal-agent-control-plane"),
}


class Permission(NamedTuple):
    """A verb on `plural.group` or `plural.group/subresource`."""

    resource: str
    verb: str


def needed_by(request: LoggedRequest) -> Iterator[Permission]:
    """Return what a cluster would ask for before it lets this request pass."""
    resource = "/".join(filter(None, (request.resource, request.subresource)))
    yield Permission(resource, request.verb)
    if request.verb == "patch" and request.code == 201:
        # Server-side apply of what is not there yet asks for both.
        yield Permission(resource, "create")


@cache
def granted_to(identity: str) -> frozenset[Permission]:
    """Return what the ClusterRoles of deploy/ allow an identity."""
    documents = [doc for path in sorted(DEPLOY.rglob("*.yaml")) for doc in yaml.safe_load_all(path.read_bytes())]
    roles = {doc["metadata"]["name"]: doc for doc in documents if doc["kind"] == "ClusterRole"}
    return frozenset(permission for role in ROLES[identity] for permission in _permissions(roles[role]["rules"]))


def _permissions(rules: list[dict[str, list[str]]]) -> Iterator[Permission]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                plural, slash, subresource = resource.partition("/")
                for verb in rule["verbs"]:
                    yield Permission(f"{plural}.{group}".removesuffix(".") + slash + subresource, verb)


def hold_to_permissions(world: World, identity: str) -> None:
    """Fail the test at its end when `identity` did what deploy/ does not allow."""
    granted = granted_to(identity)
    user = world.user(identity)
    denied: set[Permission] = set()

    def check(request: LoggedRequest) -> None:
        if request.user == user:
            denied.update(set(needed_by(request)) - granted)

    def report() -> None:
        if denied:
            pytest.fail(f"deploy/ does not allow the {identity}: {sorted(denied)}", pytrace=False)

    world.cleanup.callback(report)
    world.cleanup.callback(world.audit.subscribe(check).close)
