"""The objects that a walk reads.

Objects are read from the caches. An object that this reconcile has just applied replaces the cached one until the cache
has it, so that the next pass sees its own writes without waiting for a watch.

A walk cannot wait. Where it asks for objects that have not been read, or about which it is not known whether the
account of the Graph may read them, its node is Pending for this pass. `look_up` then finds out, and another pass
follows. Secrets are in no cache: they are read as the account in each reconcile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import partial

from kardinal.graph.identity import (
    GRAPH_LABEL,
    GraphIdentity,
    ObjectKey,
    graph_hash,
    is_owned_by,
    object_key,
)
from kardinal.graph.named import Named
from kardinal.graph.selection import Selection
from kardinal.graph.walk_types import Unobserved
from kardinal.kube import Client, Forbidden, KubeError, NotFound
from kardinal.objects import SECRET, JsonObject, Key, ResourceType, labels_of
from kardinal.runtime import Informer
from kardinal_controller.graphs.accounts import Permits
from kardinal_controller.graphs.kinds import OWNED, PATCHED, GraphKinds
from kardinal_controller.graphs.ledger import Ledger

__all__ = ["ObservedObjects", "candidates"]

_LABEL = "label {}"


def candidates(informer: Informer, selection: Selection) -> list[JsonObject]:
    """Return the objects that may match a selection; the caller compares each.

    The index of a label key is made when the key is first used.
    """
    if not selection.labels:
        return informer.list(selection.namespace)
    key, value = selection.labels[0]
    index = _LABEL.format(key)
    if not informer.indexed(index):
        informer.index(index, partial(_values_of_label, key))
    return informer.by_index(index, f"{selection.namespace or ''}/{value}")


def _values_of_label(key: str, obj: JsonObject) -> Iterable[str]:
    value = labels_of(obj).get(key)
    return () if value is None else (f"/{value}", f"{obj['metadata'].get('namespace', '')}/{value}")


class ObservedObjects:
    """Implements `Observed`, the objects that a walk reads, for one reconcile of one Graph.

    `own`: the kinds that are read with the controller's rights, because the owner of the Graph has them. `named`: of
    the Graph's spec and those of its revisions; an object that none of them can have made is not the Graph's. `client`
    acts as the account. `released`: objects, by key and uid, that have no field of the Graph whatever their labels say.
    """

    def __init__(
        self,
        kinds: GraphKinds,
        *,
        graph: Key,
        uid: str,
        named: Named,
        own: Collection[ResourceType],
        permits: Permits,
        client: Client | None,
        released: Container[tuple[ObjectKey, str]],
        ledger: Ledger,
    ) -> None:
        self._kinds = kinds
        self._graph = graph
        self._uid = uid
        self._named = named
        self._patch_label = GraphIdentity(*graph, uid=uid).patch_marks.node
        self._released = released
        self._ledger = ledger
        self._own = own
        self._permits = permits
        self._secrets = AccountSecrets(client)
        self.answers: dict[ObjectKey, JsonObject] = {}
        """The objects that the API server has returned for applies of this reconcile."""
        self._unopened: dict[ResourceType, None] = {}
        self._tried: set[ResourceType] = set()
        self.opened_as_owned: set[ResourceType] = set()
        """The kinds that were read because the Graph may have made or patched objects of them."""

    @property
    def has_secrets(self) -> bool:
        """Return whether Secrets were read, of whose changes no event tells."""
        return self._secrets.asked

    async def lent(self) -> bool:
        """Return whether the Graph has an account that the controller may impersonate."""
        return await self._permits.lent()

    def get(self, key: ObjectKey) -> JsonObject | None:
        if key.resource in self._own:
            return self._newer(key, self._kinds.declared[key.resource].get(key.namespace, key.name))
        if key.resource == SECRET:
            self._permits.require_account(SECRET)
            return self._newer(key, self._secrets.get(key))
        self._permits.require("get", key.resource, key.namespace, key.name)
        return self._newer(key, self._informer(key.resource).get(key.namespace, key.name))

    def select(self, selection: Selection) -> list[JsonObject]:
        resource = selection.resource
        if resource in self._own:
            listed = candidates(self._kinds.declared[resource], selection)
        elif resource == SECRET:
            self._permits.require_account(SECRET)
            listed = self._secrets.select(selection)
        else:
            self._permits.require("list", resource, selection.namespace or "")
            listed = candidates(self._informer(resource), selection)
        found = {object_key(resource, obj): obj for obj in listed}
        found |= {key: obj for key, obj in self.answers.items() if key.resource == resource}
        return [obj for _, obj in self._current(found) if selection.matches(obj)]

    def owned(self) -> list[tuple[ObjectKey, JsonObject]]:
        found = dict(self.answers)
        for resource, informer in self._kinds.informers((*self._own, *self.opened_as_owned)).items():
            found |= {object_key(resource, obj): obj for obj in informer.by_index(OWNED, self._uid)}
            recorded = {key: informer.get(key.namespace, key.name) for key in self._ledger.keys(resource)}
            found |= {key: obj for key, obj in recorded.items() if obj is not None}
        found |= self._secrets.marked
        return [(key, obj) for key, obj in self._current(found) if self._belongs(key, obj)]

    def patched(self) -> list[tuple[ObjectKey, JsonObject]]:
        found = dict(self.answers)
        for resource, informer in self._kinds.informers((*self._own, *self.opened_as_owned)).items():
            found |= {object_key(resource, obj): obj for obj in informer.by_index(PATCHED, self._patch_label)}
        found |= self._secrets.marked
        return [(key, obj) for key, obj in self._current(found) if self._is_patched(key, obj)]

    def _current(self, found: Mapping[ObjectKey, JsonObject]) -> Iterator[tuple[ObjectKey, JsonObject]]:
        for key, obj in sorted(found.items(), key=_place):
            current = self._newer(key, obj)
            if current is not None:
                yield key, current

    async def look_up(self) -> bool:
        """Find out what a pass could not know; return whether there was anything."""
        opened = list(self._unopened)
        self._unopened.clear()
        for resource in opened:
            await self._kinds.open(self._graph, resource)
            self._tried.add(resource)
        asked = await self._permits.look_up()
        read = await self._secrets.look_up()
        return bool(opened) or asked or read

    async def open_owned(self, resources: Iterable[ResourceType]) -> None:
        """Read the kinds of which the Graph may have made or patched objects, before the first pass.

        Without the account nothing is read, and nothing that was made as it can be deleted.
        """
        foreign = [resource for resource in resources if resource not in self._own]
        if not foreign or not await self._permits.lent():
            return
        for resource in foreign:
            self.opened_as_owned.add(resource)
            if resource == SECRET:
                await self._secrets.list_marked(self._graph, self._patch_label)
            else:
                await self._kinds.open(self._graph, resource)

    def _informer(self, resource: ResourceType) -> Informer:
        if not self._kinds.is_open(resource) and resource not in self._tried:
            self._unopened[resource] = None
            raise Unobserved("Pending", "Reading", f"waits for the first list of {resource.plural}")
        return self._kinds.require(resource)

    def _belongs(self, key: ObjectKey, obj: JsonObject) -> bool:
        inside = key.namespace == self._graph.namespace and is_owned_by(obj, self._uid)
        return (inside or self._ledger.owns(key, obj)) and key in self._named.templates

    def _is_patched(self, key: ObjectKey, obj: JsonObject) -> bool:
        # The label is no proof, and proves enough: to give up the fields of a manager that has none changes nothing.
        if self._patch_label not in labels_of(obj) or is_owned_by(obj, self._uid):
            return False
        return key in self._named.patches and (key, obj["metadata"]["uid"]) not in self._released

    def _newer(self, key: ObjectKey, cached: JsonObject | None) -> JsonObject | None:
        applied = self.answers.get(key)
        if applied is None or cached is None:
            return applied or cached
        return cached if _revision(cached) >= _revision(applied) else applied


class AccountSecrets:
    """The Secrets that one reconcile reads, with the rights of the account alone; without an account it reads none."""

    def __init__(self, client: Client | None) -> None:
        self._client = client
        self._wanted: dict[ObjectKey | Selection, None] = {}
        self._read: dict[ObjectKey | Selection, list[JsonObject] | Unobserved] = {}
        self.marked: dict[ObjectKey, JsonObject] = {}
        """Those that carry a mark of the Graph."""

    @property
    def asked(self) -> bool:
        return bool(self._read)

    def get(self, key: ObjectKey) -> JsonObject | None:
        return next(iter(self._found(key)), None)

    def select(self, selection: Selection) -> list[JsonObject]:
        return self._found(selection)

    async def look_up(self) -> bool:
        """Read what was asked for; return whether there was anything."""
        wanted = list(self._wanted)
        self._wanted.clear()
        answers = await asyncio.gather(*map(self._ask, wanted))
        self._read.update(zip(wanted, answers, strict=True))
        return bool(wanted)

    async def list_marked(self, graph: Key, patch_label: str) -> None:
        """Read the Secrets of the namespace that a Graph has made or patched; none if the account may not list them."""
        for labels in (f"{GRAPH_LABEL}={graph_hash(*graph)}", patch_label):
            try:
                listed = await self._acting().list(SECRET, graph.namespace, labels=labels)
            except (Forbidden, NotFound):
                return
            self.marked |= {object_key(SECRET, obj): obj for obj in listed.items}

    def _found(self, wanted: ObjectKey | Selection) -> list[JsonObject]:
        found = self._read.get(wanted)
        if found is None:
            self._wanted[wanted] = None
            raise Unobserved("Pending", "Reading", "waits for the API server")
        if isinstance(found, Unobserved):
            raise found
        return found

    def _acting(self) -> Client:
        if self._client is None:
            raise TypeError("a Secret is read without an account")
        return self._client

    async def _ask(self, wanted: ObjectKey | Selection) -> list[JsonObject] | Unobserved:
        try:
            if isinstance(wanted, ObjectKey):
                return [await self._acting().get(SECRET, wanted.name, wanted.namespace)]
            labels = ",".join(f"{key}={value}" for key, value in wanted.labels)
            return (await self._acting().list(SECRET, wanted.namespace, labels=labels or None)).items
        except NotFound:
            return []
        except Forbidden:
            verb = "get" if isinstance(wanted, ObjectKey) else "list"
            return Unobserved("Error", "AccessDenied", f"the ServiceAccount may not {verb} this Secret")
        except KubeError as error:
            return Unobserved("SystemError", "Unreachable", f"a Secret could not be read: {type(error).__name__}")


def _place(item: tuple[ObjectKey, JsonObject]) -> tuple[str, str, str]:
    key = item[0]
    return key.resource.kind, key.namespace, key.name


def _revision(obj: JsonObject) -> int:
    return int(obj["metadata"]["resourceVersion"])
