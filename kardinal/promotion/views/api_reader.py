"""Read the objects of views from an API server, with the permissions of the API client."""

from __future__ import annotations

from kardinal.kube import Client, NotFound
from kardinal.objects import EVENT, GRAPH, JsonObject, ResourceType
from kardinal.promotion.api.names import LABEL_BUNDLE, LABEL_PIPELINE, label_value
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP

__all__ = ["EVENTS_OF_STEPS", "ApiReader"]

EVENTS_OF_STEPS = "regarding.kind=PromotionStep"
"""The field selector of Events about PromotionSteps."""


class ApiReader:
    """A `Reader` that sends one request per call, or several for a list that the API server returns in chunks."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def pipeline(self, namespace: str, name: str) -> JsonObject | None:
        return await self._found(PIPELINE, namespace, name)

    async def pipelines(self, namespace: str | None = None) -> list[JsonObject]:
        return (await self._client.list(PIPELINE, namespace)).items

    async def bundle(self, namespace: str, name: str) -> JsonObject | None:
        return await self._found(BUNDLE, namespace, name)

    async def bundles(self, namespace: str, pipeline: str | None = None) -> list[JsonObject]:
        labels = None if pipeline is None else f"{LABEL_PIPELINE}={label_value(pipeline)}"
        return (await self._client.list(BUNDLE, namespace, labels=labels)).items

    async def graph(self, namespace: str, name: str) -> JsonObject | None:
        return await self._found(GRAPH, namespace, name)

    async def steps(self, namespace: str, bundle: str) -> list[JsonObject]:
        labels = f"{LABEL_BUNDLE}={label_value(bundle)}"
        return (await self._client.list(PROMOTION_STEP, namespace, labels=labels)).items

    async def instances(self, namespace: str, bundle: str) -> list[JsonObject]:
        labels = f"{LABEL_BUNDLE}={label_value(bundle)}"
        return (await self._client.list(POLICY_GATE, namespace, labels=labels)).items

    async def gates(self, namespace: str | None = None) -> list[JsonObject]:
        return (await self._client.list(POLICY_GATE, namespace, labels=f"!{LABEL_BUNDLE}")).items

    async def events(self, namespace: str) -> list[JsonObject]:
        return (await self._client.list(EVENT, namespace, fields=EVENTS_OF_STEPS)).items

    async def _found(self, resource: ResourceType, namespace: str, name: str) -> JsonObject | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None
