"""A promotion, a PromotionStep and objects of GitOps tools, as the adapters read them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.objects import CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, POD, REPLICA_SET, STATEFUL_SET, JsonObject
from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.bundle import Chart
from kardinal_agent.health import Adapter, PromotionFacts, Verdict, Watched, WatchedObjects
from kardinal_agent.health.argo_rollouts import ROLLOUT
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.flagger import CANARY
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION

__all__ = [
    "BEFORE",
    "COMMIT",
    "LANDED",
    "LATER",
    "NEW",
    "OLD",
    "REPOSITORY",
    "Case",
    "Change",
    "change",
    "deployment",
    "judged",
    "looked_at",
    "objects_of",
    "promotion",
    "promotion_step",
    "remove",
    "stuck_pod",
    "without_change",
]

OLD = "ghcr.io/o/app:1.0.0"
NEW = "ghcr.io/o/app:2.0.0"
BEFORE = "a" * 40
COMMIT = "b" * 40
LATER = "c" * 40
"""The commit before the promotion, its own, and one on top."""
REPOSITORY = "https://git.example.com/acme/config"
LANDED = "2026-11-21T11:00:00Z"

_KINDS = {
    each.kind: each
    for each in (
        *(APPLICATION, KUSTOMIZATION, HELM_RELEASE, ROLLOUT, CANARY),
        *(DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB, CRON_JOB, POD, REPLICA_SET),
    )
}

Change = Callable[[JsonObject], None]


def change(*path: str | int, to: Any) -> Change:
    """Return a change that sets a field."""

    def apply(found: JsonObject) -> None:
        part: Any = found
        for name in path[:-1]:
            part = part.setdefault(name, {}) if isinstance(part, dict) else part[name]
        part[path[-1]] = copy.deepcopy(to)

    return apply


def remove(*path: str) -> Change:
    """Return a change that removes a field."""

    def apply(found: JsonObject) -> None:
        part: Any = found
        for name in path[:-1]:
            part = part[name]
        part.pop(path[-1], None)

    return apply


def without_change(_: JsonObject) -> None:
    """Leave an object as it is."""


@dataclass(frozen=True)
class Case:
    """One state of a tool, and the verdict on it; `words` stand in the guide of the tool as they do in the message."""

    name: str
    words: str
    changes: Sequence[Change] = ()
    state: str = "progressing"
    reason: str = ""
    says: str = ""
    """The object's own text, which is told to those alone who may read it."""
    seen: bool = False
    """Whether a real controller was recorded in it; else it is known from the tool's types and sources."""

    def of(self, made: JsonObject) -> JsonObject:
        """Return an object in this state."""
        found = copy.deepcopy(made)
        for each in self.changes:
            each(found)
        return found


def promotion_step(health: JsonObject, *, delegate: str = "none", **status: Any) -> PromotionStep:
    """Return a step of environment `prod` that landed at `LANDED`; `health` is in camelCase."""
    return PromotionStep.model_validate(
        {
            "apiVersion": "kardinal.io/v1alpha1",
            "kind": "PromotionStep",
            "metadata": {"name": "app-1-prod", "namespace": "team"},
            "spec": {
                "pipeline": "app",
                "environment": "prod",
                "bundleRef": "app-1",
                "path": "apps/prod",
                "git": {"url": REPOSITORY},
                "health": health,
                "delivery": {"delegate": delegate},
            },
            "status": {"promotedAt": LANDED, **status},
        }
    )


def promotion(
    *images: str, commits: Iterable[str] = (COMMIT, LATER), charts: Sequence[Chart] = (), **fields: Any
) -> PromotionFacts:
    """Return a promotion of `images`, whose commit is contained in `commits`."""
    containing = frozenset(commits)
    settings: JsonObject = {
        "commit": COMMIT,
        "repository": REPOSITORY,
        "branch": "main",
        "path": "apps/prod",
        "contains": lambda revision: revision in containing,
    }
    return PromotionFacts(images=[ImageReference.parse(each) for each in images], charts=charts, **(settings | fields))


def deployment(image: str = NEW, *, name: str = "app", generation: int = 4, **status: Any) -> JsonObject:
    """Return a Deployment of the namespace `prod`, completely rolled out."""
    counts = {"observedGeneration": generation, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    conditions = [
        {"type": "Available", "status": "True"},
        {
            "type": "Progressing",
            "status": "True",
            "reason": "NewReplicaSetAvailable",
            "lastUpdateTime": "2026-11-21T11:01:00Z",
        },
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "prod", "generation": generation},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": image}]}}},
        "status": {**counts, "conditions": conditions, **status},
    }


def stuck_pod(image: str = NEW, *, app: str = "app") -> JsonObject:
    """Return a pod of the namespace `prod` whose image cannot be pulled."""
    waiting = {"reason": "ErrImagePull", "message": "no such tag"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{app}-x", "namespace": "prod", "labels": {"app": app}},
        "spec": {"containers": [{"image": image}]},
        "status": {"containerStatuses": [{"image": image, "state": {"waiting": waiting}}]},
    }


def objects_of(*found: JsonObject) -> WatchedObjects:
    """Return a view of objects."""
    kinds = {_KINDS[each["kind"]] for each in found}
    return WatchedObjects({kind: [each for each in found if each["kind"] == kind.kind] for kind in kinds})


def looked_at(
    adapter: Adapter, step: PromotionStep, promoted: PromotionFacts, found: Sequence[JsonObject]
) -> WatchedObjects:
    """Return the objects that an adapter asks for and no others, as the agent gives it them."""
    wanted = list(adapter.watches(step))
    chosen = list[JsonObject]()
    while len(chosen) < len(
        chosen := [each for each in found if any(_is_watched(each, watched) for watched in wanted)]
    ):
        wanted = [*adapter.watches(step), *adapter.related(step, promoted, objects_of(*chosen))]
    return objects_of(*chosen)


def _is_watched(found: JsonObject, watched: Watched) -> bool:
    metadata = found["metadata"]
    labels = metadata.get("labels") or {}
    return (
        watched.kind == _KINDS[found["kind"]]
        and watched.namespace == metadata["namespace"]
        and watched.name in (None, metadata["name"])
        and all(labels.get(name) == value for name, value in (watched.selector or {}).items())
    )


def judged(adapter: Adapter, step: PromotionStep, promoted: PromotionFacts, *found: JsonObject) -> Verdict:
    """Return the verdict on what is there."""
    return adapter.judge(step, promoted, looked_at(adapter, step, promoted, found))
