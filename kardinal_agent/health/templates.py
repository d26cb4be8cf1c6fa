"""Compare the images of a pod template with the promoted images, and quote texts of objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.objects.text import cut, printable
from kardinal_agent.health.fields import entries, text

__all__ = ["container_images", "quoted", "wrong_image"]

_SHOWN = 5
_QUOTED = 256
"""The most characters of one text that is quoted from an object."""


def container_images(pod: Mapping[str, Any]) -> Iterable[tuple[str, ImageReference | None]]:
    """Yield the image of each container as text and as a reference; None instead of an invalid reference."""
    for container in (*entries(pod, "containers"), *entries(pod, "initContainers")):
        image = text(container, "image")
        try:
            yield image, ImageReference.parse(image)
        except ImageReferenceError:
            yield image, None


def wrong_image(pod: Mapping[str, Any], images: Sequence[ImageReference]) -> str | None:
    """Return a text about the first promoted image that a pod spec does not have; None if it has all of them."""
    running = list(container_images(pod))
    for image in images:
        rivals = [(shown, found) for shown, found in running if found is not None and image.same_repository(found)]
        stale = [shown for shown, found in rivals if not image.runs(found)]
        if not rivals:
            shown = ", ".join(quoted(each) for each, _ in running[:_SHOWN]) or "no image"
        elif stale:
            shown = quoted(stale[0])
        else:
            continue
        return f"its pod template must run {image} and has {shown}"
    return None


def quoted(said: str | None) -> str:
    """Return a text of an object, cut and without control characters."""
    return cut(printable(said or ""), _QUOTED)
