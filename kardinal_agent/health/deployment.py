"""Judge a Deployment by its status: whether all of it runs the promoted images now.

Every number in a Deployment's status is about the generation the deployment controller has seen, so a status that
looks complete right after a change is the old rollout's. The order of the questions is the guarantee: first the pod
template (is it ours?), then the observed generation (is the status about it?), then the rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kardinal.api.image import ImageReference, ImageReferenceError
from kardinal_agent.health.verdict import Verdict

__all__ = ["evaluate"]

_SHOWN = 5


def evaluate(deployment: Mapping[str, Any] | None, images: Sequence[ImageReference], *, name: str) -> Verdict:
    """Return the verdict on the Deployment called `name`; `deployment` is None when it does not exist."""
    if deployment is None:
        return Verdict(False, f"waits for Deployment {name} to exist")
    waiting = (
        _wrong_image(deployment, images)
        or _unobserved(deployment)
        or _incomplete(deployment)
        or _unavailable(deployment)
    )
    if waiting:
        return Verdict(False, f"waits for Deployment {name}: {waiting}")
    running = ", ".join(map(str, images))
    return Verdict(True, f"Deployment {name} runs {running}" if running else f"Deployment {name} is available")


def _wrong_image(deployment: Mapping[str, Any], images: Sequence[ImageReference]) -> str | None:
    running = list(_container_images(deployment))
    for image in images:
        rivals = [text for text, reference in running if reference is not None and image.same_repository(reference)]
        if not rivals:
            shown = ", ".join(text for text, _ in running[:_SHOWN]) or "no image"
            return f"its pod template must run {image} and has {shown}"
        stale = [text for text in rivals if not image.runs(ImageReference.parse(text))]
        if stale:
            return f"its pod template must run {image} and has {stale[0]}"
    return None


def _container_images(deployment: Mapping[str, Any]) -> Iterable[tuple[str, ImageReference | None]]:
    pod = deployment.get("spec", {}).get("template", {}).get("spec", {})
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        text = str(container.get("image", ""))
        try:
            yield text, ImageReference.parse(text)
        except ImageReferenceError:
            yield text, None


def _unobserved(deployment: Mapping[str, Any]) -> str | None:
    generation = deployment["metadata"].get("generation", 0)
    observed = deployment.get("status", {}).get("observedGeneration", 0)
    if observed < generation:
        return f"generation {generation} is not observed yet (observed is {observed})"
    return None


def _incomplete(deployment: Mapping[str, Any]) -> str | None:
    spec, status = deployment.get("spec", {}), deployment.get("status", {})
    progressing = _condition(status, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return f"its rollout exceeded its progress deadline: {progressing.get('message') or 'no reason given'}"
    wanted = spec.get("replicas", 1)
    updated, total, available = (status.get(field, 0) for field in ("updatedReplicas", "replicas", "availableReplicas"))
    paused = ", and it is paused" if spec.get("paused") else ""
    if updated < wanted:
        return f"{updated} of {wanted} replicas are updated{paused}"
    if total > updated:
        return f"{total - updated} of its replicas still run the version before"
    if available < wanted:
        return f"{available} of {wanted} replicas are available"
    return None


def _unavailable(deployment: Mapping[str, Any]) -> str | None:
    available = _condition(deployment.get("status", {}), "Available")
    if available.get("status") != "True":
        return f"it is not Available: {available.get('message') or 'it does not say so'}"
    return None


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), {})
