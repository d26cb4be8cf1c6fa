"""Judge a Deployment by its status: whether all of it runs the promoted images now.

Every number in a Deployment's status is about the generation the deployment controller has seen, so a status that
looks complete right after a change is the old rollout's. The order of the questions is the guarantee: first the pod
template (is it ours?), then the observed generation (is the status about it?), then the rollout.

Each answer comes in two forms: fixed words, which anybody may read, and what the object says, for those who may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.api.image import ImageReference, ImageReferenceError
from kardinal.objects.text import cut, printable
from kardinal_agent.health.verdict import Verdict

__all__ = ["evaluate"]

_SHOWN = 5
_QUOTED = 256
"""Characters of one text that are quoted from an object."""


@dataclass(frozen=True, slots=True)
class _Shortfall:
    """The reason why a Deployment is not healthy: in fixed words, and with what this one says."""

    words: str
    details: str


def evaluate(
    deployment: Mapping[str, Any] | None, images: Sequence[ImageReference], *, name: str, quote: bool
) -> Verdict:
    """Return the verdict on the Deployment called `name`; `deployment` is None when it does not exist.

    `quote`: whether the message may hold what the object says, rather than fixed words.
    """
    if deployment is None:
        return Verdict(False, f"waits for Deployment {name} to exist")
    shortfall = (
        _wrong_image(deployment, images)
        or _unobserved(deployment)
        or _incomplete(deployment)
        or _unavailable(deployment)
    )
    if shortfall is not None:
        return Verdict(False, f"waits for Deployment {name}: {shortfall.details if quote else shortfall.words}")
    running = ", ".join(map(str, images))
    return Verdict(True, f"Deployment {name} runs {running}" if running else f"Deployment {name} is available")


def _wrong_image(deployment: Mapping[str, Any], images: Sequence[ImageReference]) -> _Shortfall | None:
    running = list(_container_images(deployment))
    for image in images:
        rivals = [text for text, reference in running if reference is not None and image.same_repository(reference)]
        stale = [text for text in rivals if not image.runs(ImageReference.parse(text))]
        if not rivals:
            shown = ", ".join(_quoted(text) for text, _ in running[:_SHOWN]) or "no image"
        elif stale:
            shown = _quoted(stale[0])
        else:
            continue
        return _Shortfall(
            "it does not run the promoted image yet", f"its pod template must run {image} and has {shown}"
        )
    return None


def _container_images(deployment: Mapping[str, Any]) -> Iterable[tuple[str, ImageReference | None]]:
    pod = deployment.get("spec", {}).get("template", {}).get("spec", {})
    for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
        text = str(container.get("image", ""))
        try:
            yield text, ImageReference.parse(text)
        except ImageReferenceError:
            yield text, None


def _unobserved(deployment: Mapping[str, Any]) -> _Shortfall | None:
    generation = deployment["metadata"].get("generation", 0)
    observed = deployment.get("status", {}).get("observedGeneration", 0)
    if observed < generation:
        return _Shortfall(
            "its latest generation is not observed yet",
            f"generation {generation} is not observed yet (observed is {observed})",
        )
    return None


def _incomplete(deployment: Mapping[str, Any]) -> _Shortfall | None:
    spec, status = deployment.get("spec", {}), deployment.get("status", {})
    progressing = _condition(status, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        words = "its rollout exceeded its progress deadline"
        return _Shortfall(words, f"{words}: {_quoted(progressing.get('message')) or 'no reason given'}")
    wanted = spec.get("replicas", 1)
    updated, total, available = (status.get(field, 0) for field in ("updatedReplicas", "replicas", "availableReplicas"))
    paused = ", and it is paused" if spec.get("paused") else ""
    if updated < wanted:
        return _Shortfall("not all of its replicas are updated", f"{updated} of {wanted} replicas are updated{paused}")
    if total > updated:
        return _Shortfall(
            "replicas of the version before still run",
            f"{total - updated} of its replicas still run the version before",
        )
    if available < wanted:
        return _Shortfall("not all of its replicas are available", f"{available} of {wanted} replicas are available")
    return None


def _unavailable(deployment: Mapping[str, Any]) -> _Shortfall | None:
    available = _condition(deployment.get("status", {}), "Available")
    if available.get("status") != "True":
        words = "it is not Available"
        return _Shortfall(words, f"{words}: {_quoted(available.get('message')) or 'it does not say so'}")
    return None


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), {})


def _quoted(text: str | None) -> str:
    """Return what an object says, short and without characters that change how the rest is shown."""
    return cut(printable(text or ""), _QUOTED)
