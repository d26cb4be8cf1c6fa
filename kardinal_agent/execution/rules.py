"""Derive the projection of a promotion from its facts (pure).

`Plans` returns the steps of a PromotionStep, or the reason why it cannot be executed. Translation refuses the same
problems before it creates a PromotionStep, so this concerns those that are created by hand. No choice is ignored,
because then an environment would be Verified without it. No default is filled in: translation resolves all of them, so
that the PromotionStep states everything that an agent does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.artifacts import artifact_problems
from kardinal.promotion.api.bundle import BundleSpec
from kardinal.promotion.api.health_fields import health_problems, unstated
from kardinal.promotion.api.promotion_step import PromotionStepSpec, PromotionStepStatus
from kardinal.promotion.api.supported import unsupported_choices
from kardinal.promotion.steps.config_merge import several_merges
from kardinal.promotion.steps.declaration import PlannedStep, StepDeclaration
from kardinal.promotion.steps.pins import undetermined
from kardinal.promotion.steps.registry import Registry
from kardinal.promotion.steps.sequence import planned, sequence_problems, without_taker
from kardinal.promotion.steps.sequence_values import SequenceValues
from kardinal_agent.execution.observe import Facts
from kardinal_agent.health import undetected

__all__ = ["PlannedSequence", "Plans", "Projection", "current_index", "project"]

_MOST = 256
"""The most plans that are kept; the least recently used one is dropped."""


@dataclass(frozen=True, slots=True)
class PlannedSequence:
    """The steps of a promotion, or the reason why it cannot be executed."""

    sequence: Sequence[PlannedStep] = ()
    """The steps of the spec; empty if they cannot be executed."""
    refusal: str | None = None
    """The first problem of the spec or of the Bundle, with its field."""

    @property
    def declarations(self) -> list[StepDeclaration]:
        return [step.declaration for step in self.sequence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The result of all rules."""

    sequence: Sequence[StepDeclaration]
    """The declarations of the steps; empty if they cannot be executed."""
    refusal: str | None = None
    """The reason why the PromotionStep cannot be executed, with the field."""
    mine: bool = True
    """Whether this agent serves the shard of the PromotionStep, and it is not being deleted."""
    superseded: bool = False
    """Whether another Bundle has superseded this one in the environment, or the Bundle was stopped there."""
    successor: str = ""
    """The name of the Bundle that superseded this one; empty if it is not known."""
    stopped: str = ""
    """The reason why the Bundle was stopped, in words."""
    admitted: bool = True
    """Whether the Bundle may write to the environment."""
    queued: str = ""
    """The reason why the Bundle is not admitted, in words."""
    undetermined: str | None = None
    """The value that the promotion would write and that is not known yet, such as a digest, in words."""
    undetected: bool = False
    """Whether the object that proves the environment is still to be found."""
    skip: str | None = None
    """The reason why the current step is left out."""
    undecided: str | None = None
    """The error of the expression that decides whether the current step is left out."""


class Plans:
    """The plans of promotions, made once for each spec of a PromotionStep and its Bundle.

    Both are read again at every run, and a Bundle never changes its spec.
    """

    def __init__(self, registry: Registry, *, unprovable: Callable[[PromotionStep], str | None]) -> None:
        """`unprovable` returns the reason why no proof of a PromotionStep is possible; None if one is."""
        self._registry = registry
        self._unprovable = unprovable
        self._known: dict[str, tuple[PromotionStepSpec, BundleSpec, PlannedSequence]] = {}

    def of(self, step: PromotionStep, bundle: Bundle) -> PlannedSequence:
        """Return the plan of a PromotionStep."""
        plan = self._written(step, bundle)
        if plan.refusal is None and (refusal := self._unprovable(step)) is not None:
            # The status of the PromotionStep has a part in it: the proof may have been found since.
            return PlannedSequence(refusal=refusal)
        return plan

    def _written(self, step: PromotionStep, bundle: Bundle) -> PlannedSequence:
        """Return the plan of two specs, from memory if neither has changed."""
        known = self._known.pop(step.metadata.uid, None)
        if known is None or known[0] != step.spec or known[1] != bundle.spec:
            refusal = next(iter(_refusals(step.spec, bundle, self._registry)), None)
            sequence = planned(step.spec.steps, self._registry.steps) if refusal is None else ()
            known = (step.spec, bundle.spec, PlannedSequence(sequence, refusal))
        self._known[step.metadata.uid] = known
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return known[2]


