"""The controller of Bundles on objects in memory: its watches, reconciler and rules are real.

The test is the engine and the agent. A write is seen in the caches at once, and it wakes the Bundles that the watches
name. So what follows from what is decided as it is beside an API server, in a hundredth of the time.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import AlreadyExists, Client, ClusterAccess, Conflict, Connection, NotFound, ObjectList, PatchType
from kardinal.objects import GRAPH, JsonObject, Key, ResourceType, controller_of, labels_of
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.topology import read_topology
from kardinal.runtime import Informer, KeyMemory, Manager
from kardinal.runtime.queue import PriorityQueue
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles import BundleReconciler, GraphKeeper
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.accounts import AccountRights
from kardinal_controller.metrics import ControlPlaneMetrics
from tests.support.clock import VirtualClock
from tests.support.names import POLICIES, TEAM
from tests.support.objects import pipeline
from tests.support.promoted import owned_by
from tests.support.registry import REGISTRY

__all__ = ["BundleController", "StoredObjects", "alone", "bundles"]

KINDS = {resource.kind: resource for resource in (PIPELINE, BUNDLE, GRAPH, PROMOTION_STEP, POLICY_GATE)}
SOON = timedelta(seconds=2)
"""The time that each change is given; runs are put off for one second at most."""
MOST_RUNS = 1000


class StoredObjects(Client):
    """The objects, which the caches show as soon as they are written."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(Connection(ClusterAccess("http://127.0.0.1:9")), user_agent="test")
        self._clock = clock
        self._revisions = itertools.count(1)
        self.caches: dict[ResourceType, Informer] = {}

    def put(self, resource: ResourceType, obj: JsonObject) -> JsonObject:
        """Store an object, as an API server would number it."""
        revision = str(next(self._revisions))
        before = self.caches[resource].get(obj["metadata"].get("namespace"), obj["metadata"]["name"])
        new = {"uid": f"uid-{revision}", "creationTimestamp": format_time(self._clock.now()), "generation": 1}
        metadata = {**(before["metadata"] if before is not None else new), **obj["metadata"]}
        if before is not None and before["spec"] != obj["spec"]:
            metadata["generation"] += 1
        stored = {**obj, "metadata": {**metadata, "resourceVersion": revision}}
        self.caches[resource].apply("ADDED" if before is None else "MODIFIED", stored)
        return stored

    async def get(self, resource: ResourceType, name: str, namespace: str | None = None) -> JsonObject:
        found = self.caches[resource].get(namespace, name)
        if found is None:
            raise NotFound(404, message=f"there is no {resource.kind} {name}")
        return found

    async def list(self, resource: ResourceType, namespace: str | None = None, **selection: Any) -> ObjectList:
        without = (selection.get("labels") or "").removeprefix("!")
        found = [each for each in self.caches[resource].list(namespace) if without not in labels_of(each)]
        return ObjectList(found, "1", None)

    async def create(
        self, resource: ResourceType, obj: JsonObject, *, field_manager: str | None = None, dry_run: bool = False
    ) -> JsonObject:
        if self.caches[resource].get(obj["metadata"]["namespace"], obj["metadata"]["name"]) is not None:
            raise AlreadyExists(409, message=f"{resource.kind} {obj['metadata']['name']} exists")
        return obj if dry_run else self.put(resource, obj)

    async def patch(
        self,
        resource: ResourceType,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        kind: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> JsonObject:
        before = await self.get(resource, name, namespace)
        known = before["metadata"]
        wanted = body.get("metadata", {})
        if any(wanted.get(field, known[field]) != known[field] for field in ("uid", "resourceVersion")):
            raise Conflict(409, message=f"{resource.kind} {name} is another one")
        return self.put(resource, _merged(before, body))

    async def delete(
        self,
        resource: ResourceType,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object with all that it controls, which the engine does for a Graph."""
        gone = await self.get(resource, name, namespace)
        if uid not in (None, gone["metadata"]["uid"]):
            raise Conflict(409, message=f"{resource.kind} {name} is another one")
        self.caches[resource].apply("DELETED", gone)
        for kind, owner in ((GRAPH, BUNDLE), (PROMOTION_STEP, GRAPH)):
            for each in self.caches[kind].list():
                controller = controller_of(each, owner)
                if controller is not None and controller.uid == gone["metadata"]["uid"]:
                    await self.delete(kind, each["metadata"]["name"], each["metadata"]["namespace"])


class BundleController:
    """The controller of Bundles; each method returns when nothing more is due within two seconds."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._stored = StoredObjects(self.clock)
        manager = Manager(self._stored, clock=self.clock, name="in-memory")
        self.caches = caches = Caches(manager)
        self._stored.caches = {
            PIPELINE: caches.pipelines,
            BUNDLE: caches.bundles,
            GRAPH: caches.graphs,
            PROMOTION_STEP: caches.steps,
            POLICY_GATE: caches.gates,
        }
        keeper = GraphKeeper(
            caches,
            self._stored,
            clock=self.clock,
            features=Features(registry=REGISTRY, allow_local_repositories=True),
            policy_namespaces=(POLICIES,),
            attestations=Attestations(self._stored, namespace="kardinal-system"),
            expressions=ExpressionCompiler(),
            rights=AccountRights(self._stored, clock=self.clock),
        )
        self._memory = KeyMemory(caches.bundles)
        self._reconciler = BundleReconciler(
            caches,
            keeper,
            status=manager.status,
            recorder=manager.recorder,
            clock=self.clock,
            metrics=ControlPlaneMetrics(manager.metrics),
            memory=self._memory,
        )
        self._queue = PriorityQueue(clock=self.clock)
        for source in self._reconciler.sources():
            source.attach(self._queue)

    def close(self) -> None:
        self._queue.shut_down()

    # What a person does.

    async def apply(self, *objects: JsonObject) -> list[JsonObject]:
        """Create or change objects, all before the controller looks at one; a status of theirs stays as it is."""
        stored = []
        for obj in objects:
            resource = KINDS[obj["kind"]]
            before = self.stored(resource, obj["metadata"]["name"], obj["metadata"]["namespace"]) or {}
            status = {"status": before["status"]} if "status" in before else {}
            stored.append(self._stored.put(resource, {**copy.deepcopy(obj), **status}))
        await self.settle()
        return stored

    async def patch(self, name: str, body: JsonObject, *, resource: ResourceType = BUNDLE) -> None:
        """Change an object, by default a Bundle."""
        await self._stored.patch(resource, name, TEAM, body)
        await self.settle()

    async def delete(self, resource: ResourceType, name: str, namespace: str = TEAM) -> None:
        await self._stored.delete(resource, name, namespace)
        await self.settle()

    async def ask(self, name: str, *requests: JsonObject) -> list[JsonObject]:
        """Append requests to a Bundle; returns the answers to all that it has."""
        known = self.get(name)["spec"].get("intent", {}).get("requests", [])
        await self.patch(name, {"spec": {"intent": {"requests": [*known, *requests]}}})
        answers: list[JsonObject] = self.get(name)["status"]["requests"]
        return answers

    # What can be seen.

    def stored(self, resource: ResourceType, name: str, namespace: str = TEAM) -> JsonObject | None:
        return self._stored.caches[resource].get(namespace, name)

    def get(self, name: str) -> JsonObject:
        """Return a Bundle."""
        found = self.stored(BUNDLE, name)
        assert found is not None, f"there is no Bundle {name}"
        return found

    def entry(self, name: str, environment: str) -> JsonObject:
        """Return what a Bundle says of one environment."""
        found: JsonObject = self.get(name)["status"]["environments"][environment]
        return found

    def phases(self) -> dict[str, str]:
        """Return the phase of each Bundle."""
        return {each["metadata"]["name"]: each["status"]["phase"] for each in self.caches.bundles.list()}

    def phase(self, name: str) -> str:
        return self.phases()[name]

    # What the engine and the agent do.

    async def step(self, bundle: str, environment: str, **status: object) -> None:
        """Give a PromotionStep a status; a gate before it opens if it is not there yet."""
        self.report(bundle, environment, **status)
        await self.settle()

    def report(self, bundle: str, environment: str, **status: object) -> None:
        """Give a PromotionStep a status, and let no time pass."""
        graph = self._graph(bundle)
        step = self.stored(PROMOTION_STEP, f"{bundle}-{environment}") or self._create_step(graph, environment)
        attempt = step["spec"].get("attempt")
        before = step.get("status", {})
        if before.get("attempt") != attempt:
            before = {"attempt": attempt}
        self._stored.put(PROMOTION_STEP, {**step, "status": {**before, **status}})

    async def prepare(self, bundle: str, environment: str) -> None:
        """Let a step have a good edit that waits to be written."""
        await self.step(bundle, environment, state="Promoting", preparedAt=format_time(self.clock.now()))

    async def land(self, bundle: str, environment: str) -> None:
        """Let the change of a step land."""
        await self.step(bundle, environment, state="HealthChecking", promotedAt=format_time(self.clock.now()))

    async def verify(self, bundle: str, *environments: str) -> None:
        """Let steps be Verified, one after the other."""
        for environment in environments:
            now = format_time(self.clock.now())
            times = {"promotedAt": now, "verifiedAt": now, "healthySince": now}
            await self.step(bundle, environment, state="Verified", healthy=True, **times)

    async def fail(self, bundle: str, environment: str, message: str = "broken") -> None:
        """Let a step fail, whether its change has landed or not."""
        await self.step(bundle, environment, state="Failed", message=message)

    def has_step(self, bundle: str, environment: str) -> bool:
        return self.stored(PROMOTION_STEP, f"{bundle}-{environment}") is not None

    def _follow(self, graph: JsonObject) -> bool:
        """Do what the engine does for a Graph without gates that are closed; returns whether something was new."""
        topology = read_topology(graph)
        held = {gate.environment for gate in topology.gates}
        attempts = {each["id"]: each["template"]["spec"].get("attempt") for each in _steps(graph)}
        for environment, node in topology.steps.items():
            step = self.stored(PROMOTION_STEP, f"{graph['metadata']['name']}-{environment}")
            if step is None and environment not in held and self._may_start(graph, environment):
                self._create_step(graph, environment)
                return True
            attempt = attempts.get(node.id)
            if step is not None and attempt not in (None, step["spec"].get("attempt")):
                self._stored.put(PROMOTION_STEP, {**step, "spec": {**step["spec"], "attempt": attempt}})
                return True
        return False

    def _may_start(self, graph: JsonObject, environment: str) -> bool:
        """Return whether all upstream steps of the Graph are Verified."""
        topology = read_topology(graph)
        upstreams = topology.steps.keys() & topology.upstreams[environment]
        found = [self.stored(PROMOTION_STEP, f"{graph['metadata']['name']}-{upstream}") for upstream in upstreams]
        return all(step is not None and step.get("status", {}).get("state") == "Verified" for step in found)

    def _create_step(self, graph: JsonObject, environment: str) -> JsonObject:
        name = f"{graph['metadata']['name']}-{environment}"
        assert self._may_start(graph, environment), f"{name} waits for what is upstream of it"
        node = read_topology(graph).steps[environment]
        (template,) = (each["template"] for each in _steps(graph) if each["id"] == node.id)
        spec = {
            "pipeline": template["spec"]["pipeline"],
            "environment": environment,
            "bundleRef": graph["metadata"]["name"],
            "path": f"environments/{environment}",
            "git": {"url": "file:///repo"},
        }
        if "attempt" in template["spec"]:
            spec["attempt"] = template["spec"]["attempt"]
        metadata = {"name": name, "namespace": TEAM, "ownerReferences": [owned_by(graph)]}
        made = {"apiVersion": PROMOTION_STEP.api_version, "kind": "PromotionStep", "metadata": metadata, "spec": spec}
        return self._stored.put(PROMOTION_STEP, made)

    def _graph(self, bundle: str) -> JsonObject:
        graph = self.stored(GRAPH, bundle)
        assert graph is not None, f"Bundle {bundle} has no Graph"
        return graph

    # Letting time pass.

    async def settle(self) -> None:
        await self.live(SOON)

    async def live(self, duration: timedelta) -> None:
        """Let a time pass, with all that is due by then."""
        end = self.clock.monotonic() + duration.total_seconds()
        for _ in range(MOST_RUNS):
            if len(self._queue):
                item = await self._queue.get()
                assert item is not None
                await self._run(item.key)
            elif any(map(self._follow, self.caches.graphs.list())):
                continue
            elif (deadline := self.clock.next_deadline) is not None and deadline <= end:
                self.clock.advance_to_next_timer()
            else:
                self.clock.skip(end - self.clock.monotonic())
                return
        pytest.fail("the controller does not come to rest")

    async def _run(self, key: Key) -> None:
        result = await self._reconciler.reconcile(key)
        self._queue.done(key)
        if result.requeue_after is not None:
            self._queue.add(key, after=result.requeue_after.total_seconds())
        if self.caches.bundles.get(*key) is None:
            self._memory.drop(key)


def _steps(graph: JsonObject) -> list[JsonObject]:
    """Return the nodes of a Graph that are PromotionSteps."""
    nodes: list[JsonObject] = graph["spec"]["nodes"]
    return [node for node in nodes if node.get("template", {}).get("kind") == "PromotionStep"]


def _merged(obj: JsonObject, patch: JsonObject) -> JsonObject:
    """Apply a merge patch: RFC 7386."""
    found = {name: value for name, value in obj.items() if name not in patch}
    for name, value in patch.items():
        if isinstance(value, dict):
            before = obj.get(name)
            found[name] = _merged(before if isinstance(before, dict) else {}, value)
        elif value is not None:
            found[name] = value
    return found


@pytest.fixture
async def alone() -> AsyncIterator[BundleController]:
    """Yield a controller without objects."""
    controller = BundleController()
    yield controller
    controller.close()


@pytest.fixture
async def bundles(alone: BundleController) -> BundleController:
    """Return a controller that knows a Pipeline of three environments."""
    await alone.apply(pipeline("file:///repo"))
    return alone
