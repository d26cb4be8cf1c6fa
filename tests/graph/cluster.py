"""A world of objects in memory, and an engine that walks it: what the pure core does, without a server.

`Cluster` answers what a walk asks and carries out what it wants, the way an API server would: an apply sets its fields,
removes those it set before and leaves everything else alone; a deletion waits for finalizers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal.graph.compile import CompiledGraph, compile_graph
from kardinal.graph.evaluator import Overruns
from kardinal.graph.identity import GraphIdentity, ObjectKey, is_owned_by, object_key
from kardinal.graph.prune import teardown_wave
from kardinal.graph.selection import Selection
from kardinal.graph.walk import walk
from kardinal.graph.walk_types import Apply, NodeResult, Outside, RefusedApply, Remembered, Walk, WalkInput
from kardinal.objects import CONFIG_MAP, DEPLOYMENT, GRAPH, SECRET, JsonObject, ResourceType
from kardinal.objects.applied import applied_part, content_hash, covers
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.support.names import TEAM

NAMESPACE = TEAM
START = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
KINDS = {
    (resource.api_version, resource.kind): resource
    for resource in (BUNDLE, CONFIG_MAP, DEPLOYMENT, GRAPH, POLICY_GATE, PROMOTION_STEP, SECRET)
}


class Cluster:
    """Objects, who applied what, and a count of the writes."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, JsonObject] = {}
        self.writes: list[str] = []
        self._applied: dict[tuple[ObjectKey, str], JsonObject] = {}
        self._revision = 0

    # What happens to objects from outside.

    def create(self, resource: ResourceType, name: str, *, namespace: str = NAMESPACE, **fields: Any) -> JsonObject:
        labels = fields.pop("labels", {})
        finalizers = fields.pop("finalizers", [])
        obj = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "namespace": namespace, "labels": labels, "finalizers": finalizers},
            **fields,
        }
        return self._store(ObjectKey(resource, namespace, name), obj)

    def edit(self, resource: ResourceType, name: str, **fields: Any) -> None:
        """Set top-level fields, merged one level deep; None removes one."""
        key = ObjectKey(resource, NAMESPACE, name)
        obj = copy.deepcopy(self.objects[key])
        for field, value in fields.items():
            obj[field] = {**obj.get(field, {}), **value}
            obj[field] = {name: inner for name, inner in obj[field].items() if inner is not None}
        self._store(key, obj)

    def delete(self, key: ObjectKey) -> None:
        obj = self.objects[key]
        if obj["metadata"].get("finalizers"):
            obj = copy.deepcopy(obj)
            obj["metadata"]["deletionTimestamp"] = "2026-03-03T10:00:00Z"
            self._store(key, obj)
        else:
            del self.objects[key]
            self._forget(key)

    def release_finalizers(self, key: ObjectKey) -> None:
        del self.objects[key]
        self._forget(key)

    def find(self, resource: ResourceType, name: str) -> JsonObject | None:
        return self.objects.get(ObjectKey(resource, NAMESPACE, name))

    def names(self, resource: ResourceType) -> set[str]:
        return {key.name for key in self.objects if key.resource == resource}

    # What a walk wants done.

    def carry_out(self, apply: Apply) -> JsonObject:
        key = apply.desired.key
        live = copy.deepcopy(self.objects.get(key, {}))
        _remove(live, self._applied.get((key, apply.desired.marks[0]), {}))
        _merge(live, copy.deepcopy(apply.object))
        self._applied[key, apply.desired.marks[0]] = apply.object
        self.writes.append(f"apply {key.name}")
        return self._store(key, live)

    def release(self, key: ObjectKey, identity: GraphIdentity) -> None:
        """Remove the fields that a Graph has applied to an object, which stays."""
        live = copy.deepcopy(self.objects[key])
        _remove(live, self._applied.pop((key, identity.patch_marks.hash), {}))
        self.writes.append(f"release {key.name}")
        self._store(key, live)

    def _forget(self, key: ObjectKey) -> None:
        self._applied = {each: applied for each, applied in self._applied.items() if each[0] != key}

    def _store(self, key: ObjectKey, obj: JsonObject) -> JsonObject:
        self._revision += 1
        obj["metadata"].setdefault("uid", f"uid-{self._revision}")
        obj["metadata"]["resourceVersion"] = str(self._revision)
        self.objects[key] = obj
        return obj


