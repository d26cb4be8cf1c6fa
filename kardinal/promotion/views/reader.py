"""The protocol by which views read objects.

It has two implementations: `ApiReader` sends requests to an API server, for a command that runs once with the
permissions of its user; `kardinal_controller.reader.InformerReader` reads the informers of the controller. Both give
the same views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kardinal.objects import JsonObject
from kardinal.promotion.views.missing import unknown_pipeline

__all__ = ["EventReader", "Reader", "stored_pipeline"]


class EventReader(Protocol):
    """Reads Events, which are in no informer."""

    async def events(self, namespace: str) -> Sequence[JsonObject]:
        """Return the Events about PromotionSteps of a namespace. Raises `Forbidden` without the permission."""
        ...


class Reader(EventReader, Protocol):
    """Reads objects as the API server stores them; lists are sorted by namespace and name.

    The objects may be shared with an informer, so callers must not change them. Each method may raise a `KubeError`,
    for example `Forbidden` if the user may not list Pipelines.
    """

    async def pipeline(self, namespace: str, name: str) -> JsonObject | None:
        """Return a Pipeline, or None if it does not exist; `bundle` and `graph` do likewise."""
        ...

    async def pipelines(self, namespace: str | None = None) -> Sequence[JsonObject]:
        """Return the Pipelines of a namespace; defaults to all namespaces."""
        ...

    async def bundle(self, namespace: str, name: str) -> JsonObject | None: ...

    async def bundles(self, namespace: str, pipeline: str | None = None) -> Sequence[JsonObject]:
        """Return the Bundles with the label of a Pipeline; defaults to all Bundles of the namespace."""
        ...

    async def graph(self, namespace: str, name: str) -> JsonObject | None:
        """Return a Graph; the Graph of a Bundle has the same name as the Bundle."""
        ...

    async def steps(self, namespace: str, bundle: str) -> Sequence[JsonObject]:
        """Return the PromotionSteps of a Bundle."""
        ...

    async def instances(self, namespace: str, bundle: str) -> Sequence[JsonObject]:
        """Return the gate instances of a Bundle: the PolicyGates that its Graph has created from gate templates."""
        ...

    async def gates(self, namespace: str | None = None) -> Sequence[JsonObject]:
        """Return the PolicyGates that are not gate instances: templates, freezes and holds.

        `namespace` defaults to all namespaces.
        """
        ...


async def stored_pipeline(reader: Reader, namespace: str, name: str) -> JsonObject:
    """Return a Pipeline as it is stored. Raises `Missing`, with the names of the existing Pipelines in the remedy."""
    found = await reader.pipeline(namespace, name)
    if found is None:
        known = [item["metadata"]["name"] for item in await reader.pipelines(namespace)]
        raise unknown_pipeline(name, namespace, known)
    return found
