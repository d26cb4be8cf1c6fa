"""Look for pods that cannot pull their image, which the status of a workload does not report (pure).

A pod belongs to the promoted version if it has one of the promoted images. Pods of the version before are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kardinal.objects import POD, JsonObject, key_of
from kardinal.objects.image_reference import ImageReference
from kardinal_agent.health.fields import section
from kardinal_agent.health.templates import container_images, quoted
from kardinal_agent.health.verdict import Verdict, Watched, WatchedObjects, failed
from kardinal_agent.health.workloads import title_of

__all__ = ["judge_pods", "narrowed", "pods_of"]

_NOT_PULLED = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
"""The waiting reasons of a container whose image cannot be pulled; the kubelet alternates between the first two."""


def pods_of(workload: JsonObject) -> Watched | None:
    """Return the watch for the pods of a workload; None for a workload without a selector, such as a CronJob."""
    labels = section(workload, "spec", "selector", "matchLabels")
    if not labels or not all(isinstance(value, str) for value in labels.values()):
        return None
    return Watched(kind=POD, namespace=key_of(workload).namespace, selector=labels, optional=True)


def narrowed(pod: JsonObject) -> JsonObject:
    """Return a pod with the judged fields only."""
    metadata = pod["metadata"]
    status = pod.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp")
    spec = pod.get("spec") or {}
    lists = ("containers", "initContainers")
    return {
        "kind": POD.kind,
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {name: [{"image": each.get("image", "")} for each in spec.get(name) or ()] for name in lists},
        "status": {name: status.get(name) or [] for name in ("containerStatuses", "initContainerStatuses")},
    }


def judge_pods(
    workload: JsonObject, images: Sequence[ImageReference], objects: WatchedObjects, *, named: bool, otherwise: Verdict
) -> Verdict:
    """Return the failure if a pod of the promoted version cannot pull its image; otherwise the verdict `otherwise`."""
    if otherwise.state != "progressing":
        return otherwise
    for pod in _pods(workload, images, objects):
        for container in _containers(pod):
            waiting: Mapping[str, Any] = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") in _NOT_PULLED:
                words = "the promoted version cannot start, because an image cannot be pulled"
                title = title_of(workload)
                image = quoted(container.get("image"))
                called = title if named else f"a {workload['kind']} of namespace {key_of(workload).namespace}"
                said = f"{waiting['reason']}: {quoted(waiting.get('message')) or 'no reason given'}"
                return failed(
                    "ImagePullBackOff",
                    f"{called}: {words}",
                    details=f"{title}: pod {key_of(pod).name} cannot pull {image}: {said}",
                )
    return otherwise


def _pods(workload: JsonObject, images: Sequence[ImageReference], objects: WatchedObjects) -> Iterable[JsonObject]:
    watched = pods_of(workload)
    if watched is None:
        return
    for pod in objects.list(POD, watched.namespace):
        labels = pod["metadata"].get("labels") or {}
        running = [found for _, found in container_images(pod.get("spec") or {}) if found is not None]
        ours = any(image.runs(found) for image in images for found in running)
        if ours and dict(watched.labels).items() <= labels.items() and "deletionTimestamp" not in pod["metadata"]:
            yield pod


def _containers(pod: JsonObject) -> Iterable[JsonObject]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