def _merge(live: JsonObject, applied: JsonObject) -> None:
    for field, value in applied.items():
        if isinstance(value, dict) and isinstance(live.get(field), dict):
            _merge(live[field], value)
        else:
            live[field] = value


def _remove(live: JsonObject, applied: JsonObject) -> None:
    for field, value in applied.items():
        if isinstance(value, dict) and isinstance(live.get(field), dict):
            _remove(live[field], value)
        elif field not in ("name", "namespace", "uid", "apiVersion", "kind"):
            live.pop(field, None)


class Observed:
    """The cluster as one Graph sees it."""

    def __init__(self, cluster: Cluster, identity: GraphIdentity) -> None:
        self._cluster = cluster
        self._identity = identity

    def get(self, key: ObjectKey) -> JsonObject | None:
        return self._cluster.objects.get(key)

    def select(self, selection: Selection) -> list[JsonObject]:
        found = sorted((key.namespace, key.name, obj) for key, obj in self._of(selection.resource))
        return [obj for _, _, obj in found if selection.matches(obj)]

    def _of(self, resource: ResourceType) -> Iterable[tuple[ObjectKey, JsonObject]]:
        return ((key, obj) for key, obj in self._cluster.objects.items() if key.resource == resource)

    def owned(self) -> list[tuple[ObjectKey, JsonObject]]:
        return [(key, obj) for key, obj in self._cluster.objects.items() if is_owned_by(obj, self._identity.uid)]

    def patched(self) -> list[tuple[ObjectKey, JsonObject]]:
        label = self._identity.patch_marks.node
        return [
            (key, obj)
            for key, obj in self._cluster.objects.items()
            if label in (obj["metadata"].get("labels") or {}) and not is_owned_by(obj, self._identity.uid)
        ]


