"""The effect of an edit: check that a commit changes the images that run.

Some mistakes can be committed without any effect: a misspelt name, an image that is set in the values of a chart, or
`docker.io/x/y` where manifests say `x/y`. Minutes later they would end as a deployment that never becomes healthy. So
after an edit that sets images, the rendered manifests are examined. An image that was there before is fine. If the
effect cannot be determined, this is noted, but the edit is not refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kardinal.edits.images import PromotedImage
from kardinal.edits.kustomize.reading import Reading, read_kustomization, read_rendered
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.objects.text import cut
from kardinal.rendering.renderer import Renderer
from kardinal.tree.edit import EditError, Tree

__all__ = ["Effect", "EffectFinding", "NoEffect", "Notes", "kustomize_findings"]

_NEAREST = 3
_DIRECTORIES = 5
_LONGEST = 600


class NoEffect(EditError):
    """An edit without an effect on the running images; the message names the examined files and the nearest image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFinding:
    """A doubt about the effect of an edit on the file or directory `path`.

    `certain`: the edit has no effect. Otherwise its effect could not be determined.
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

    `findings`: doubts about it. `mirrors`: promoted repositories, each with the repository that runs in its place.
    """

    findings: Sequence[EffectFinding] = ()
    mirrors: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Notes:
    """The effects of the edits of a promotion, as its last run has found them."""

    findings: list[EffectFinding] = field(default_factory=list)
    mirrors: dict[str, str] = field(default_factory=dict)

    def clear(self) -> None:
        self.findings.clear()
        self.mirrors.clear()

    def take(self, effect: Effect, mode: Literal["fail", "warn", "off"]) -> None:
        """Note an effect; raises `NoEffect` if it certainly has none and `mode` is `fail`."""
        self.mirrors |= effect.mirrors
        if mode == "off":
            return
        for finding in effect.findings:
            if finding.certain and mode == "fail":
                raise finding.error()
            self.findings.append(finding)


def kustomize_findings(
    tree: Tree, path: str, wanted: Sequence[tuple[PromotedImage, ImageReference]], renderer: Renderer
) -> list[EffectFinding]:
    """Return the findings about the images that the kustomization in the directory `path` renders.

    `wanted`: each promoted image, with the reference that proves it: its own, or that of its mirror. The renderer runs
    only if our own reading of the files is inconclusive, and never if it would have to fetch something.
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


def _unknown(path: str, image: PromotedImage, reasons: Sequence[str]) -> EffectFinding:
    return EffectFinding(
        path=path,
        certain=False,
        message=f"whether setting {image.reference} has an effect is not known: {'; '.join(reasons[:3])}",
    )


def _none(path: str, image: PromotedImage, reading: Reading) -> EffectFinding:
    return EffectFinding(
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
