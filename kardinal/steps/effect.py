"""The effect of an edit: what is committed must change what runs.

A misspelt name, an image that lives in the values of a chart, or `docker.io/x/y` where manifests say `x/y` would be
committed, change nothing, and end minutes later as a deployment that never becomes healthy. So an edit that sets images
looks at what is rendered afterwards. An image that is there already is fine; what cannot be known is said, not refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kardinal.api.image import ImageReference, ImageReferenceError
from kardinal.objects.text import cut
from kardinal.steps.edit import EditError, Tree
from kardinal.steps.images import PromotedImage
from kardinal.steps.kustomize.reading import Reading, read_kustomization, read_rendered
from kardinal.steps.rendering import Renderer

__all__ = ["Effect", "Finding", "NoEffect", "Notes", "kustomize_findings"]

_NEAREST = 3
_DIRECTORIES = 5
_LONGEST = 600


class NoEffect(EditError):
    """An edit that changes nothing of what runs; names what was looked at, and what is nearest to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A doubt about the effect of an edit on the file or directory `path`.

    `certain`: it has none. Otherwise it could not be told.
    """

    path: str
    certain: bool
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return cut(f"{self.path}: {self.message}", _LONGEST)

    def error(self) -> NoEffect:
        return NoEffect(self.path, cut(self.message, _LONGEST), remedy=self.remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of one edit.

    `findings`: what is wrong with its effect. `mirrors`: promoted repositories, and those that run in their place.
    """

    findings: Sequence[Finding] = ()
    mirrors: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Notes:
    """Effects of the edits of a promotion, as the last run of them has found them."""

    findings: list[Finding] = field(default_factory=list)
    mirrors: dict[str, str] = field(default_factory=dict)

    def clear(self) -> None:
        self.findings.clear()
        self.mirrors.clear()

    def take(self, effect: Effect, mode: Literal["fail", "warn", "off"]) -> None:
        """Note an effect; raises `NoEffect` in the mode `fail` for an edit that certainly has none."""
        self.mirrors |= effect.mirrors
        if mode == "off":
            return
        for finding in effect.findings:
            if finding.certain and mode == "fail":
                raise finding.error()
            self.findings.append(finding)


def kustomize_findings(
    tree: Tree, path: str, wanted: Sequence[tuple[PromotedImage, ImageReference]], renderer: Renderer
) -> list[Finding]:
    """Return what is wrong with the images that the kustomization in the directory `path` renders.

    `wanted`: each promoted image, with the reference that proves it: its own, or that of its mirror. A renderer runs
    only where our own reading leaves something open, and never for what it would have to fetch.
    """
    reading = read_kustomization(tree, path)
    open_questions = [image for image, proof in wanted if not _proven(reading, proof)]
    if not open_questions:
        return []
    unknown = reading.unknown
    if unknown and not reading.remote and not reading.helm:
        try:
            reading = read_rendered(renderer.kustomize(tree, path, helm=False, remote=False))
            unknown = reading.unknown
        except EditError as error:
            unknown = (*unknown, str(error))
        open_questions = [image for image, proof in wanted if not _proven(reading, proof)]
    if unknown:
        return [_unknown(path, image, unknown) for image in open_questions]
    return [_none(path, image, reading) for image in open_questions]


def _proven(reading: Reading, proof: ImageReference) -> bool:
    if reading.uncertain:
        return False
    rendered = [reference for image in reading.images if (reference := _parsed(image.text))]
    found = [*rendered, *(value.reference for value in reading.values)]
    return any(proof.runs(reference) for reference in found)


def _unknown(path: str, image: PromotedImage, reasons: Sequence[str]) -> Finding:
    return Finding(
        path=path,
        certain=False,
        message=f"whether setting {image.reference} has an effect is not known: {'; '.join(reasons[:3])}",
    )


def _none(path: str, image: PromotedImage, reading: Reading) -> Finding:
    return Finding(
        path=path,
        certain=True,
        message=f"setting {image.reference.repository} has no effect: {_looked_at(path, reading)}; "
        f"{_nearest(image.reference, reading)}",
        remedy=_remedy(image.reference, reading),
    )


def _looked_at(path: str, reading: Reading) -> str:
    shown = [root or "." for root in reading.roots[:_DIRECTORIES]] or [path]
    more = f" and {len(reading.roots) - len(shown)} more" if len(reading.roots) > len(shown) else ""
    count = len(reading.images)
    those = "not the image that comes" if count == 1 else f"none of the {count} images that come"
    return f"it is {those} from {', '.join(shown)}{more}"


def _nearest(reference: ImageReference, reading: Reading) -> str:
    same = [value for value in reading.values if value.reference.same_repository(reference)]
    if same:
        return f"{same[0].reference} stands in {same[0].place}, which kustomize does not change"
    places: dict[str, str] = {}
    for image in reading.images:
        places.setdefault(image.text, image.place)
    for value in reading.values:
        places.setdefault(str(value.reference), value.place)
    near = _closest(reference.repository, list(places))
    return f"nearest: {'; '.join(f'{text} in {places[text]}' for text in near)}" if near else "no container is rendered"


def _closest(repository: str, texts: list[str]) -> list[str]:
    def likeness(text: str) -> float:
        name = text.partition("@")[0]
        parts = [
            difflib.SequenceMatcher(None, left[:200], right[:200]).ratio()
            for left, right in ((repository, name), (repository.rpartition("/")[2], name.rpartition("/")[2]))
        ]
        return max(parts)

    return sorted(texts[:200], key=likeness, reverse=True)[:_NEAREST]


def _remedy(reference: ImageReference, reading: Reading) -> str:
    if any(value.reference.same_repository(reference) for value in reading.values):
        return "Set it there with the step helm-set-image or yaml-update"
    return "Correct the name of the image in the Bundle, or select images with update.images"


def _parsed(text: str) -> ImageReference | None:
    try:
        return ImageReference.parse(text)
    except ImageReferenceError:
        return None
