"""The documents that the page gets over HTTP and in its stream.

A page of the browser shows one document: `Overview`, `PipelineDocument`, `BundleDocument`, `GraphDocument`, or one of
the two drawers, `EnvironmentDocument` and `GateDocument`. Everything in a document that can change by itself has a key
of its own in an object, not a place in a list, so that a change is a JSON merge patch (RFC 7396) of a few bytes:

    event: snapshot                                        event: patch
    id: 7f3c-41                                            id: 7f3c-42
    data: {"rows": {"shop/search": {…}, …}, …}             data: {"rows": {"shop/search": {"need": "held"}}}

A patch removes what it sets to null. So no field has null as a value of its own: a field without a value is left out.
Times are ISO 8601 in UTC; durations and relative times are computed by the page from them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

__all__ = [
    "ActionAnswer",
    "ActionName",
    "ActionRequest",
    "Approver",
    "BundleCard",
    "BundleDocument",
    "BundleList",
    "ConditionLine",
    "DrawnEnvironment",
    "DrawnGate",
    "Edge",
    "EnvironmentCard",
    "EnvironmentDocument",
    "EnvironmentEvidence",
    "EventLine",
    "EventList",
    "GateAnswer",
    "GateDocument",
    "GateSoak",
    "GateValue",
    "GraphDocument",
    "GraphList",
    "GraphNodeLine",
    "GraphRow",
    "Link",
    "LogIn",
    "LoggedIn",
    "Need",
    "Overview",
    "PageError",
    "PageNotice",
    "PastPromotion",
    "PipelineDocument",
    "PipelineList",
    "PipelineRow",
    "PlannedChange",
    "Sentence",
    "StateMark",
    "StepLine",
    "StepPosition",
    "StreamEnd",
    "Tone",
    "Viewer",
]

Tone = Literal["ok", "move", "you", "held", "bad", "warn", "rest"]
"""The colour of a state. It never stands alone: the page shows an icon and the word of the state beside it."""

Need = Literal["person", "failed", "held", "moving", "rest"]
"""The attention that a Pipeline needs, in the order of the tiles.

`person`: a review, or `kardinal resume`. `failed`: a failure, lost health, a shard without an agent, or a Pipeline that
cannot be promoted. `held`: by gates. `moving`: it goes on by itself. `rest`: it needs none.
"""


class View(BaseModel):
    """A part of a document: immutable, in JSON with names in camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True, extra="forbid", frozen=True
    )


class StateMark(View):
    """A state of `docs/states.md`: `{"kind": "PromotionStep", "name": "WaitingForMerge", "tone": "you", …}`."""

    kind: str
    name: str
    tone: Tone
    meaning: str
    """The sentence of `docs/states.md`."""


class Link(View):
    """A text that may lead somewhere; `url` has the scheme http or https, or is absent."""

    text: str
    url: str | None = None


class Sentence(View):
    """The answer to "why is it not further?", as `kardinal status` and `kardinal explain` give it."""

    text: str
    tone: Tone
    detail: str | None = None
    """A second line: what is known besides, such as `step 6 of 6 · health-check`."""
    command: str | None = None
    """The command to type next."""
    link: Link | None = None
    """The pull request, or another page of another program, that the sentence is about."""
    until: datetime | None = None
    """The time at which it changes by itself, for a countdown."""


class PageNotice(View):
    """A line above everything else: a shard without an agent, a pause, a Pipeline that is not Ready."""

    tone: Tone
    text: str
    detail: str | None = None
    command: str | None = None
    since: datetime | None = None


class Viewer(View):
    """The person who looks, and what the page lets them do."""

    user: str
    groups: list[str]
    auth: Literal["token", "proxy", "kubeconfig"]
    may_act: bool
    """Whether buttons carry commands out with the viewer's own identity; else they show the command only."""
    reads_as_viewer: bool
    """Whether YAML and Events can be read with the viewer's own token; else the command is shown."""
    namespaces: list[str]
    """The namespaces whose Pipelines the viewer may list, sorted."""
    version: str
    """The version of the program that serves the page."""


# The overview


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
    changed_at: datetime | None = None


class Overview(View):
    """All Pipelines that the viewer may list; keys of rows are `namespace/name`."""

    rows: dict[str, PipelineRow]
    notices: dict[str, PageNotice]


class PipelineList(View):
    """A page of rows, sorted by namespace and name; `next` is the parameter `after` of the following page."""

    items: list[PipelineRow]
    next: str | None = None


# One Pipeline


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


class GateSoak(View):
    """The soak of the Bundle before a gate, as the gate counts it: the shortest healthy time in what is before it."""

    since: datetime | None = None
    """It grows, and is the time since then; absent while it does not grow."""
    seconds: int | None = None
    """The value at which it stands, or with `since` at which it stops growing; absent without such an end."""
    unknown: str | None = None
    """The reason why there is none, such as `staging is not Verified`."""


