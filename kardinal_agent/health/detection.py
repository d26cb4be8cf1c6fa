"""Which objects of a GitOps tool deploy an environment: those that read its path from its branch of its repository.

Where a Pipeline names no proof, the agent finds the one object of Argo CD, else of Flux, that does so, once for each
promotion. What was found stands in the status, because it must be the same to the end: who creates another object
meanwhile changes nothing. A status may be forged, so whether the object deploys the environment is asked again each
time it is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kardinal.api import PromotionStep
from kardinal.api.health import HealthArgoCD, HealthFlux, HealthResource, HealthStatus
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.policy.binding import clean_branch, clean_path
from kardinal.steps.health_fields import is_detected, proof_without_tool
from kardinal_agent.health.argocd_application import APPLICATION, Application, same_repository
from kardinal_agent.health.fields import section, text
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from kardinal_agent.health.verdict import Objects, Watched

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
    "argocd": (APPLICATION,),
    "flux": (KUSTOMIZATION, HELM_RELEASE),
}
"""`health.type` -> the kinds of a tool, in the order in which tools are asked."""

_KINDS = {kind.kind: kind for kinds in DEPLOYERS.values() for kind in kinds}
_FLUX_BRANCH = "master"
"""The branch of a GitRepository that names none."""


@dataclass(frozen=True, slots=True)
class Detected:
    """An object that deploys an environment."""

    resource: ResourceType
    key: Key

    @property
    def tool(self) -> str:
        """Return the `health.type` that judges it."""
        return next(tool for tool, kinds in DEPLOYERS.items() if self.resource in kinds)

    @property
    def title(self) -> str:
        return f"{self.resource.kind} {self.key}"

    @property
    def fields(self) -> JsonObject:
        """Return how `health` and the status name it."""
        return {"kind": self.resource.kind, "name": self.key.name, "namespace": self.key.namespace}

    @property
    def status(self) -> HealthStatus:
        """Return what is noted of it."""
        return HealthStatus.model_validate({"type": self.tool, **self.fields})


def undetected(step: PromotionStep) -> bool:
    """Return whether the proof of a promotion is still to be found."""
    return is_detected(step.spec.health, delegate=step.spec.delivery.delegate) and settled(step) is step


def detected(step: PromotionStep) -> Detected | None:
    """Return the object that was found for a promotion, if its proof was found at all."""
    noted = step.status.health
    if noted is None or not is_detected(step.spec.health, delegate=step.spec.delivery.delegate):
        return None
    if noted.kind is None or noted.name is None or noted.namespace is None:
        return None
    found = Detected(_KINDS[noted.kind], Key(noted.namespace, noted.name))
    return found if noted.type == found.tool else None


def settled(step: PromotionStep) -> PromotionStep:
    """Return the step with the proof that was found for it; as it is where it names one, or none is noted."""
    noted, delegate = step.status.health, step.spec.delivery.delegate
    if noted is None or not is_detected(step.spec.health, delegate=delegate):
        return step
    found, update = detected(step), dict[str, object](type=noted.type)
    if found is not None and found.tool == "argocd":
        update["argocd"] = HealthArgoCD(name=found.key.name, namespace=found.key.namespace)
    elif found is not None:
        update["flux"] = HealthFlux.model_validate(found.fields)
    elif noted.type != proof_without_tool(delegate):
        return step
    elif noted.type == "resource":
        update["resource"] = HealthResource(namespace=step.spec.environment)
    spec = step.spec.model_copy(update={"health": step.spec.health.model_copy(update=update)})
    return step.model_copy(update={"spec": spec})


def deployers(step: PromotionStep, objects: Objects) -> Sequence[Detected]:
    """Return the objects that deploy an environment, of the first tool that has one."""
    for kinds in DEPLOYERS.values():
        found = [(kind, each) for kind in kinds for each in objects.list(kind)]
        there = [(kind, each) for kind, each in found if "deletionTimestamp" not in each["metadata"]]
        if meant := [Detected(kind, key_of(each)) for kind, each in there if deploys(step, kind, each, objects)]:
            return meant
    return ()


def deploys(step: PromotionStep, kind: ResourceType, found: JsonObject, objects: Objects) -> bool:
    """Return whether an object reads the path of an environment from its branch; `objects` has the sources of Flux."""
    return _READERS[kind](step, found, objects)


def source_of(found: JsonObject) -> Watched | None:
    """Return the GitRepository that a Kustomization, or the chart of a HelmRelease, is read from."""
    reference = section(_source_spec(found), "sourceRef")
    if text(reference, "kind") != GIT_REPOSITORY.kind or not text(reference, "name"):
        return None
    namespace = text(reference, "namespace") or key_of(found).namespace
    return Watched(kind=GIT_REPOSITORY, namespace=namespace, name=text(reference, "name"))


def _application(step: PromotionStep, found: JsonObject, objects: Objects) -> bool:
    application = Application(found)
    return not application.is_hydrated and any(_read_by_argocd(step, source) for source in application.sources)


def _read_by_argocd(step: PromotionStep, source: Mapping[str, Any]) -> bool:
    path, revision = text(source, "path"), text(source, "targetRevision")
    if not path or text(source, "chart") or not same_repository(text(source, "repoURL"), step.spec.git.url):
        return False
    # Without one it is the default branch of the repository, which nothing here tells.
    known = revision not in ("", "HEAD") or step.spec.branch is not None
    return _covers(path, step) and (_is_branch(revision, step) if known else True)


def _kustomization(step: PromotionStep, found: JsonObject, objects: Objects) -> bool:
    return _covers(text(found, "spec", "path"), step) and _read_by_flux(step, found, objects)


def _helm_release(step: PromotionStep, found: JsonObject, objects: Objects) -> bool:
    path = text(_source_spec(found), "chart")
    return bool(path) and _covers(path, step) and _read_by_flux(step, found, objects)


def _read_by_flux(step: PromotionStep, found: JsonObject, objects: Objects) -> bool:
    named = source_of(found)
    source = objects.get(GIT_REPOSITORY, named.namespace, named.name or "") if named is not None else None
    if source is None or not same_repository(text(source, "spec", "url"), step.spec.git.url):
        return False
    reference = section(source, "spec", "ref")
    if any(text(reference, pinned) for pinned in ("commit", "semver", "tag")):
        return False
    return _is_branch(text(reference, "name") or text(reference, "branch") or _FLUX_BRANCH, step)


def _source_spec(found: JsonObject) -> Mapping[str, Any]:
    """Return where an object names its source: a HelmRelease has a chart between."""
    return section(found, "spec", "chart", "spec") if found["kind"] == HELM_RELEASE.kind else section(found, "spec")


def _covers(path: str, step: PromotionStep) -> bool:
    """Return whether a path is that of the environment, or above it."""
    theirs, ours = clean_path(path), clean_path(step.spec.path)
    return theirs in (".", ours) or ours.startswith(f"{theirs}/")


def _is_branch(name: str, step: PromotionStep) -> bool:
    return clean_branch(name) == clean_branch(step.spec.target_branch)


_READERS: Final[Mapping[ResourceType, Callable[[PromotionStep, JsonObject, Objects], bool]]] = {
    APPLICATION: _application,
    KUSTOMIZATION: _kustomization,
    HELM_RELEASE: _helm_release,
}
