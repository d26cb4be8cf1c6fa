"""Adapter `resource`: the workloads themselves, as they are named, labelled or found by the images that they run.

Found means: every workload of the namespace whose template runs a version of a promoted image. Each of them has to run
the promoted one, and each image has to be run by one of them at least; so a version that one of two services does not
take is no success, and neither is an image that nothing runs.

Of Jobs, which keep their template for ever, only those are found that were made for the promoted version; those of a
CronJob are its own business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.objects import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    STATEFUL_SET,
    JsonObject,
    ResourceType,
    controller_of,
)
from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import RESOURCE, HealthResource
from kardinal_agent.health.pods import judge_pods, pods_of
from kardinal_agent.health.templates import container_images, quoted
from kardinal_agent.health.verdict import Adapter, PromotionFacts, Verdict, Watched, WatchedObjects, progressing
from kardinal_agent.health.workloads import (
    WORKLOADS,
    combined,
    judge_workload,
    missing_workload,
    pod_spec,
    runs_repository_of,
    title_of,
)

__all__ = ["ResourceAdapter"]

_ALL = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, CRON_JOB, JOB)
_SHOWN = 8
"""The most workloads that a message names as candidates if none is found."""


class ResourceAdapter(Adapter):
    """Judges the workloads that `health.resource` selects."""

    name = RESOURCE.name

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        resource = _resource(step)
        namespace = _namespace(step)
        if names := _names(resource):
            kind = _kinds(resource)[0]
            return [Watched(kind=kind, namespace=namespace, name=name) for name in names]
        return [Watched(kind=kind, namespace=namespace, selector=resource.selector) for kind in _kinds(resource)]

    def related(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[Watched]:
        """Return the pods of workloads in a rollout: only pods report that an image cannot be pulled."""
        judged = _meant(step, promotion, objects)
        late = [each for each in judged if judge_workload(each, _concerning(each, promotion)).state != "healthy"]
        return [watched for each in late if (watched := pods_of(each)) is not None]

    def judge(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
        resource = _resource(step)
        namespace = _namespace(step)
        names = _names(_resource(step))
        workloads = _meant(step, promotion, objects)
        kind = _kinds(resource)[0]
        missing = [name for name in names if objects.get(kind, namespace, name) is None]
        if not workloads and not names:
            return _nothing_found(resource, namespace, promotion, objects)
        verdicts = [_judged(each, promotion, objects, named=bool(names), alone=len(names) == 1) for each in workloads]
        verdicts += [missing_workload(kind, namespace, name) for name in missing]
        if not missing and (idle := _not_run(promotion.images, workloads)) is not None:
            verdicts.append(_not_run_by_any(idle, workloads, namespace, alone=len(names) == 1))
        return combined(verdicts)


def _judged(
    workload: JsonObject, promotion: PromotionFacts, objects: WatchedObjects, *, named: bool, alone: bool
) -> Verdict:
    images = promotion.images if alone else _concerning(workload, promotion)
    verdict = judge_workload(workload, images, named=named)
    return judge_pods(workload, images, objects, named=named, otherwise=verdict)


def _meant(step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[JsonObject]:
    """Return the existing workloads that have to prove the promotion."""
    resource = _resource(step)
    namespace = _namespace(step)
    if names := _names(resource):
        found = (objects.get(_kinds(resource)[0], namespace, name) for name in names)
        return [each for each in found if each is not None]
    there = [each for kind in _kinds(resource) for each in objects.list(kind, namespace) if not _of_cron_job(each)]
    if resource.selector:
        return there
    if not promotion.images:
        return [each for each in there if each["kind"] not in (JOB.kind, CRON_JOB.kind)]
    return [each for each in there if _takes_part(each, promotion.images)]


def _takes_part(workload: JsonObject, images: Sequence[ImageReference]) -> bool:
    if workload["kind"] != JOB.kind:
        return any(runs_repository_of(workload, image) for image in images)
    running = [found for _, found in container_images(pod_spec(workload)) if found is not None]
    return any(image.runs(found) for image in images for found in running)


def _of_cron_job(workload: JsonObject) -> bool:
    return workload["kind"] == JOB.kind and controller_of(workload, CRON_JOB) is not None


def _concerning(workload: JsonObject, promotion: PromotionFacts) -> Sequence[ImageReference]:
    """Return the promoted images of which the template of a workload has any version."""
    return [image for image in promotion.images if runs_repository_of(workload, image)]


def _not_run(images: Iterable[ImageReference], workloads: Sequence[JsonObject]) -> ImageReference | None:
    return next((image for image in images if not any(runs_repository_of(each, image) for each in workloads)), None)


def _not_run_by_any(image: ImageReference, workloads: Sequence[JsonObject], namespace: str, *, alone: bool) -> Verdict:
    if alone:
        return judge_workload(workloads[0], [image])
    listed = _listed(workloads)
    words = f"none of the workloads that are looked at in namespace {namespace} runs a version of {image.repository}"
    return progressing(f"waits: {words}", details=f"waits: {words} ({listed})")


def _nothing_found(
    resource: HealthResource, namespace: str, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict:
    candidates = [each for kind in _kinds(resource) for each in objects.list(kind, namespace)]
    if resource.selector:
        words = f"no workload of namespace {namespace} has the labels of health.resource.selector"
    elif promotion.images:
        wanted = ", ".join(image.repository for image in promotion.images)
        words = f"no workload of namespace {namespace} runs a version of {wanted}"
    else:
        words = f"there is no workload in namespace {namespace}"
    remedy = "if it is elsewhere or of another name, set health.resource.namespace or health.resource.names"
    there = f"waits: {words}; there are {_listed(candidates)}; {remedy}" if candidates else ""
    return progressing(f"waits: {words}; {remedy}", details=there)


def _listed(workloads: Sequence[JsonObject]) -> str:
    shown = [quoted(title_of(each)) for each in workloads[:_SHOWN]]
    return ", ".join([*shown, *(["…"] if len(workloads) > _SHOWN else [])])


def _resource(step: PromotionStep) -> HealthResource:
    return step.spec.health.resource or HealthResource()


def _namespace(step: PromotionStep) -> str:
    return _resource(step).namespace or step.spec.environment


def _names(resource: HealthResource) -> Sequence[str]:
    return [resource.name] if resource.name else list(resource.names or ())


def _kinds(resource: HealthResource) -> Sequence[ResourceType]:
    if resource.kind is not None:
        return [WORKLOADS[resource.kind]]
    return [DEPLOYMENT] if _names(resource) else _ALL
