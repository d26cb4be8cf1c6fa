"""The overview: a row for each Pipeline, with a card for each environment."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kardinal_controller.ui.model.parts import Link, PageNotice, Sentence, StateMark, View

__all__ = ["EnvironmentCard", "Need", "Overview", "PipelineList", "PipelineRow"]


Need = Literal["person", "failed", "held", "moving", "rest"]
"""The attention that a Pipeline needs, in the order of the tiles.

`person`: a review, or `kardinal resume`. `failed`: a failure, lost health, a shard without an agent, or a Pipeline that
cannot be promoted. `held`: by gates. `moving`: it goes on by itself. `rest`: it needs none.
"""


class EnvironmentCard(View):
    """One environment of a Pipeline, for the Bundle that is on its way."""

    name: str
    order: int
    """Its place in the order of promotion, from 0; environments beside one another have places of their own."""
    upstreams: list[str]
    state: StateMark
    version: str
    """The version that was Verified last there; empty if none was."""
    incoming: str | None = None
    """The version that is on its way there or has failed there, if it is another one."""
    health: StateMark | None = None
    """`Degraded` or `CannotBeSeen`, of the version that was Verified last there; absent while it is healthy."""
    behind: int
    """How many newer Bundles were Verified in the first environments since this version."""
    since: datetime | None = None
    shard: str | None = None
    no_agent_since: datetime | None = None
    """The time since which no agent serves its shard; absent while one does."""
    pull_request: Link | None = None


class PipelineRow(View):
    """One Pipeline on the overview."""

    namespace: str
    name: str
    branch: str
    """`main`, or `branches of environments`."""
    need: Need
    why: Sentence
    paused: str | None = None
    """The message of the freeze; absent if it is not paused."""
    bundle: str | None = None
    """Name of the Bundle that is shown."""
    newest: str
    """The version of the newest Bundle; empty without one."""
    people: list[str]
    """Author, and people who approved or merged: what the search finds."""
    commit: str
    """The commit of the source of the shown Bundle; empty if unknown."""
    environments: dict[str, EnvironmentCard]
    verified: dict[str, int]
    """How many environments Bundles that are kept were Verified in during the last 25 hours, by quarter of an hour:
    `{"2026-11-28T14:15Z": 2}`. No zone of time has its midnight within one, and no day is longer."""
    changed_at: datetime | None = None


class Overview(View):
    """All Pipelines that the viewer may list; keys of rows are `namespace/name`."""

    rows: dict[str, PipelineRow]
    notices: dict[str, PageNotice]


class PipelineList(View):
    """A page of rows, sorted by namespace and name; `next` is the parameter `after` of the following page."""

    items: list[PipelineRow]
    next: str | None = None
