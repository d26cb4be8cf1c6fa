"""Ask a GitOps tool to look at the repository now, once for each landing.

Argo CD and Flux look every few minutes by themselves, unless a webhook tells them. Their annotations make them look at
once. Writing them needs a right over objects that are not kardinal's, so nothing is written unless the operator has
granted it, the namespace lets the Pipeline in, and the object is of the agent's own cluster.

The decision is noted in the status before anything is written, and is carried out at most once: a process that dies in
between leaves it at that, and the tool looks when it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from kardinal.api import PromotionStep
from kardinal.kube import Client, KubeError
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.objects.conditions import format_time
from kardinal.runtime import Clock
from kardinal_agent.health.argocd_application import APPLICATION, Application
from kardinal_agent.health.detection import source_of
from kardinal_agent.health.fields import text
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION, commit_of
from kardinal_agent.health.flux_helm_release import applier
from kardinal_agent.health.namespaces import HealthNamespaces
from kardinal_agent.health.verdict import Objects, Promotion

__all__ = ["ARGOCD_REFRESH", "FLUX_REQUEST", "Refreshes", "Target", "targets"]

ARGOCD_REFRESH = "argocd.argoproj.io/refresh"
FLUX_REQUEST = "reconcile.fluxcd.io/requestedAt"

_REVIEW = ResourceType(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """An object that is asked, and the annotation that asks it."""

    resource: ResourceType
    key: Key
    annotation: str


def targets(step: PromotionStep, promotion: Promotion, objects: Objects) -> Sequence[Target]:
    """Return the objects to ask: none of a tool that has seen the commit; of Flux the source first."""
    health = step.spec.health
    if health.type == "argocd" and health.argocd is not None:
        found = objects.get(APPLICATION, health.argocd.namespace, health.argocd.name)
        return _application(found, promotion) if found is not None else ()
    if health.type != "flux" or health.flux is None:
        return ()
    key: Key | None = Key(health.flux.namespace, health.flux.name)
    if health.flux.kind == HELM_RELEASE.kind:
        release = objects.get(HELM_RELEASE, *key) if key is not None else None
        key = applier(release) if release is not None else None
    found = objects.get(KUSTOMIZATION, *key) if key is not None else None
    return _kustomization(found, promotion) if found is not None else ()


def _application(found: JsonObject, promotion: Promotion) -> Sequence[Target]:
    application = Application(found)
    own = [application.revisions[index : index + 1] for index in application.own_sources(promotion)]
    if application.is_skipped or not own or all(_contains(revision, promotion) for revision in own):
        return ()
    return (Target(APPLICATION, key_of(found), ARGOCD_REFRESH),)


def _contains(revision: Sequence[str], promotion: Promotion) -> bool:
    return any(promotion.contains(each) is True for each in revision if each)


def _kustomization(found: JsonObject, promotion: Promotion) -> Sequence[Target]:
    attempted = commit_of(text(found, "status", "lastAttemptedRevision"))
    source = source_of(found)
    if source is None or source.name is None or (attempted is not None and promotion.contains(attempted) is True):
        return ()
    return (
        Target(source.kind, Key(source.namespace, source.name), FLUX_REQUEST),
        Target(KUSTOMIZATION, key_of(found), FLUX_REQUEST),
    )


class Refreshes:
    """The requests that one agent has decided on and has not made yet."""

    def __init__(self, client: Client, namespaces: HealthNamespaces, *, clock: Clock) -> None:
        self._client = client
        self._namespaces = namespaces
        self._clock = clock
        self._decided: set[Key] = set()
        self._due: dict[Key, Sequence[Target]] = {}

    async def decide(self, key: Key, wanted: Sequence[Target]) -> bool:
        """Return whether objects are to be asked for a promotion; that is noted, and then `ask` does it.

        What is not allowed is not asked for again by this process.
        """
        if not wanted or key in self._decided:
            return key in self._due
        self._decided.add(key)
        allowed = [target for target in wanted if await self._may(target, reader=key.namespace)]
        if allowed:
            self._due[key] = allowed
        return bool(allowed)

    async def ask(self, key: Key) -> None:
        """Write the annotations that are due; what fails is left at that."""
        now = format_time(self._clock.now())
        for target in self._due.pop(key, ()):
            value = "normal" if target.annotation == ARGOCD_REFRESH else now
            body = {"metadata": {"annotations": {target.annotation: value}}}
            try:
                await self._client.patch(target.resource, target.key.name, target.key.namespace, body)
            except KubeError as error:
                log.info("a tool was not asked to refresh", object=str(target.key), error=type(error).__name__)

    def forget(self, key: Key) -> None:
        """Drop what was decided for a promotion."""
        self._decided.discard(key)
        self._due.pop(key, None)

    async def _may(self, target: Target, *, reader: str) -> bool:
        """Return whether the namespace lets Pipelines of `reader` in, and the agent may write to the object."""
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
