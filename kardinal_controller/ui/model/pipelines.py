"""The page of a Pipeline: timeline, DAG, and the drawer of an environment."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kardinal_controller.ui.model.bundles import BundleCard, EnvironmentEvidence
from kardinal_controller.ui.model.gates import DrawnGate
from kardinal_controller.ui.model.overview import EnvironmentCard
from kardinal_controller.ui.model.parts import Link, PageNotice, Sentence, StateMark, Tone, View

__all__ = [
    "DrawnEnvironment",
    "Edge",
    "EnvironmentDocument",
    "PastPromotion",
    "PipelineDocument",
    "StepLine",
    "StepPosition",
]


class StepPosition(View):
    """The step of the sequence that is executed: `{"uses": "health-check", "index": 6, "of": 6, …}`; counts from 1."""

    uses: str
    index: int
    of: int
    message: str


class DrawnEnvironment(View):
    """An environment in the DAG."""

    kind: Literal["environment"] = "environment"
    card: EnvironmentCard
    why: Sentence | None = None
    """Why the Bundle is not Verified there yet; absent when it is."""
    progress: StepPosition | None = None
    commit: Link | None = None
    health: str
    """The message of its health check; empty before the change has landed."""


class Edge(View):
    """A dependency: `open` when what it leads from lets the Bundle go on; `tone` is that of what closes it."""

    source: str
    target: str
    open: bool
    tone: Tone


class PipelineDocument(View):
    """One Pipeline with its timeline, and the DAG of the Bundle that is selected.

    Keys of nodes are `environment/prod` and `gate/prod/platform/business-hours`, those of edges `source→target`.
    """

    namespace: str
    name: str
    repository: Link
    branch: str
    paused: str | None = None
    notices: dict[str, PageNotice]
    bundles: dict[str, BundleCard]
    """The newest Bundles, at most 100, by name."""
    more_bundles: int
    shown: str | None = None
    """Name of the Bundle whose DAG this is; absent for a Pipeline without a Bundle, whose route is shown."""
    nodes: dict[str, DrawnEnvironment | DrawnGate]
    edges: dict[str, Edge]


class StepLine(View):
    """One step of the sequence of an environment."""

    uses: str
    state: Literal["Pending", "Running", "Succeeded", "Failed", "Skipped"]
    message: str
    started_at: datetime | None = None
    finished_at: datetime | None = None


class PastPromotion(View):
    """A promotion into an environment that was Verified, or failed."""

    bundle: str
    versions: str
    state: StateMark
    at: datetime | None = None
    commit: Link | None = None
    rollback: str
    """The command that rolls back to it; empty if it is what runs."""


class EnvironmentDocument(View):
    """The drawer of an environment."""

    namespace: str
    pipeline: str
    bundle: str | None = None
    card: EnvironmentCard
    why: Sentence | None = None
    steps: dict[str, StepLine]
    """The sequence, by its number from 1: `{"1": {"uses": "git-clone", …}}`."""
    attempt: int
    retries: int
    next_try: datetime | None = None
    error: str | None = None
    commit: Link | None = None
    pull_request: Link | None = None
    diff: str
    """The planned change as a unified diff, at most 64 KiB; empty before it is planned."""
    evidence: EnvironmentEvidence | None = None
    history: list[PastPromotion]
    links: list[Link]
    """Pages of other programs: the pull request, the CI run; without a URL the object of Argo CD or Flux."""
    commands: list[str]