class Engine:
    """The loop of a reconcile around the pure walk: apply until nothing is wanted, then delete one wave."""

    def __init__(
        self,
        cluster: Cluster,
        *nodes: JsonObject,
        name: str = "g",
        owners: frozenset[tuple[str, str, str]] = frozenset(),
    ) -> None:
        self.cluster = cluster
        self.now = START
        self.nodes = list(nodes)
        self.failures: dict[ObjectKey, RefusedApply] = {}
        self.refuse: dict[str, RefusedApply] = {}
        self.refused_objects: set[str] = set()
        self.not_ready_since: dict[str, datetime] = {}
        self.references: frozenset[str] = frozenset()
        self.reserved: frozenset[str] = frozenset()
        self.free: frozenset[ResourceType] = frozenset()
        self.deleting = False
        self.outside: Outside | None = None
        self.identity = GraphIdentity(NAMESPACE, name, f"uid-of-{name}", owners)
        self._settled: dict[ObjectKey, str] = {}
        self._overruns = Overruns()
        self._remembered: dict[str, Remembered] = {}
        self._compiled: tuple[list[JsonObject], CompiledGraph] | None = None

    def first(self) -> Walk:
        """Return the result of one pass, of which nothing is carried out."""
        if self._compiled is None or self._compiled[0] != self.nodes:
            self._compiled = copy.deepcopy(self.nodes), compile_graph({"nodes": self.nodes})
        return self.pass_over(self._compiled[1])

    def pass_over(self, graph: CompiledGraph) -> Walk:
        """Return the result of one pass over a graph that was compiled before."""
        situation = WalkInput(
            self.identity,
            Observed(self.cluster, self.identity),
            KINDS,
            self.now,
            self.failures,
            self._settled,
            self.references,
            self.not_ready_since,
            self._overruns,
            self.reserved,
            self.free,
            deleting=self.deleting,
            outside=self.outside,
            remembered={} if self.deleting else self._remembered,
        )
        return walk(graph, situation)

    def walk(self) -> Walk:
        """One reconcile."""
        while True:
            result = self.first()
            if not result.applies:
                break
            for apply in result.applies:
                self._apply(apply)
        for prune in result.prunes:
            if prune.held:
                continue
            if prune.release:
                self.cluster.release(prune.key, self.identity)
            elif not prune.under_way:
                self.cluster.writes.append(f"delete {prune.key.name}")
                self.cluster.delete(prune.key)
        self.references |= {outcome.node.id for outcome in result.outcomes if outcome.kind == "ref"}
        late = [outcome.node.id for outcome in result.outcomes if outcome.state == "NotReady"]
        self.not_ready_since = {node: self.not_ready_since.get(node, self.now) for node in late}
        return result

    def _apply(self, apply: Apply) -> None:
        invalid = RefusedApply("", "Error", "Invalid", "refused")
        failure = invalid if apply.desired.key.name in self.refused_objects else self.refuse.get(apply.node.id)
        if failure is not None:
            retry_at = failure.retry_at and self.now + (failure.retry_at - START)
            self.failures[apply.desired.key] = RefusedApply(
                apply.desired.hash, failure.state, failure.reason, failure.message, retry_at
            )
            self.cluster.writes.append(f"refused {apply.desired.key.name}")
            return
        live = self.cluster.carry_out(apply)
        if not covers(live, apply.desired.object):
            self._settled[apply.desired.key] = content_hash(applied_part(live, apply.desired.object))

    def rest(self) -> dict[str, NodeResult]:
        """Reconcile until nothing is written any more, then once more for the outcomes."""
        for _ in range(100):
            before = len(self.cluster.writes)
            result = self.walk()
            if len(self.cluster.writes) == before:
                return {outcome.node.id: outcome for outcome in result.outcomes}
        raise AssertionError(f"no rest: {self.cluster.writes[-10:]}")

    def restarted(self) -> Engine:
        """Return an engine that knows what the status of the Graph says, and nothing else of this one."""
        fresh = copy.copy(self)
        fresh.failures = {}
        fresh._settled = {}
        fresh._overruns = Overruns()
        fresh._remembered = {}
        return fresh

    def states(self) -> dict[str, str]:
        return {node: outcome.state for node, outcome in self.rest().items()}

    def writes(self) -> list[str]:
        """Return what was written since the last time this was asked."""
        written = self.cluster.writes
        self.cluster.writes = []
        return written

    def pass_time(self, **span: float) -> None:
        self.now += timedelta(**span)

    def tear_down(self) -> list[list[str]]:
        """Delete wave after wave; the names in each."""
        waves = []
        observed = Observed(self.cluster, self.identity)
        while wave := teardown_wave(self.identity, observed, now=self.now):
            waves.append(sorted(prune.key.name for prune in wave))
            for prune in wave:
                if prune.release:
                    self.cluster.release(prune.key, self.identity)
                else:
                    self.cluster.delete(prune.key)
        return waves


def config(identifier: str, data: JsonObject | None = None, *, name: str | None = None, **modifiers: Any) -> JsonObject:
    """Return a node that makes a ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name or identifier}, "data": data or {}}
    return {"id": identifier, "template": body, **modifiers}


def key_of(resource: ResourceType, name: str) -> ObjectKey:
    return object_key(resource, {"metadata": {"name": name, "namespace": NAMESPACE}})


def data(cluster: Cluster, name: str) -> Any:
    """Return the data of a ConfigMap."""
    obj = cluster.find(CONFIG_MAP, name)
    assert obj is not None
    return obj["data"]


def status(cluster: Cluster, name: str, **fields: Any) -> None:
    """Write the data of a ConfigMap, which stands for a status here."""
    cluster.edit(CONFIG_MAP, name, status=fields)
