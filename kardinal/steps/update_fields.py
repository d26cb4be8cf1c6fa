"""Checking that the fields of `update` and the steps of an environment fit each other.

A field that no step reads would be ignored, and a step that has to read one would fail at the first promotion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kardinal.api.pipeline import StepSpec, Update
from kardinal.steps.document_path import PathSyntaxError, parse_path
from kardinal.steps.helm_set_image import HELM_SET_IMAGE
from kardinal.steps.replace import REPLACE

__all__ = ["update_problems"]


def update_problems(update: Update, steps: Sequence[StepSpec]) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for everything wrong; the field is relative to the environment."""
    names = [step.uses for step in steps]
    if update.helm is not None and HELM_SET_IMAGE.name not in names:
        yield "update.helm", f"no step reads it: use strategy: helm, or {HELM_SET_IMAGE.name} among the steps"
    if update.replace is not None and REPLACE.name not in names:
        yield "update.replace", f"no step reads it: use strategy: replace, or {REPLACE.name} among the steps"
    for index, value in enumerate(update.helm.values if update.helm else ()):
        try:
            parse_path(value.path)
        except PathSyntaxError as error:
            yield f"update.helm.values[{index}].path", error.message
    for index, step in enumerate(steps):
        if step.uses == REPLACE.name and update.replace is None and not (step.config or {}).get("files"):
            yield "update.replace", f"{REPLACE.name} (step {index + 1}) needs files: list them in update.replace.files"
