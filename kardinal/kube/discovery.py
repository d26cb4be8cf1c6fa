"""Discovery: the resources that an API server serves."""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.kube.client import Client
from kardinal.objects import JsonObject, ResourceType

__all__ = ["Served", "discover"]


@dataclass(frozen=True, slots=True)
class Served:
    """One kind in the preferred version of its group. `status`: whether it has the subresource `/status`."""

    resource: ResourceType
    verbs: frozenset[str]
    status: bool


async def discover(client: Client) -> list[Served]:
    """Return every served kind, group by group."""
    groups = (await client.fetch("/apis"))["groups"]
    found = _kinds("", "v1", await client.fetch("/api/v1"))
    for group in groups:
        version = group["preferredVersion"]["version"]
        found += _kinds(group["name"], version, await client.fetch(f"/apis/{group['name']}/{version}"))
    return found


def _kinds(group: str, version: str, listed: JsonObject) -> list[Served]:
    names = {item["name"] for item in listed["resources"]}
    return [
        Served(
            ResourceType(group, version, item["kind"], item["name"], namespaced=item["namespaced"]),
            verbs=frozenset(item["verbs"]),
            status=f"{item['name']}/status" in names,
        )
        for item in listed["resources"]
        if "/" not in item["name"]
    ]
