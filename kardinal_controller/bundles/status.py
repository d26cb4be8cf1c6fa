"""The status of a Bundle, put together in one place (pure).

`Ready` must not lie: it is True only when every environment that the Bundle is meant for *now* is Verified. It
therefore carries the generation it was computed from, which `kubectl wait` compares, and a target that moves forward
makes it False until the new environments are Verified too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from kardinal.api import Bundle, Condition, set_condition
from kardinal.api.bundle import BundlePhase, BundleStatus, EnvironmentStatus

__all__ = ["Finding", "bundle_status", "is_urgent"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look at a Bundle has found; the reason and the message are those of `Ready`."""

    phase: BundlePhase
    reason: str
    message: str
    environments: Mapping[str, EnvironmentStatus] = field(default_factory=dict)
    invalid: tuple[str, str] | None = None
    """Reason and message of what is wrong with the resources."""
    warning: tuple[str, str] | None = None
    graph_ref: str | None = None
    graph_recreated: bool | None = None


def bundle_status(
    bundle: Bundle, finding: Finding, *, pipeline: str | None, sequence: int | None, now: datetime
) -> BundleStatus:
    generation = bundle.metadata.generation or None
    ready: Literal["True", "False"] = "True" if finding.phase == "Verified" else "False"
    wanted = [("Ready", ready, finding.reason, finding.message)]
    wanted += [("InvalidSpec", "True", *finding.invalid)] if finding.invalid else []
    wanted += [("Warning", "True", *finding.warning)] if finding.warning else []
    conditions: tuple[Condition, ...] = tuple(_kept(bundle.status.conditions, {name for name, *_ in wanted}))
    for name, status, reason, message in wanted:
        conditions = set_condition(
            conditions, name, status, reason=reason, message=message, now=now, observed_generation=generation
        )
    return BundleStatus(
        observed_generation=generation,
        conditions=conditions,
        phase=finding.phase,
        pipeline=pipeline,
        sequence=sequence,
        graph_ref=finding.graph_ref,
        graph_recreated=finding.graph_recreated,
        environments=dict(finding.environments),
    )


def is_urgent(before: BundleStatus, after: BundleStatus) -> bool:
    """Whether somebody may be waiting for the difference; how far an environment has come can wait a moment."""
    return _essence(before) != _essence(after)


def _essence(status: BundleStatus) -> tuple[object, ...]:
    conditions = {condition.type: (condition.status, condition.reason) for condition in status.conditions}
    kept = status.model_copy(update={"environments": {}, "conditions": ()})
    generations = {condition.observed_generation for condition in status.conditions}
    return kept, conditions, generations


def _kept(conditions: Iterable[Condition], names: set[str]) -> Iterable[Condition]:
    return (condition for condition in conditions if condition.type in names)
