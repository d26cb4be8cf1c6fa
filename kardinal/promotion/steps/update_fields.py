"""Check that the fields of `update` and the steps of an environment fit each other.

A field that no step reads would be ignored, and a step without its field would fail at the first promotion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kardinal.edits.helm.helm_values import PINS_DIGEST
from kardinal.edits.yaml.document_path import PathSyntaxError, parse_path
from kardinal.promotion.api.pipeline import StepSpec, Update
from kardinal.promotion.steps.helm_set_image import HELM_SET_IMAGE
from kardinal.promotion.steps.images import selection_problem
from kardinal.promotion.steps.replace import REPLACE
from kardinal.promotion.steps.sequence import StepTable

__all__ = ["update_problems"]


def update_problems(update: Update, steps: Sequence[StepSpec], table: StepTable) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each problem; the field is relative to the environment."""
    names = [step.uses for step in steps]
    if update.helm is not None and HELM_SET_IMAGE.name not in names:
        yield "update.helm", f"no step reads it: use strategy: helm, or {HELM_SET_IMAGE.name} among the steps"
    if update.replace is not None and REPLACE.name not in names:
        yield "update.replace", f"no step reads it: use strategy: replace, or {REPLACE.name} among the steps"
    for index, entry in enumerate(update.images):
        if problem := selection_problem(entry):
            yield f"update.images[{index}]", problem
    for index, value in enumerate(update.helm.values if update.helm else ()):
        try:
            parse_path(value.path)
        except PathSyntaxError as error:
            yield f"update.helm.values[{index}].path", error.message
    for index, step in enumerate(steps):
        if step.uses == REPLACE.name and update.replace is None and not (step.config or {}).get("files"):
            yield "update.replace", f"{REPLACE.name} (step {index + 1}) needs files: list them in update.replace.files"
    if update.pin_digest:
        yield from _pin_problems(update, steps, table)


def _pin_problems(update: Update, steps: Sequence[StepSpec], table: StepTable) -> Iterator[tuple[str, str]]:
    """Yield the problems of `update.pinDigest`: a digest needs a place to be written, as a tag alone is not enough."""
    able = [name for name, declaration in table.items() if declaration.writes_digests]
    if not any(step.uses in able for step in steps):
        yield "update.pinDigest", f"no step writes digests of images: use one of {', '.join(able)}, or leave it out"
    own = any(step.uses == HELM_SET_IMAGE.name and (step.config or {}).get("values") for step in steps)
    values = update.helm.values if update.helm and not own else ()
    if values and not any(value.value in PINS_DIGEST for value in values):
        yield (
            "update.helm.values",
            "no path takes the digest that update.pinDigest asks for: list one with value: digest or value: reference",
        )
