"""A Bundle: its card on the timeline, its page, and the evidence for each environment."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kardinal_controller.ui.model.gates import DrawnGate
from kardinal_controller.ui.model.parts import ConditionLine, Link, StateMark, View

__all__ = ["Approver", "BundleCard", "BundleDocument", "BundleList", "EnvironmentEvidence"]


class BundleCard(View):
    """One Bundle on the timeline, oldest first by `order`."""

    namespace: str
    name: str
    pipeline: str
    order: int
    versions: str
    author: str
    commit: Link | None = None
    ci_run: Link | None = None
    created: datetime
    phase: StateMark
    message: str
    segments: dict[str, StateMark]
    """Its state by environment, in the order of promotion; environments that it did not reach are absent."""
    runs_in: list[str]
    """The environments that run it now."""


class Approver(View):
    """A person who approved or merged a pull request."""

    name: str
    did: Literal["approved", "merged"]
    at: datetime | None = None


class EnvironmentEvidence(View):
    """The evidence of one Bundle in one environment, from `status.environments` of the Bundle."""

    environment: str
    state: StateMark
    commit: Link | None = None
    pull_request: Link | None = None
    people: list[Approver]
    gates: list[DrawnGate]
    due_at: datetime | None = None
    """The time since which it could have begun but for gates: the creation of the Bundle, or the verification of the
    last environment before it."""
    started_at: datetime | None = None
    proposed_at: datetime | None = None
    landed_at: datetime | None = None
    verified_at: datetime | None = None
    delegate: str
    """The delivery controller that was waited for; empty without one."""
    metrics: dict[str, str]
    health: str


class BundleDocument(View):
    """The page of a Bundle."""

    card: BundleCard
    type: str
    intent: str
    artifacts: dict[str, str]
    """Digest, or tag without one, by artifact."""
    environments: dict[str, EnvironmentEvidence]
    ahead: list[str]
    """A sentence for each environment that it has still to reach."""
    conditions: list[ConditionLine]


class BundleList(View):
    """A page of Bundles, newest first; `next` is the parameter `after` of the following page."""

    items: list[BundleCard]
    next: str | None = None
