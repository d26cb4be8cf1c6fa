"""The commit of a promotion, computed from its PromotionStep and Bundle: the edit, the message, the trailers.

The edit is a function from a tree to changes, so it can be planned, landed, and landed again on a branch that has
moved. No state is kept between attempts: the same PromotionStep gives the same edit and the same message.

After a crash, a promotion recognises its own commit by the trailers. The uid of the Bundle is one of them, because a
name is not enough: a Bundle that was deleted and created again under the same name would take the commits of the first
one for its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kardinal.edits.images import ImageChange
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.image import bundle_title
from kardinal.promotion.api.pipeline import Identity, MessageTemplate
from kardinal.promotion.steps.branch_layout import BranchState, branch_changes, files_of, read_state, with_artifacts
from kardinal.promotion.steps.config_history import config_trailers
from kardinal.promotion.steps.config_replay import commits_after
from kardinal.promotion.steps.config_source import config_of
from kardinal.promotion.steps.declaration import EditContext, FileEdit, PlannedStep, RenderSource, Surroundings
from kardinal.promotion.steps.effect import Notes
from kardinal.promotion.steps.images import images_of
from kardinal.promotion.steps.message_template import rendered_message
from kardinal.tree.commit_message import KARDINAL, CommitMessage
from kardinal.tree.edit import Changes, Edit, EditError, Tree, split_path
from kardinal.tree.git_names import TRAILER_ATTEMPT, TRAILER_BUNDLE, TRAILER_ENVIRONMENT, TRAILER_STEP, TRAILER_UID
from kardinal.tree.overlay import Overlay

__all__ = ["commit_message", "committer_of", "edit_of", "image_changes_of", "trailers_of"]


def trailers_of(step: PromotionStep, bundle: Bundle) -> dict[str, str]:
    """Return the trailers that identify the commit of this promotion."""
    return {
        TRAILER_BUNDLE: bundle.metadata.name,
        TRAILER_ENVIRONMENT: step.spec.environment,
        TRAILER_STEP: f"{step.metadata.namespace}/{step.metadata.name}",
        TRAILER_UID: bundle.metadata.uid,
        **({TRAILER_ATTEMPT: str(step.spec.attempt)} if step.spec.attempt else {}),
        **config_trailers(step, bundle),
    }


def commit_message(step: PromotionStep, bundle: Bundle) -> CommitMessage:
    """Return the message of the promotion's commit."""
    git = step.spec.git
    template = git.message or MessageTemplate()
    subject, body = rendered_message(template, step, bundle)
    return CommitMessage(
        subject=subject or _default_subject(step, bundle),
        body=body if template.body is not None else "\n".join(_artifact_lines(bundle)),
        trailers=trailers_of(step, bundle),
        author=_person(git.author),
        committer=committer_of(step),
    )


def committer_of(step: PromotionStep) -> str:
    """Return the committer of this promotion, as `Name <address>`."""
    return _person(step.spec.git.committer)


def _default_subject(step: PromotionStep, bundle: Bundle) -> str:
    words = ("Promote", step.spec.pipeline, bundle_title(bundle.spec.artifacts), "to", step.spec.environment)
    return " ".join(word for word in words if word)


def _person(identity: Identity | None) -> str:
    return f"{identity.name.strip() or identity.email} <{identity.email}>" if identity else KARDINAL


def _artifact_lines(bundle: Bundle) -> list[str]:
    commit = bundle.spec.artifacts.git_commit
    lines = [str(image.reference) for image in images_of(bundle)]
    lines += [f"{chart.repository} {chart.name} {chart.version}" for chart in bundle.spec.artifacts.charts]
    return [*lines, f"{commit.repository} {commit.sha}"] if commit is not None else lines


def edit_of(
    step: PromotionStep, bundle: Bundle, steps: Iterable[PlannedStep], surroundings: Surroundings | None = None
) -> Edit:
    """Return the edits of `steps` as one edit. Each edit sees the changes of the edits before it.

    An edit that changes a file outside the environment's directory raises `EditError`. An edit without an effect raises
    one as well, unless `update.verifyEffect` allows it.
    """
    sequence = tuple(steps)
    around = surroundings or Surroundings()

    def edit(tree: Tree) -> Changes:
        around.notes.clear()
        if step.spec.branch is not None:
            return _rendered(tree, step, bundle, sequence, around)
        overlay = Overlay(tree)
        for applied in _applied(overlay, _context(tree, step, bundle, around), sequence):
            _judge(applied, bundle, around.notes)
        return overlay.changes

    return edit


