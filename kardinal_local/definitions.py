"""Install custom resources on an API server, and wait until it serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kardinal.kube import Client
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject

__all__ = ["INSTALLER", "install_definitions", "until_served"]

INSTALLER = "kardinal-local"
"""The field manager of all that `kardinal local up` installs."""
ESTABLISHED_DEADLINE = 30.0
"""The time in seconds within which the API server must serve the custom resources."""


async def install_definitions(client: Client, definitions: Sequence[JsonObject]) -> None:
    """Apply CustomResourceDefinitions; their kinds are served when it returns. Raises `TimeoutError` after 30 s."""
    for definition in definitions:
        await client.apply(CUSTOM_RESOURCE_DEFINITION, definition, field_manager=INSTALLER, force=True)
    await until_served(client, {definition["metadata"]["name"] for definition in definitions})


async def until_served(client: Client, names: set[str]) -> None:
    """Wait until the API server serves these CRDs, which takes a moment after their creation.

    `names` are those of the CRDs, such as `bundles.kardinal.io`; the set is emptied. Raises `TimeoutError` after 30 s.
    """
    async with (
        asyncio.timeout(ESTABLISHED_DEADLINE),
        client.watch(CUSTOM_RESOURCE_DEFINITION, initial_events=True) as events,
    ):
        async for event in events:
            # A real API server sends null for an empty list of conditions.
            conditions = event.object.get("status", {}).get("conditions") or []
            if any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions):
                names.discard(event.object["metadata"]["name"])
            if not names:
                return
