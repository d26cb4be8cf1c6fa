"""What this version executes; everything else that the resources can say is refused by name.

The custom resources describe more than is built. An ignored adapter, delegate or strategy would end in a Bundle that is
Verified without having been verified, so every choice is looked up here: the table names what is executed, and a value
that is not in it is a problem with its field path. A value added to a model and to nothing else is therefore refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kardinal.api import Bundle, Model, Pipeline
from kardinal.api.bundle import Artifacts, BundleSpec
from kardinal.api.image import ImageReferenceError, promoted_image
from kardinal.api.pipeline import Delivery, Environment, Git, Health, PipelineSpec, Update
from kardinal.steps.sequence import default_sequence, sequence_problems
from kardinal.translation.errors import Problem
from kardinal.translation.repository import Features, repository_problems

__all__ = ["EXECUTED", "bundle_problems", "pipeline_problems"]

NOT_AVAILABLE = "NotAvailable"

EXECUTED: Mapping[tuple[type[Model], str], tuple[str | None, ...]] = {
    (PipelineSpec, "promotion_policy"): ("supersede",),
    (Git, "layout"): ("directory",),
    (Git, "provider"): ("git", "local"),
    (Update, "strategy"): ("kustomize",),
    (Health, "type"): (None, "resource"),
    (Health, "argocd"): (None,),
    (Health, "flux"): (None,),
    (Health, "cluster"): (None,),
    (Delivery, "delegate"): ("none",),
    (Environment, "approval"): ("auto", "pr-review"),
    (Environment, "on_health_failure"): ("none",),
    (BundleSpec, "type"): ("image",),
    (Artifacts, "git_commit"): (None,),
}
"""The values of each choice that this version acts on; None stands for leaving the field out."""


def pipeline_problems(pipeline: Pipeline, features: Features) -> tuple[Problem, ...]:
    """Every choice of a Pipeline that this version does not execute."""
    subject = f"Pipeline/{pipeline.metadata.name}"
    problems = [*_unexecuted(pipeline.spec, subject=subject)]
    problems += repository_problems(pipeline.spec.git, subject=subject, features=features)
    for index, environment in enumerate(pipeline.spec.environments):
        problems += _environment(environment, pipeline.spec.git, subject=subject, field=f"spec.environments[{index}]")
    return tuple(problems)


def bundle_problems(bundle: Bundle) -> tuple[Problem, ...]:
    """Every choice of a Bundle that this version does not execute, and images that name nothing to promote."""
    subject = f"Bundle/{bundle.metadata.name}"
    problems = list(_unexecuted(bundle.spec, subject=subject))
    images = bundle.spec.artifacts.images
    if bundle.spec.type == "image" and not images:
        problems.append(
            Problem(subject, "spec.artifacts.images", "NoArtifacts", "there is nothing to promote", "name an image")
        )
    for index, image in enumerate(images):
        try:
            promoted_image(image)
        except ImageReferenceError as error:
            problems.append(Problem(subject, f"spec.artifacts.images[{index}]", "InvalidImage", str(error)))
    return tuple(problems)


def _unexecuted(model: Model, *, subject: str, field: str = "spec") -> Iterator[Problem]:
    """Walk a model and everything in it; yield the choices that the table does not have."""
    for name, definition in type(model).model_fields.items():
        value = getattr(model, name)
        path = f"{field}.{definition.alias or name}"
        executed = EXECUTED.get((type(model), name))
        if executed is not None and value not in executed:
            yield _not_available(subject, path, value, executed)
            continue
        for inner_path, inner in _models(value, path):
            yield from _unexecuted(inner, subject=subject, field=inner_path)


def _models(value: Any, path: str) -> Iterator[tuple[str, Model]]:
    if isinstance(value, Model):
        yield path, value
    elif isinstance(value, tuple):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(value) if isinstance(item, Model))


def _not_available(subject: str, path: str, value: object, executed: tuple[str | None, ...]) -> Problem:
    named = [choice for choice in executed if choice is not None]
    shown = f"{value!r} " if isinstance(value, str) and named else ""
    remedy = f"use {' or '.join(named)}" if named else "leave it out"
    return Problem(subject, path, NOT_AVAILABLE, f"{shown}is not available in this version", remedy)


def _environment(environment: Environment, git: Git, *, subject: str, field: str) -> Iterator[Problem]:
    steps = environment.steps
    if steps is None:
        if environment.update.strategy not in EXECUTED[Update, "strategy"]:
            return
        steps = default_sequence(approval=environment.approval, pr=environment.pr, strategy=environment.update.strategy)
    for problem in sequence_problems(steps, approval=environment.approval, pr=environment.pr, provider=git.provider):
        yield Problem(subject, f"{field}.{problem.field}", "InvalidSequence", problem.message)
