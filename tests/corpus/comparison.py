"""Comparing our edit of a kustomization with `kustomize edit set image`."""

from __future__ import annotations

import difflib
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kardinal.edits.kustomize.kustomization import FILE_NAMES
from kardinal.edits.kustomize.manifests import Volume, documents, mapping, sequence
from kardinal.edits.kustomize.reading import read_kustomization, read_rendered
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.commit_plan import edit_of
from kardinal.promotion.steps.declaration import Surroundings
from kardinal.promotion.steps.effect import NoEffect
from kardinal.promotion.steps.sequence import planned
from kardinal.rendering.programs import ProgramRenderer
from kardinal.tree.edit import EditError, Tree
from kardinal.tree.overlay import Overlay
from tests.support.objects import API_VERSION

__all__ = ["Comparison", "Figures", "compare"]

TAG = "9.9.9-corpus"
Outcome = Literal[
    "same",
    "not rendered",
    "no image",
    "no effect",
    "not edited by kustomize",
    "other images",
    "other result",
    "longer",
    "refused",
]
_WRONG = ("other images", "other result", "longer", "refused")


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one kustomization came out, and how many lines the two edits touch."""

    place: str
    outcome: Outcome
    ours: int = 0
    theirs: int = 0
    known: bool = True
    """Whether our own reading left nothing open."""


@dataclass(slots=True)
class Figures:
    """All comparisons of a run."""

    comparisons: list[Comparison] = field(default_factory=list)

    def count(self, *outcomes: Outcome) -> int:
        return sum(one.outcome in outcomes for one in self.comparisons)

    @property
    def wrong(self) -> list[Comparison]:
        return [one for one in self.comparisons if one.outcome in _WRONG]

    def __str__(self) -> str:
        same = [one for one in self.comparisons if one.outcome == "same"]
        return (
            f"{len(self.comparisons)} kustomizations: {len(same)} with an image rendered the same, "
            f"{sum(one.known for one in same)} of them read without a renderer; {self.count('no image')} without an "
            f"image, {self.count('not rendered')} that kustomize does not render, "
            f"{self.count('no effect')} in which neither edit has an effect; lines touched: "
            f"{sum(one.ours for one in same)} by ours, {sum(one.theirs for one in same)} by kustomize"
        )


def compare(tree: Tree, directory: str, *, place: str, kustomize: Path, renderer: ProgramRenderer) -> Comparison:
    """Compare on the kustomization in `directory`; runs on a thread."""
    try:
        rendered = read_rendered(renderer.kustomize(tree, directory, helm=False, remote=False))
    except EditError:
        return Comparison(place, "not rendered")
    reading = read_kustomization(tree, directory)
    known = not reading.unknown
    if known and sorted(image.text for image in reading.images) != sorted(image.text for image in rendered.images):
        return Comparison(place, "other images")
    repository = next(_repositories(image.before for image in reading.images), None)
    if repository is None:
        return Comparison(place, "no image")
    name = next(name for name in FILE_NAMES if tree.size(f"{directory}/{name}") is not None)
    path = f"{directory}/{name}"
    before = tree.read(path) or b""
    theirs = _edited_by_kustomize(before, repository, kustomize=kustomize)
    if theirs is None:
        return Comparison(place, "not edited by kustomize")
    try:
        ours = _edited(tree, directory, repository, renderer)[path] or b""
    except NoEffect:
        without = TAG.encode() not in _rendered(tree, {path: theirs}, directory, renderer)
        return Comparison(place, "no effect" if without else "refused")
    results = [_rendered(tree, {path: content}, directory, renderer) for content in (ours, theirs)]
    lines = _touched(before, ours), _touched(before, theirs)
    if results[0] != results[1]:
        return Comparison(place, "other result", *lines, known)
    return Comparison(place, "longer" if lines[0] > lines[1] else "same", *lines, known)


def _repositories(texts: Iterable[str]) -> Iterator[str]:
    for text in sorted(texts):
        try:
            yield ImageReference.parse(text).repository
        except ImageReferenceError:
            continue


def _edited(tree: Tree, directory: str, repository: str, renderer: ProgramRenderer) -> Mapping[str, bytes | None]:
    """Return what the step kustomize-set-image makes of it, its check for an effect included."""
    bundle = {"type": "image", "artifacts": {"images": [{"reference": f"{repository}:{TAG}"}]}}
    spec = {"pipeline": "p", "environment": "e", "bundleRef": "b", "path": directory, "git": {"url": "https://h/o/r"}}
    metadata = {"name": "x", "namespace": "n", "uid": "u"}
    head = {"apiVersion": API_VERSION, "metadata": metadata}
    edit = edit_of(
        PromotionStep.model_validate(head | {"kind": "PromotionStep", "spec": spec}),
        Bundle.model_validate(head | {"kind": "Bundle", "spec": bundle}),
        planned([StepSpec(uses="kustomize-set-image")], BUILTIN_STEPS),
        Surroundings(renderer=renderer),
    )
    return edit(tree)


def _edited_by_kustomize(content: bytes, repository: str, *, kustomize: Path) -> bytes | None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "kustomization.yaml")
        path.write_bytes(content)
        kept = "=*" if _has_new_name(content, repository) else ""
        command = [str(kustomize), "edit", "set", "image", f"{repository}{kept}:{TAG}"]
        done = subprocess.run(command, cwd=directory, capture_output=True, check=False)
        return path.read_bytes() if done.returncode == 0 else None


def _has_new_name(content: bytes, repository: str) -> bool:
    entries = [mapping(item) for body in documents(content, Volume()) for item in sequence(mapping(body).get("images"))]
    return any(entry.get("name") == repository and entry.get("newName") for entry in entries)


def _rendered(tree: Tree, changes: dict[str, bytes | None], directory: str, renderer: ProgramRenderer) -> bytes:
    return renderer.kustomize(Overlay(tree, changes=changes), directory, helm=False, remote=False)


def _touched(before: bytes, after: bytes) -> int:
    lines = difflib.ndiff(before.decode().splitlines(), after.decode().splitlines())
    return sum(line[0] in "+-" for line in lines)