def image_changes_of(
    tree: Tree,
    step: PromotionStep,
    bundle: Bundle,
    steps: Iterable[PlannedStep],
    surroundings: Surroundings | None = None,
) -> dict[str, Sequence[ImageChange]]:
    """Return the image changes that the edits of `steps` make, by file. Each step reads the files that it writes."""
    around = surroundings or Surroundings()
    found = dict[str, Sequence[ImageChange]]()
    sequence = tuple(steps)
    context = _context(tree, step, bundle, around)
    before = Overlay(tree)
    if step.spec.branch is not None:
        # The environment's present state is the source with the artifacts that were promoted to it before.
        tree, state = _source(step, around).beside(tree), read_state(tree)
        context = replace(context, state=state)
        before = Overlay(tree)
        for _ in _applied(before, replace(context, bundle=with_artifacts(bundle, state, own=False)), sequence):
            pass
        context = replace(context, bundle=with_artifacts(bundle, state))
    for applied in _applied(Overlay(tree), context, sequence):
        compare = applied.edit.image_changes
        found |= {path: compare(before.read(path), content) for path, content in applied.changes.items()}
    return {path: changes for path, changes in found.items() if changes}


@dataclass(frozen=True, slots=True)
class _Applied:
    """An edit that was applied. The tree in `context` has its changes, the tree in `before` does not."""

    planned: PlannedStep
    edit: FileEdit
    context: EditContext
    before: Tree
    changes: Changes


def _judge(applied: _Applied, bundle: Bundle, notes: Notes) -> None:
    """Check the effect of an edit for the artifacts of `bundle`, as `update.verifyEffect` says; raises `NoEffect`."""
    if applied.edit.verify is not None:
        context = replace(applied.context, bundle=bundle, before=applied.before)
        effect = applied.edit.verify(context, applied.planned.config)
        notes.take(effect, applied.context.step.spec.update.verify_effect)


def _rendered(
    tree: Tree, step: PromotionStep, bundle: Bundle, steps: Sequence[PlannedStep], around: Surroundings
) -> Changes:
    """Return the changes that turn `tree`, an environment's own branch, into the output of the edits on the source."""
    source = _source(step, around)
    path = step.spec.path
    state = read_state(tree)
    whole = with_artifacts(bundle, state)
    overlay = Overlay(source.beside(tree))
    rendered: set[str] = set()
    context = replace(_context(tree, step, whole, around), state=state)
    for applied in _applied(overlay, context, steps):
        _judge(applied, bundle, around.notes)
        if applied.planned.declaration.renders:
            rendered |= {name for name, content in applied.changes.items() if content is not None}
    output = overlay.within(path)
    below = len(split_path(path))
    renders = any(planned.declaration.renders for planned in steps)
    files = ["/".join(split_path(name)[below:]) for name in sorted(rendered)] if renders else files_of(output)
    artifacts = whole.spec.artifacts
    commits = commits_after(step, bundle, config_of(steps), state.config)
    record = BranchState(images=artifacts.images, charts=artifacts.charts, config=commits, source=source.commit)
    return branch_changes(tree, output, files, record)


def _source(step: PromotionStep, around: Surroundings) -> RenderSource:
    if around.source is None:
        raise EditError(step.spec.path, f"branch {step.spec.branch} is not rendered here")
    return around.source


def _context(tree: Tree, step: PromotionStep, bundle: Bundle, around: Surroundings) -> EditContext:
    return EditContext(
        step=step,
        bundle=bundle,
        tree=tree,
        inputs={name: beside(tree) for name, beside in around.inputs.items()},
        renderer=around.renderer,
        differences=around.differences,
    )


def _applied(overlay: Overlay, context: EditContext, steps: Iterable[PlannedStep]) -> Iterator[_Applied]:
    """Apply each edit on top of the edits before it, and yield it."""
    context = replace(context, tree=overlay)
    for planned in steps:
        edit = planned.declaration.edit
        if edit is None:
            continue
        changes = edit.plan(context, planned.config)
        before = overlay.snapshot()
        _check_inside(changes, context.step.spec.path, planned.name)
        overlay.apply(changes)
        yield _Applied(planned, edit, context, before, changes)


def _check_inside(changes: Changes, directory: str, name: str) -> None:
    inside = split_path(directory)
    for path in changes:
        if split_path(path)[: len(inside)] != inside:
            raise EditError(path, f"step {name} may not change it: it is outside {directory}")
