"""Ask a GitOps tool to read the repository now, once for each landing.

Without a webhook, Argo CD and Flux read a repository every few minutes; an annotation on their object makes them read
it at once. Writing it needs a right on objects of another tool. The annotation is therefore written only if the
operator has granted that right, the namespace admits the Pipeline, and the object is in the agent's own cluster.

The decision is noted in the status before the annotation is written, and is carried out at most once: after a process
that died in between, no annotation is written, and the tool reads the repository at its usual interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from kardinal.clock import Clock
from kardinal.kube import Client, KubeError
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.objects.conditions import format_time
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import ARGOCD, FLUX
from kardinal.runtime import KeyMemory
from kardinal_agent.health.argocd_application import APPLICATION, Application
from kardinal_agent.health.detection import source_of
from kardinal_agent.health.fields import text
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION, commit_of
from kardinal_agent.health.flux_helm_release import applier
from kardinal_agent.health.namespaces import HealthNamespaces
from kardinal_agent.health.verdict import PromotionFacts, WatchedObjects

__all__ = ["ARGOCD_REFRESH", "FLUX_REQUEST", "Refreshable", "Refreshes", "targets"]

ARGOCD_REFRESH = "argocd.argoproj.io/refresh"
FLUX_REQUEST = "reconcile.fluxcd.io/requestedAt"

_REVIEW = ResourceType(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Refreshable:
    """An object to annotate, with the annotation."""

    resource: ResourceType
    key: Key
    annotation: str


def targets(step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[Refreshable]:
    """Return the objects to annotate, for Flux the source first; none if the tool has read the commit already."""
    health = step.spec.health
    if health.type == ARGOCD.name and health.argocd is not None:
        found = objects.get(APPLICATION, health.argocd.namespace, health.argocd.name)
        return _application(found, promotion) if found is not None else ()
    if health.type != FLUX.name or health.flux is None:
        return ()
    key: Key | None = Key(health.flux.namespace, health.flux.name)
    if health.flux.kind == HELM_RELEASE.kind:
        release = objects.get(HELM_RELEASE, *key) if key is not None else None
        key = applier(release) if release is not None else None
    found = objects.get(KUSTOMIZATION, *key) if key is not None else None
    return _kustomization(found, promotion) if found is not None else ()


def _application(found: JsonObject, promotion: PromotionFacts) -> Sequence[Refreshable]:
    application = Application(found)
    own = [application.revisions[index : index + 1] for index in application.own_sources(promotion)]
    if application.is_skipped or not own or all(_contains(revision, promotion) for revision in own):
        return ()
    return (Refreshable(APPLICATION, key_of(found), ARGOCD_REFRESH),)


def _contains(revision: Sequence[str], promotion: PromotionFacts) -> bool:
    return any(promotion.contains(each) is True for each in revision if each)


def _kustomization(found: JsonObject, promotion: PromotionFacts) -> Sequence[Refreshable]:
    attempted = commit_of(text(found, "status", "lastAttemptedRevision"))
    source = source_of(found)
    if source is None or source.name is None or (attempted is not None and promotion.contains(attempted) is True):
        return ()
    return (
        Refreshable(source.kind, Key(source.namespace, source.name), FLUX_REQUEST),
        Refreshable(KUSTOMIZATION, key_of(found), FLUX_REQUEST),
    )


class Refreshes:
    """The refreshes that one agent has decided on and not made so far."""

    def __init__(self, client: Client, namespaces: HealthNamespaces, *, clock: Clock, memory: KeyMemory) -> None:
        self._client = client
        self._namespaces = namespaces
        self._clock = clock
        self._decided = memory.set()
        self._due: dict[Key, Sequence[Refreshable]] = memory.map()

    async def decide(self, key: Key, wanted: Sequence[Refreshable]) -> bool:
        """Return whether one of `wanted` may be annotated; the caller notes that in the status, and then calls `ask`.

        An object that may not be annotated is not tried again by this process.
        """
        if not wanted or key in self._decided:
            return key in self._due
        self._decided.add(key)
        allowed = [target for target in wanted if await self._may(target, reader=key.namespace)]
        if allowed:
            self._due[key] = allowed
        return bool(allowed)

    async def ask(self, key: Key) -> None:
        """Write the annotations that `decide` chose; a failed write is not repeated."""
        now = format_time(self._clock.now())
        for target in self._due.pop(key, ()):
            value = "normal" if target.annotation == ARGOCD_REFRESH else now
            body = {"metadata": {"annotations": {target.annotation: value}}}
            try:
                await self._client.patch(target.resource, target.key.name, target.key.namespace, body)
            except KubeError as error:
                log.info("a tool was not asked to refresh", object=str(target.key), error=type(error).__name__)

    async def _may(self, target: Refreshable, *, reader: str) -> bool:
        """Return whether the namespace admits Pipelines of `reader`, and the agent may patch the object."""
        if not self._namespaces.lets_in(target.key.namespace, reader=reader):
            return False
        attributes = {
            "verb": "patch",
            "group": target.resource.group,
            "resource": target.resource.plural,
            "namespace": target.key.namespace,
            "name": target.key.name,
        }
        review = {
            "apiVersion": _REVIEW.api_version,
            "kind": _REVIEW.kind,
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = await self._client.create(_REVIEW, {**review, "metadata": {}})
        except KubeError:
            return False
        return (answer.get("status") or {}).get("allowed") is True