class DrawnGate(View):
    """A gate in the DAG; it stands before one environment."""

    kind: Literal["gate"] = "gate"
    environment: str
    namespace: str
    name: str
    scope: Literal["org", "team"]
    answer: StateMark
    detail: str
    seen_at: datetime | None = None
    opens_at: datetime | None = None
    soak: GateSoak | None = None
    """Only of a gate that reads `bundle.upstreamSoakMinutes`."""


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


class Approver(View):
    """A person who approved or merged a pull request."""

    name: str
    did: Literal["approved", "merged"]
    at: datetime | None = None


class GateAnswer(View):
    """An answer that a gate gave, until the next one."""

    answer: StateMark
    since: datetime
    reason: str


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


class GateValue(View):
    """A value that the expression read: `{"name": "schedule.hour", "value": "20", "needed": "must be below 17"}`."""

    name: str
    value: str
    needed: str | None = None


class GateDocument(View):
    """The drawer of a gate before an environment."""

    namespace: str
    pipeline: str
    bundle: str
    gate: DrawnGate
    verdict: Sentence
    expression: str
    message: str
    values: list[GateValue]
    history: list[GateAnswer]
    """Its last answers, newest first, at most 20."""
    next_look: datetime | None = None
    owner: str
    commands: list[str]


# One Bundle


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


# One Graph


class ConditionLine(View):
    """A condition of an object."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None = None


class GraphNodeLine(View):
    """A node of a Graph beside the state of its child."""

    id: str
    kind: str
    name: str
    ready: str
    """`True`, `False` or `Unknown`."""
    message: str
    child: str
    """The state in the status of the child itself; empty before the child exists."""
    upstreams: list[str]


class GraphRow(View):
    """One Graph in a list."""

    namespace: str
    name: str
    accepted: str
    ready: str
    message: str
    created: datetime | None = None


class GraphDocument(View):
    """The page of a Graph."""

    namespace: str
    name: str
    conditions: dict[str, ConditionLine]
    nodes: dict[str, GraphNodeLine]


class GraphList(View):
    """A page of Graphs, sorted by namespace and name; `next` is the parameter `after` of the following page."""

    items: list[GraphRow]
    next: str | None = None


class EventLine(View):
    """An Event about an object."""

    type: str
    reason: str
    message: str
    about: str
    count: int
    at: datetime | None = None


class EventList(View):
    """The newest Events about the objects of a Bundle, newest first, at most 200."""

    items: list[EventLine]


class PageError(View):
    """The answer to a failed request: `{"message": "no Pipeline x in namespace shop", "remedy": "There are: y"}`."""

    message: str
    remedy: str
    auth: Literal["token", "proxy", "kubeconfig"] | None = None
    """How to log in; only with status 401."""
    command: str | None = None
    """The command that does what the page may not do."""


class StreamEnd(View):
    """The data of the last event of a stream, `end`; the page connects again if `again` is true."""

    reason: str
    again: bool


# Log in and actions


class LogIn(View):
    """The body of `POST session`: a bearer token, or the one-time code of the link that `kardinal ui` prints."""

    token: str | None = Field(default=None, repr=False)
    code: str | None = Field(default=None, repr=False)


class LoggedIn(View):
    """The answer to a log in."""

    viewer: Viewer
    secret: str | None = Field(default=None, repr=False)
    """The value of the header `X-Kardinal-Session` of every later request; absent where a cookie has the session."""


ActionName = Literal["promote", "retry", "pause", "resume", "rollback", "merge"]


class ActionRequest(View):
    """The body of `POST actions/{action}`; an action reads the fields that its command has as arguments."""

    namespace: str = Field(max_length=253)
    pipeline: str = Field(max_length=253)
    bundle: str | None = Field(default=None, max_length=253)
    """The Bundle that is promoted or retried, or that a rollback goes back to."""
    environment: str | None = Field(default=None, max_length=253)
    reason: str | None = Field(default=None, max_length=1024)
    """Why the Pipeline is paused."""
    emergency: bool = False
    hold: bool = True
    """Whether other Bundles are kept from the environment after a rollback."""
    pull_request: int | None = Field(default=None, ge=1)
    """The number of the pull request to merge."""


class PlannedChange(View):
    """The change that an action would make in one environment, as `kardinal plan` shows it."""

    environment: str
    sentence: str
    files: list[str]
    diff: str
    """At most 64 KiB."""
    pull_request: str | None = None
    """The title of the pull request that it would open."""
    note: str | None = None
    error: str | None = None


class ActionAnswer(View):
    """The result of an action, or with `?dry-run=true` the result that it would have."""

    lines: list[str]
    """The sentences that the command prints."""
    command: str
    """The command that does the same."""
    plan: list[PlannedChange] | None = None
    """Absent where there is no plan, and where the action was carried out."""