def project(facts: Facts, plan: PlannedSequence) -> Projection:
    """Return the projection of the facts."""
    step = facts.step
    spec = step.spec
    entry = facts.bundle.status.environments.get(spec.environment)
    if entry is not None and entry.attempt != spec.attempt:
        # What is decided about another attempt says nothing about this one.
        entry = None
    successor = (entry.displaced_by if entry else None) or ""
    stopped = (entry.stopped if entry else None) or ""
    ended = entry is not None and facts.bundle.status.phase == "Superseded"
    skip, undecided = _left_out(facts, plan)
    return Projection(
        sequence=plan.declarations,
        refusal=plan.refusal,
        mine=spec.shard == facts.shard and step.metadata.deletion_timestamp is None,
        superseded=bool(successor or stopped or ended) and not facts.found.landed,
        successor=successor,
        stopped=stopped,
        admitted=entry is not None and entry.admitted_at is not None,
        queued=(entry.message if entry else None) or "",
        undetermined=undetermined(facts.bundle, spec.update, spec.steps),
        undetected=undetected(step.model_copy(update={"status": facts.status})),
        skip=skip,
        undecided=undecided,
    )


def current_index(status: PromotionStepStatus, sequence: Sequence[StepDeclaration]) -> int:
    """Return the index of the first step that has not ended; the last step does not end before the promotion.

    A failed step counts as ended: the promotion goes on only if that failure does not matter.
    """
    done = [progress.state != "Running" for progress in status.steps]
    return min(done.index(False) if False in done else len(done), len(sequence) - 1)


def _left_out(facts: Facts, plan: PlannedSequence) -> tuple[str | None, str | None]:
    """Return the reason why the current step is left out, and the error if that cannot be decided."""
    if not plan.sequence:
        return None, None
    values = SequenceValues(facts.step, facts.bundle, plan.sequence)
    return values.left_out(current_index(facts.status, plan.declarations), facts.status)


def _refusals(spec: PromotionStepSpec, bundle: Bundle, registry: Registry) -> Iterable[str]:
    bundle_name = f"bundle {bundle.metadata.name}"
    for choice in unsupported_choices(spec, field=""):
        yield f"{choice.field}: {choice.message}"
    for field in _missing(spec):
        yield f"{field}: is missing; only a Pipeline may leave it out, a PromotionStep states every value"
    for choice in unsupported_choices(bundle.spec, field="spec"):
        yield f"{bundle_name}: {choice.field}: {choice.message}"
    for problem in artifact_problems(bundle.spec.type, bundle.spec.artifacts):
        yield f"{bundle_name}: spec.{problem.field}: {problem.message}"
    capabilities = registry.providers.get(spec.git.provider)
    if capabilities is None:
        yield f"git.provider: {spec.git.provider!r} is not available in this version"
        return
    if spec.health.type is not None and spec.health.type not in registry.adapters:
        yield f"health.type: {spec.health.type!r} is not available in this version"
    for field, message in health_problems(spec.health, delegate=spec.delivery.delegate):
        yield f"health.{field}: {message}"
    for wrong in sequence_problems(
        spec.steps, approval=spec.approval, pr=spec.pr, capabilities=capabilities, table=registry.steps
    ):
        yield f"{wrong.field}: {wrong.message}"
    if spec.branch is not None and (twice := several_merges(spec.steps)):
        yield f"steps: {twice}"
    if (spec.branch is not None) != (spec.git.layout == "branch"):
        yield "branch: is that of an environment with git.layout: branch, which needs one, and of no other"
    for kind in without_taker(spec.steps, registry.steps, bundle.spec.artifacts.kinds):
        yield f"steps: none of them brings the {kind} of bundle {bundle.metadata.name}"


def _missing(spec: PromotionStepSpec) -> Iterable[str]:
    """Return the fields without a value that a Pipeline may leave out and a PromotionStep may not."""
    if not spec.steps:
        yield "steps"
    yield from (f"health.{field}" for field in unstated(spec.health, delegate=spec.delivery.delegate))
