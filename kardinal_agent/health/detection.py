"""Decide which objects of a GitOps tool deploy an environment: those that read its path from its branch and repository.

If a Pipeline names no object, the agent looks for the one object of Argo CD, otherwise of Flux, that deploys the
environment, once for each promotion. The detected object is written to the status and is used until the promotion ends,
so that another object that is created meanwhile has no effect. A status may be forged, so each check verifies again
that the object deploys the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health import HealthStatus
from kardinal.promotion.api.health_adapters import ARGOCD, FLUX, RESOURCE, HealthArgoCD, HealthFlux, HealthResource
from kardinal.promotion.api.health_fields import is_detected, proof_without_tool
from kardinal.promotion.policy.binding import clean_branch, clean_path
from kardinal_agent.health.argocd_application import APPLICATION, Application, same_repository
from kardinal_agent.health.fields import section, text
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from kardinal_agent.health.verdict import Watched, WatchedObjects

__all__ = [
    "DEPLOYERS",
    "GIT_REPOSITORY",
    "Detected",
    "deployers",
    "deploys",
    "detected",
    "settled",
    "source_of",
    "undetected",
]

GIT_REPOSITORY = ResourceType("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")

DEPLOYERS: Final[Mapping[str, Sequence[ResourceType]]] = {
    ARGOCD.name: (APPLICATION,),
    FLUX.name: (KUSTOMIZATION, HELM_RELEASE),
}
"""`health.type` -> the kinds of the tool; the first tool with an object is used."""

_KINDS = {kind.kind: kind for kinds in DEPLOYERS.values() for kind in kinds}
_FLUX_BRANCH = "master"
"""The default branch of a GitRepository."""


@dataclass(frozen=True, slots=True)
class Detected:
    """An object that deploys an environment."""

    resource: ResourceType
    key: Key

    @property
    def tool(self) -> str:
        """Return the `health.type` of the adapter that judges the object."""
        return next(tool for tool, kinds in DEPLOYERS.items() if self.resource in kinds)

    @property
    def title(self) -> str:
        return f"{self.resource.kind} {self.key}"

    @property
    def fields(self) -> JsonObject:
        """Return the fields that name the object in `health` and in the status."""
        return {"kind": self.resource.kind, "name": self.key.name, "namespace": self.key.namespace}

    @property
    def status(self) -> HealthStatus:
        """Return the status that notes the object."""
        return HealthStatus.model_validate({"type": self.tool, **self.fields})


def undetected(step: PromotionStep) -> bool:
    """Return whether the Pipeline names no object and none was detected so far."""
    return is_detected(step.spec.health, delegate=step.spec.delivery.delegate) and settled(step) is step


def detected(step: PromotionStep) -> Detected | None:
    """Return the detected object in the status of a promotion; None without one."""
    noted = step.status.health
    if noted is None or not is_detected(step.spec.health, delegate=step.spec.delivery.delegate):
        return None
    if noted.kind is None or noted.name is None or noted.namespace is None:
        return None
    found = Detected(_KINDS[noted.kind], Key(noted.namespace, noted.name))
    return found if noted.type == found.tool else None


def settled(step: PromotionStep) -> PromotionStep:
    """Return the step with the detected object as its `health`; unchanged if it names one, or none was detected."""
    noted = step.status.health
    delegate = step.spec.delivery.delegate
    if noted is None or not is_detected(step.spec.health, delegate=delegate):
        return step
    found = detected(step)
    update = dict[str, object](type=noted.type)
    if found is not None and found.tool == ARGOCD.name:
        update[ARGOCD.attribute] = HealthArgoCD(name=found.key.name, namespace=found.key.namespace)
    elif found is not None:
        update[FLUX.attribute] = HealthFlux.model_validate(found.fields)
    elif noted.type != proof_without_tool(delegate):
        return step
    elif noted.type == RESOURCE.name:
        update[RESOURCE.attribute] = HealthResource(namespace=step.spec.environment)
    spec = step.spec.model_copy(update={"health": step.spec.health.model_copy(update=update)})
    return step.model_copy(update={"spec": spec})


def deployers(step: PromotionStep, objects: WatchedObjects) -> Sequence[Detected]:
    """Return the objects that deploy an environment, all of the same tool: the first one that has such objects."""
    for kinds in DEPLOYERS.values():
        found = [(kind, each) for kind in kinds for each in objects.list(kind)]
        there = [(kind, each) for kind, each in found if "deletionTimestamp" not in each["metadata"]]
        if meant := [Detected(kind, key_of(each)) for kind, each in there if deploys(step, kind, each, objects)]:
            return meant
    return ()


def deploys(step: PromotionStep, kind: ResourceType, found: JsonObject, objects: WatchedObjects) -> bool:
    """Return whether an object reads the path of an environment from its branch and repository.

    `objects` has the GitRepositories that objects of Flux refer to.
    """
    return _READERS[kind](step, found, objects)


def source_of(found: JsonObject) -> Watched | None:
    """Return the GitRepository in the `sourceRef` of a Kustomization, or of the chart of a HelmRelease."""
    reference = section(_source_spec(found), "sourceRef")
    if text(reference, "kind") != GIT_REPOSITORY.kind or not text(reference, "name"):
        return None
    namespace = text(reference, "namespace") or key_of(found).namespace
    return Watched(kind=GIT_REPOSITORY, namespace=namespace, name=text(reference, "name"))


def _application(step: PromotionStep, found: JsonObject, objects: WatchedObjects) -> bool:
    application = Application(found)
    return not application.is_hydrated and any(_read_by_argocd(step, source) for source in application.sources)


def _read_by_argocd(step: PromotionStep, source: Mapping[str, Any]) -> bool:
    path = text(source, "path")
    revision = text(source, "targetRevision")
    if not path or text(source, "chart") or not same_repository(text(source, "repoURL"), step.spec.git.url):
        return False
    # Without a branch it is the default branch of the repository, whose name is unknown here.
    known = revision not in ("", "HEAD") or step.spec.branch is not None
    return _covers(path, step) and (_is_branch(revision, step) if known else True)


def _kustomization(step: PromotionStep, found: JsonObject, objects: WatchedObjects) -> bool:
    return _covers(text(found, "spec", "path"), step) and _read_by_flux(step, found, objects)


def _helm_release(step: PromotionStep, found: JsonObject, objects: WatchedObjects) -> bool:
    path = text(_source_spec(found), "chart")
    return bool(path) and _covers(path, step) and _read_by_flux(step, found, objects)


def _read_by_flux(step: PromotionStep, found: JsonObject, objects: WatchedObjects) -> bool:
    named = source_of(found)
    source = objects.get(GIT_REPOSITORY, named.namespace, named.name or "") if named is not None else None
    if source is None or not same_repository(text(source, "spec", "url"), step.spec.git.url):
        return False
    reference = section(source, "spec", "ref")
    if any(text(reference, pinned) for pinned in ("commit", "semver", "tag")):
        return False
    return _is_branch(text(reference, "name") or text(reference, "branch") or _FLUX_BRANCH, step)


def _source_spec(found: JsonObject) -> Mapping[str, Any]:
    """Return the mapping with `sourceRef`: the spec of a Kustomization, or the chart's spec in a HelmRelease."""
    return section(found, "spec", "chart", "spec") if found["kind"] == HELM_RELEASE.kind else section(found, "spec")


def _covers(path: str, step: PromotionStep) -> bool:
    """Return whether `path` is the path of the environment, or a directory above it."""
    theirs = clean_path(path)
    ours = clean_path(step.spec.path)
    return theirs in (".", ours) or ours.startswith(f"{theirs}/")


def _is_branch(name: str, step: PromotionStep) -> bool:
    return clean_branch(name) == clean_branch(step.spec.target_branch)


_READERS: Final[Mapping[ResourceType, Callable[[PromotionStep, JsonObject, WatchedObjects], bool]]] = {
    APPLICATION: _application,
    KUSTOMIZATION: _kustomization,
    HELM_RELEASE: _helm_release,
}
