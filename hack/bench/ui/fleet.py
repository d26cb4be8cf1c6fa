"""Fill the informers of a program without an API server with a fleet of Pipelines, and promote them.

Each Pipeline has a Bundle that is Verified everywhere, and one that is promoted. Two Pipelines are special:

    team-0/app-0        the probe: a step of it has failed, so its row is the first one of the overview
    team-0/wide         50 environments with three gates each: a DAG of 200 nodes
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import orjson

from kardinal.clock import SystemClock
from kardinal.extensions import load_extensions
from kardinal.objects import JsonObject, key_of
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.policy.matching import collect
from kardinal.promotion.translation import Features, translate
from kardinal_controller.caches import Caches

__all__ = ["ENVIRONMENTS", "PROBE", "WIDE", "Fleet"]

NAMESPACES = 20
ENVIRONMENTS = ("dev", "test", "staging", "prod")
STATES = ("Promoting", "WaitingForMerge", "HealthChecking", "HealthChecking", "Verified")
API_VERSION = "kardinal.io/v1alpha1"
COMMIT = "c0ffee" + "0" * 34
PROBE = ("team-0", "app-0")
WIDE = ("team-0", "wide")
REGIONS = 10
"""The number of ranks of the wide Pipeline; each of its five environments in a rank comes after two of the last one."""
GATES = ("business-hours", "error-budget", "soak")

Json = dict[str, Any]


class Fleet:
    """The objects of `pipelines` Pipelines in the informers of `caches`."""

    def __init__(self, caches: Caches, pipelines: int) -> None:
        self._caches = caches
        self._pipelines = pipelines
        self._version = 0
        self._now = SystemClock().now().replace(microsecond=0)

    def create(self) -> None:
        """Fill the informers."""
        pipelines = []
        bundles = []
        steps = []
        for number in range(self._pipelines):
            namespace, name = _place(number)
            pipelines.append(self._pipeline(namespace, name, [_environment(name, each) for each in ENVIRONMENTS]))
            bundles += [self._bundle(namespace, name, tag, ENVIRONMENTS) for tag in (1, 2)]
            steps += [self._step(namespace, name, environment) for environment in ENVIRONMENTS]
        wide, graph, wide_steps, instances = self._wide()
        for informer, objects in (
            (self._caches.pipelines, [*pipelines, wide]),
            (self._caches.bundles, [*bundles, self._wide_bundle()]),
            (self._caches.graphs, [graph]),
            (self._caches.steps, [*steps, *wide_steps]),
            (self._caches.gates, instances),
        ):
            informer.replace({key_of(obj): obj for obj in objects}, "1")
        self.probe(0)

    async def promote(self, rate: float, seconds: float) -> AsyncIterator[Json]:
        """Promote one Pipeline after the other, each by five writes of its step and two of its Bundle.

        Yields after each promotion the key of its row, and the time of the last write.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for number in range(int(rate * seconds / 60)):
            # The probe is not promoted.
            namespace, name = _place(1 + number % (self._pipelines - 1))
            environment = ENVIRONMENTS[number // self._pipelines % len(ENVIRONMENTS)]
            due = begin + number * 60 / rate
            await asyncio.sleep(max(due - loop.time(), 0))
            for state in STATES:
                self._change_step(namespace, name, environment, state, f"{state} at {SystemClock().now().isoformat()}")
                if state in ("Promoting", "Verified"):
                    self._change_bundle(namespace, name, environment, state)
                await asyncio.sleep(0)
            yield {"row": f"{namespace}/{name}", "at": time.monotonic()}

    def probe(self, number: int) -> None:
        """Write a number into the message of the probe, which its row shows: `probe 7.`."""
        self._change_step(*PROBE, "dev", "Failed", f"probe {number}.")

    def change_wide(self, number: int) -> None:
        """Write another state of one environment of the wide Pipeline."""
        state = ("Promoting", "HealthChecking")[number % 2]
        self._change_step(*WIDE, "r3-e2", state, f"change {number}.")

    def _change_step(self, namespace: str, pipeline: str, environment: str, state: str, message: str) -> None:
        before = self._caches.steps.get(namespace, f"{pipeline}-2-{environment}")
        if before is None:
            raise LookupError(f"{namespace}/{pipeline} has no step for {environment}")
        after = copy.deepcopy(before)
        after["metadata"]["resourceVersion"] = self._next()
        after["status"] = {"state": state, "message": message, "currentStep": 0, "healthy": True}
        if state == "Verified":
            moment = SystemClock().now().isoformat()
            after["status"] |= {"verifiedAt": moment, "promotedAt": moment, "commit": COMMIT}
        self._caches.steps.apply("MODIFIED", after)

    def _change_bundle(self, namespace: str, pipeline: str, environment: str, state: str) -> None:
        before = self._caches.bundles.get(namespace, f"{pipeline}-2")
        if before is None:
            raise LookupError(f"{namespace}/{pipeline} has no Bundle")
        after = copy.deepcopy(before)
        after["metadata"]["resourceVersion"] = self._next()
        entry: Json = {"state": state}
        if state == "Verified":
            entry["verifiedAt"] = SystemClock().now().isoformat()
        after["status"]["environments"][environment] = entry
        self._caches.bundles.apply("MODIFIED", after)

    def _next(self) -> str:
        self._version += 1
        return str(self._version + 1)

    def _object(self, kind: str, namespace: str, name: str, **content: Any) -> JsonObject:
        labels = content.pop("labels", {})
        metadata = {
            "namespace": namespace,
            "name": name,
            "uid": f"{kind}-{namespace}-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": self._now.isoformat(),
            "labels": labels,
        }
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **content}

    def _pipeline(self, namespace: str, name: str, environments: list[Json]) -> JsonObject:
        return self._object("Pipeline", namespace, name, spec={"git": _git(namespace), "environments": environments})

    def _bundle(self, namespace: str, pipeline: str, tag: int, environments: Iterable[str]) -> JsonObject:
        verified = {"state": "Verified", "verifiedAt": self._now.isoformat(), "commit": COMMIT}
        images = [{"name": "app", "reference": f"registry.example.com/{pipeline}:1.{tag}.0"}]
        states = {each: verified if tag == 1 else {"state": "Pending"} for each in environments}
        status = {
            "phase": "Verified" if tag == 1 else "Promoting",
            "pipeline": pipeline,
            "sequence": tag,
            "version": f"1.{tag}.0",
            "graphRef": f"{pipeline}-{tag}",
            "environments": states,
        }
        return self._object(
            "Bundle",
            namespace,
            f"{pipeline}-{tag}",
            labels={"kardinal.io/pipeline": pipeline},
            spec={"type": "image", "artifacts": {"images": images}, "provenance": {"author": "ada"}},
            status=status,
        )

    def _step(self, namespace: str, pipeline: str, environment: str) -> JsonObject:
        spec = {
            "pipeline": pipeline,
            "environment": environment,
            "bundleRef": f"{pipeline}-2",
            "path": f"{pipeline}/{environment}",
            "git": _git(namespace),
            "steps": [{"uses": each} for each in ("git-clone", "kustomize-set-image", "git-push", "health-check")],
            "health": {"type": "resource", "resource": {"name": pipeline, "namespace": environment}, "timeout": "10m"},
        }
        labels = {"kardinal.io/pipeline": pipeline, "kardinal.io/bundle": f"{pipeline}-2"}
        name = f"{pipeline}-2-{environment}"
        return self._object("PromotionStep", namespace, name, labels=labels, spec=spec, status={"state": "Pending"})

    def _wide_bundle(self) -> JsonObject:
        return self._bundle(*WIDE, 2, _regions())

    def _wide(self) -> tuple[JsonObject, JsonObject, list[JsonObject], list[JsonObject]]:
        """Return the wide Pipeline, the Graph of its Bundle, its steps and its gate instances."""
        namespace, name = WIDE
        pipeline = self._pipeline(
            namespace, name, [_environment(name, each) | {"dependsOn": before} for each, before in _regions().items()]
        )
        gates = [
            self._object(
                "PolicyGate",
                namespace,
                each,
                labels={"kardinal.io/applies-to": environment},
                spec={"expression": "true", "message": "Ask #sre before you override."},
            )
            for environment in _regions()
            for each in (f"{gate}-{environment}" for gate in GATES)
        ]
        graph = translate(
            Pipeline.model_validate(pipeline),
            Bundle.model_validate(self._wide_bundle()),
            collect(map(PolicyGate.model_validate, gates), pipeline=name, namespace=namespace, policy_namespaces=()),
            features=Features(registry=load_extensions().registry),
            now=self._now,
        )
        graph["metadata"] |= {"namespace": namespace, "name": f"{name}-2", "resourceVersion": "1"}
        templates = [node["template"] for node in graph["spec"]["nodes"] if "template" in node]
        # Of the expressions in a Graph, labels have this one.
        text = orjson.dumps(templates).replace(b"${bundle.metadata.name}", f"{name}-2".encode())
        children: list[JsonObject] = orjson.loads(text)
        instances = [
            self._object(
                "PolicyGate",
                namespace,
                child["metadata"]["name"],
                labels=child["metadata"]["labels"],
                spec=child["spec"],
                status={"ready": number % 3 > 0, "reason": f"errorBudget = 0.{number}"},
            )
            for number, child in enumerate(children)
            if child["kind"] == "PolicyGate"
        ]
        return pipeline, graph, [self._step(namespace, name, each) for each in _regions()], instances


def _place(number: int) -> tuple[str, str]:
    return f"team-{number % NAMESPACES}", f"app-{number}"


def _git(namespace: str) -> Json:
    return {"url": f"https://git.example.com/{namespace}/gitops.git", "provider": "git"}


def _environment(pipeline: str, name: str) -> Json:
    return {"name": name, "path": f"{pipeline}/{name}"}


def _regions() -> Mapping[str, list[str]]:
    """Return the environments of the wide Pipeline, each with those before it."""
    columns = 50 // REGIONS
    return {
        f"r{rank}-e{column}": [f"r{rank - 1}-e{column}", f"r{rank - 1}-e{(column + 1) % columns}"] if rank else []
        for rank in range(REGIONS)
        for column in range(columns)
    }
