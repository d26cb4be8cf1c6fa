"""The commit of a promotion, as pure values of its PromotionStep and Bundle: the edit, the message, the trailers.

The edit is a function of whatever tree it meets, so that it can be planned, landed, and landed again on a branch that
has moved. Nothing of it is kept between attempts: the same PromotionStep gives the same edit and the same message.

The trailers are how a promotion recognises its own commit after a crash. Names alone would not do: a Bundle that was
deleted and made again under its name would take the commits of the first for its own, so the Bundle's uid is among
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kardinal.api import Bundle, PromotionStep, names
from kardinal.api.image import bundle_version
from kardinal.steps.commit_message import CommitMessage
from kardinal.steps.declaration import PlannedStep
from kardinal.steps.edit import Edit, Tree
from kardinal.steps.images import images_of

__all__ = ["commit_message", "edit_of", "trailers_of"]


def trailers_of(step: PromotionStep, bundle: Bundle) -> dict[str, str]:
    """Return the trailers that mark a commit as the one of this promotion."""
    return {
        names.TRAILER_BUNDLE: bundle.metadata.name,
        names.TRAILER_ENVIRONMENT: step.spec.environment,
        names.TRAILER_STEP: f"{step.metadata.namespace}/{step.metadata.name}",
        names.TRAILER_UID: bundle.metadata.uid,
    }


def commit_message(step: PromotionStep, bundle: Bundle) -> CommitMessage:
    """Return the message of the promotion's commit."""
    version = bundle_version(bundle.spec.artifacts)
    words = ("Promote", step.spec.pipeline, version, "to", step.spec.environment)
    return CommitMessage(
        subject=" ".join(word for word in words if word),
        body="\n".join(str(image.reference) for image in images_of(bundle)),
        trailers=trailers_of(step, bundle),
    )


def edit_of(step: PromotionStep, bundle: Bundle, steps: Iterable[PlannedStep]) -> Edit:
    """Return the edits of `steps` as one; steps without an edit do not count."""
    edits = [
        planned.declaration.edit.make(step, bundle, planned.config)
        for planned in steps
        if planned.declaration.edit is not None
    ]

    def edit(tree: Tree) -> Mapping[str, bytes]:
        return {path: content for one in edits for path, content in one(tree).items()}

    return edit
