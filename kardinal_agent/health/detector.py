"""Look for the objects of GitOps tools that deploy an environment, if its Pipeline names none.

Only objects in the namespace of the Pipeline count, and objects in namespaces whose owners admit its Pipelines: every
user may write the URL of any repository into an object of their own. The objects are watched only until they are read;
promotions that look at the same time share a watch. Kinds that the cluster does not serve are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, KubeError, NotFound, Unauthorized
from kardinal.objects import JsonObject, ResourceType
from kardinal.promotion.api import PromotionStep
from kardinal.runtime import DynamicInformers, Event, Handle
from kardinal_agent.health.detection import DEPLOYERS, GIT_REPOSITORY, Detected, deployers
from kardinal_agent.health.namespaces import HealthNamespaces
from kardinal_agent.health.verdict import WatchedObjects
from kardinal_agent.health.watching import READ_SECONDS, ObjectUnreadable

__all__ = ["Detection", "Detector"]

_KINDS = (*(kind for kinds in DEPLOYERS.values() for kind in kinds), GIT_REPOSITORY)

_MOST_NAMESPACES = 16
"""The most namespaces that are watched one by one; beyond that, a kind is watched in the whole cluster."""

_SERVED_SECONDS = 30.0
"""Seconds for which the served kinds of an API group are remembered."""


@dataclass(frozen=True, slots=True)
class Detection:
    """The objects that deploy an environment, and the kinds that the agent has no right to read."""

    found: Sequence[Detected]
    forbidden: Sequence[str] = ()


class Detector:
    """Looks in the cluster of one agent."""

    def __init__(
        self,
        informers: DynamicInformers,
        *,
        client: Client,
        namespaces: HealthNamespaces,
        clock: Clock,
    ) -> None:
        self._informers = informers
        self._client = client
        self._namespaces = namespaces
        self._clock = clock
        self._served: dict[str, tuple[float, frozenset[str]]] = {}
        self._asking = asyncio.Lock()

    async def look(self, step: PromotionStep) -> Detection:
        """Return the objects that deploy an environment now. Raises `ObjectUnreadable` if they are unknown so far."""
        namespaces = self._namespaces.open_to(step.metadata.namespace)
        places = namespaces if len(namespaces) <= _MOST_NAMESPACES else (None,)
        handles: dict[tuple[ResourceType, str | None], Handle] = {}
        try:
            for kind in _KINDS if namespaces else ():
                if await self._is_served(kind):
                    handles |= {(kind, place): self._opened(kind, place) for place in places}
            async with asyncio.timeout(READ_SECONDS):
                for handle in handles.values():
                    await handle.wait_read()
            objects, forbidden = _read(handles)
        except TimeoutError:
            raise ObjectUnreadable("waits for the first answer about the objects of GitOps tools") from None
        finally:
            for handle in handles.values():
                handle.close()
        kept = {kind: [each for each in found if _namespace(each) in namespaces] for kind, found in objects.items()}
        return Detection(deployers(step, WatchedObjects(kept)), forbidden)

    def _opened(self, kind: ResourceType, namespace: str | None) -> Handle:
        return self._informers.open(kind, namespaces=(namespace,), projection=_narrowed, changed=_nothing)

    async def _is_served(self, kind: ResourceType) -> bool:
        """Return whether the cluster serves a kind. Raises `ObjectUnreadable` if the API server does not answer."""
        async with self._asking:
            read, plurals = self._served.get(kind.api_version, (None, frozenset[str]()))
            if read is None or self._clock.monotonic() - read >= _SERVED_SECONDS:
                plurals = await self._plurals(kind)
                self._served[kind.api_version] = (self._clock.monotonic(), plurals)
        return kind.plural in plurals

    async def _plurals(self, kind: ResourceType) -> frozenset[str]:
        try:
            answer = await self._client.fetch(f"/apis/{kind.group}/{kind.version}")
        except NotFound:
            return frozenset()
        except KubeError as error:
            raise ObjectUnreadable(
                f"the cluster does not say whether it has {kind.plural}: {type(error).__name__}"
            ) from None
        return frozenset(each["name"] for each in answer["resources"])


def _read(
    handles: Mapping[tuple[ResourceType, str | None], Handle],
) -> tuple[Mapping[ResourceType, Sequence[JsonObject]], Sequence[str]]:
    """Return the objects of each kind, and the names of kinds that may not be read. Raises `ObjectUnreadable`."""
    objects: dict[ResourceType, list[JsonObject]] = {}
    forbidden = []
    for (kind, namespace), handle in handles.items():
        what = f"{kind.plural}.{kind.group} of {f'namespace {namespace}' if namespace else 'all namespaces'}"
        if (outage := handle.outage) is None:
            objects.setdefault(kind, []).extend(handle.list())
        elif isinstance(outage.error, Forbidden | Unauthorized):
            forbidden.append(what)
        elif not isinstance(outage.error, NotFound):
            raise ObjectUnreadable(f"{what} cannot be read since {outage.since:%Y-%m-%d %H:%M:%S}Z")
    return objects, forbidden


def _narrowed(found: JsonObject) -> JsonObject:
    """Return the fields of an object that say where it is read from, without its status."""
    kept = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
    metadata = {name: value for name, value in found["metadata"].items() if name in kept}
    return {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata, "spec": found.get("spec")}


def _namespace(found: JsonObject) -> str:
    namespace: str = found["metadata"]["namespace"]
    return namespace


def _nothing(_: Event | None) -> None:
    """Ignore a change."""
