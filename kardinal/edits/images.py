"""The images that an edit sets, and the changes it makes, as plain values that edits and texts share."""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.objects.image_reference import ImageReference

__all__ = [
    "ImageChange",
    "PromotedImage",
]


@dataclass(frozen=True, slots=True)
class PromotedImage:
    """An image that an edit sets: its name in the Bundle, which may be empty, and its reference."""

    name: str
    reference: ImageReference


@dataclass(frozen=True, slots=True)
class ImageChange:
    """The change of the image in one entry of a file. `before` is None if the edit added the entry."""

    name: str
    before: ImageReference | None
    after: ImageReference
