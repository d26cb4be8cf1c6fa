"""Compare the images of a pod template with those that are promoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kardinal.api.image import ImageReference, ImageReferenceError
from kardinal_agent.health.fields import entries, text
from kardinal_agent.health.workloads import quoted

__all__ = ["wrong_image"]

_SHOWN = 5


def wrong_image(pod: Mapping[str, Any], images: Sequence[ImageReference]) -> str | None:
    """Return which image the spec of pods should run and what it has; None where it runs all that are promoted."""
    running = [text(each, "image") for name in ("containers", "initContainers") for each in entries(pod, name)]
    for image in images:
        rivals = [each for each in map(_reference, running) if each is not None and image.same_repository(each)]
        stale = [each for each in rivals if not image.runs(each)]
        if not rivals:
            shown = ", ".join(quoted(each) for each in running[:_SHOWN]) or "no image"
        elif stale:
            shown = str(stale[0])
        else:
            continue
        return f"its pod template must run {image} and has {shown}"
    return None


def _reference(image: str) -> ImageReference | None:
    try:
        return ImageReference.parse(image)
    except ImageReferenceError:
        return None
