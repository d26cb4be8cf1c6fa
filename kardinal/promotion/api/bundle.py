"""Bundle: one immutable, versioned set of artifacts on its way through a Pipeline."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from kardinal.models.base import DnsLabel, Model, Name, Resource, ShortText, Span, Status, Text, Time
from kardinal.objects import ResourceType
from kardinal.promotion.api.bundle_artifacts import (
    ArtifactKind,
    Artifacts,
    Chart,
    ConfigurationCommit,
    Image,
    Provenance,
    ResolvedImage,
)
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.api.names import WAITING_FOR_GRAPH
from kardinal.promotion.kinds import BUNDLE

__all__ = [
    "ENDED_ENVIRONMENT_STATES",
    "ENDED_PHASES",
    "KEPT_ATTEMPTS",
    "MAX_REQUESTS",
    "SETTLED_PHASES",
    "WHEN_FALSE",
    "ArtifactKind",
    "Artifacts",
    "AttemptRecord",
    "Bundle",
    "BundleIdentity",
    "BundlePhase",
    "BundleSpec",
    "BundleStatus",
    "BundleType",
    "Chart",
    "ConfigurationCommit",
    "EnvironmentStatus",
    "GraphRecord",
    "Image",
    "Intent",
    "IntentRequest",
    "Provenance",
    "RequestStatus",
    "ResolvedImage",
    "Rollback",
]

BundleType = Literal["image", "config", "mixed"]
BundlePhase = Literal["Available", "Promoting", "Verified", "Failed", "Superseded", "SkipDenied"]


MAX_REQUESTS = 64
"""The most requests of one Bundle, because etcd limits the size of an object."""
KEPT_ATTEMPTS = 3
"""The most earlier attempts in the entry of an environment, for the same reason."""

ENDED_PHASES: frozenset[str | None] = frozenset(["Verified", "Failed", "Superseded", "SkipDenied"])
"""Phases of a Bundle whose promotion has ended."""

SETTLED_PHASES: frozenset[str | None] = frozenset(["Verified", "Superseded", "SkipDenied"])
"""Phases of a Bundle that starts nothing more. Failed is not among them: other environments may still go on."""

WHEN_FALSE = "WhenFalse"
"""The reason of the entry of an environment that a Bundle leaves out, because its condition `when` is false."""

ENDED_ENVIRONMENT_STATES: frozenset[str | None] = frozenset(["Verified", "Failed", "Superseded"])
"""States of a Bundle in one environment in which its promotion has ended there."""


class IntentRequest(Model):
    """A person's request about an existing Bundle: promote it to an environment now, or retry where it Failed.

    Without an environment, the request promotes the Bundle to all environments of its route. `by` is a claim of the
    author, on which no decision relies.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self.action != 'retry' || has(self.environment)",
                    "message": "a retry names its environment",
                }
            ]
        }
    )

    id: DnsLabel
    """Name of the request, chosen by its author."""
    action: Literal["promote", "retry"]
    """`promote`: promote the Bundle there as if it were created now. `retry`: make another attempt where it Failed."""
    environment: DnsLabel | None = None
    """The environment. Defaults, with `promote`, to all environments that the Bundle goes to."""
    by: ShortText | None = None
    """The author's name, as the author writes it."""


class BundleIdentity(Model):
    """One Bundle by name and UID, so that a later Bundle with the same name is not mistaken for it."""

    name: Name
    """Name of the Bundle."""
    uid: Annotated[str, Field(min_length=1, max_length=63)]
    """UID of the Bundle."""


class Rollback(Model):
    """A rollback: environments get the artifacts of a Bundle that was Verified there before."""

    environments: Annotated[
        tuple[DnsLabel, ...],
        Field(min_length=1, max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ]
    """The environments to roll back. The Bundle goes to no other environment."""
    of: BundleIdentity
    """The Bundle that is rolled back, as the author says."""
    restores: BundleIdentity
    """The Bundle whose artifacts are restored. It must have been Verified in each of the environments."""
    emergency: bool = False
    """Whether the rollback is urgent.

    Gates can read it as `bundle.emergency`; it has no other effect. Defaults to false.
    """


class Intent(Model):
    """How far the Bundle goes, which environments it skips, and the requests that people have added."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": (
                        "!has(self.graph) || "
                        "(!has(self.target) && !has(self.rollback) && (!has(self.skip) || size(self.skip) == 0))"
                    ),
                    "message": "with graph: manual the Graph says where it goes: leave target, skip and rollback out",
                }
            ]
        }
    )

    target: DnsLabel | None = None
    """Environment up to which the Bundle is promoted. Defaults to all environments."""
    skip: Annotated[
        tuple[DnsLabel, ...], Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = ()
    """Environments that are skipped. Where an org gate protects an environment, a skip permission must allow it."""
    requests: Annotated[
        tuple[IntentRequest, ...] | None,
        Field(
            max_length=MAX_REQUESTS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        ),
    ] = None
    """Requests of people since the creation of the Bundle. The list only grows."""
    rollback: Rollback | None = None
    """For a rollback: its environments and the Bundle that it restores. It never changes."""
    graph: Literal["manual"] | None = None
    """`manual`: a person writes the Graph, which names the Bundle in `spec.bundleRef`. It never changes.

    The Graph then says where the Bundle goes, and not `target` or `skip`. Defaults to the Graph of the Pipeline.
    """


_REQUESTS_GROW: JsonDict = {
    "rule": (
        "!has(oldSelf.intent) || !has(oldSelf.intent.requests) || (has(self.intent) && has(self.intent.requests) && "
        "oldSelf.intent.requests.all(each, each in self.intent.requests))"
    ),
    "message": "intent.requests only grows: a request stays as it was made",
}


_TARGET_MOVES_FORWARD: JsonDict = {
    "rule": ("!has(self.intent) || !has(self.intent.target) || (has(oldSelf.intent) && has(oldSelf.intent.target))"),
    "message": (
        "intent.target moves forward: without one the Bundle goes to every environment, "
        "so that none can be set any more: create a new Bundle with it"
    ),
}


def _intent_never_changes(field: str) -> JsonDict:
    has = f"has(self.intent) && has(self.intent.{field})"
    had = f"has(oldSelf.intent) && has(oldSelf.intent.{field})"
    return {
        "rule": f"({has}) == ({had}) && (!({has}) || self.intent.{field} == oldSelf.intent.{field})",
        "message": f"intent.{field} is immutable: create a new Bundle",
    }


def _never_changes(field: str) -> JsonDict:
    return {
        "rule": f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        "message": f"{field} is immutable: create a new Bundle",
    }


class BundleSpec(Model):
    """Type, artifacts, provenance, `intent.rollback` and `intent.graph` never change after creation.

    `intent.target` may move forward, and `intent.requests` only grows.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                *(_never_changes(field) for field in ("type", "artifacts", "provenance")),
                _REQUESTS_GROW,
                _TARGET_MOVES_FORWARD,
                _intent_never_changes("rollback"),
                _intent_never_changes("graph"),
            ]
        }
    )

    type: BundleType = "image"
    """`image`: images and charts. `config`: a commit. `mixed`: both. Defaults to `image`."""
    artifacts: Artifacts
    """The versions to promote."""
    provenance: Provenance | None = None
    """The origin of the artifacts."""
    intent: Intent = Field(default_factory=Intent)
    """How far the Bundle goes."""


class AttemptRecord(Model):
    """The result of an earlier attempt in one environment."""

    attempt: Annotated[int, Field(ge=1)]
    """The number of the attempt, from 1."""
    state: Annotated[str, Field(max_length=32)]
    """The state in which the attempt ended."""
    message: Text | None = None
    """The reason why it failed."""
    request: DnsLabel | None = None
    """The request that started the attempt; absent if the creation of the Bundle started it."""
    displaced_by: Name | None = None
    """The newer Bundle that superseded this one in the environment."""
    started_at: Time | None = None
    """The time at which the first step started."""
    promoted_at: Time | None = None
    """The time at which the change landed."""
    verified_at: Time | None = None
    """The time at which the environment was Verified."""
    commit: Annotated[str | None, Field(max_length=64)] = None
    """The commit that landed."""
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    """URL of the pull request."""
    evidence: Evidence | None = None
    """The evidence of the promotion, written when it ended."""


class EnvironmentStatus(Model):
    """The result of the Bundle in one environment; kept after the PromotionStep is gone."""

    state: Annotated[str, Field(max_length=32)]
    """The state of its PromotionStep, or Superseded once a newer Bundle has superseded this one here."""
    reason: Annotated[str | None, Field(max_length=63)] = None
    """`WhenFalse` where the environment is left out (state Skipped): `message` has the values that `when` has read."""
    message: Text | None = None
    """The reason why the promotion waits, is retried, has failed, or is no longer healthy."""
    held: Text | None = None
    """The reason why its next effect is held: a gate, a freeze, or a problem that a person has to fix."""
    attempt: Annotated[int | None, Field(ge=1)] = None
    """The number of the current attempt; absent for the first."""
    attempts: Annotated[tuple[AttemptRecord, ...] | None, Field(max_length=KEPT_ATTEMPTS)] = None
    """The last attempts before the current one."""
    request: DnsLabel | None = None
    """The request that started this attempt; absent if the creation of the Bundle started it."""
    tags_checked_at: Time | None = None
    """The time at which its tags were looked up again, because the promotion is about to start."""
    prepared_at: Time | None = None
    """The time since which its change is ready and waits to be written."""
    admitted_at: Time | None = None
    """The time since which the Bundle may write there. Of a Pipeline and type, one Bundle at a time may."""
    displaced_by: Name | None = None
    """The newer Bundle that has superseded this one here."""
    stopped: Text | None = None
    """The reason why the Bundle goes no further here, although no newer Bundle has come."""
    rolled_back_by: Name | None = None
    """The automatic rollback after its failure here."""
    replaced_at: Time | None = None
    """The time since which another Bundle runs here; from then on the soak of this one does not grow."""
    started_at: Time | None = None
    """The time at which the first step of the promotion started."""
    promoted_at: Time | None = None
    """The time at which the change landed."""
    verified_at: Time | None = None
    """The time at which the environment was Verified."""
    healthy: bool | None = None
    """Whether the Verified Bundle is still healthy: false while it is Degraded or cannot be observed.

    Dependents wait.
    """
    healthy_since: Time | None = None
    """The time since which it has been healthy without a break."""
    healthy_for: Span | None = None
    """The healthy time before `healthySince` and since it was last Degraded.

    Time without observation does not count.
    """
    commit: Annotated[str | None, Field(max_length=64)] = None
    """The commit that landed."""
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    """URL of the pull request."""
    evidence: Evidence | None = None
    """The evidence of the promotion, written when it ended."""

    @property
    def has_ended(self) -> bool:
        """Return whether the promotion has ended here; a new request can start it again."""
        return self.state in ENDED_ENVIRONMENT_STATES


class RequestStatus(Model):
    """The answer to a request."""

    id: DnsLabel
    """Name of the request."""
    action: Literal["promote", "retry"]
    """The action of the request: `promote` or `retry`."""
    environment: DnsLabel | None = None
    """The environment of the request."""
    state: Literal["Accepted", "Refused"]
    """`Accepted`: the environments follow the request. `Refused`: it has no effect."""
    message: Text | None = None
    """The reason why the request was refused."""
    seen_at: Time
    """The time at which the controller first saw the request."""
    after: Time
    """Creation time of the newest Bundle of the Pipeline then. The request counts as newer, whatever the clocks say."""
    sequence: Annotated[int, Field(ge=1)]
    """Its number among the Bundles and requests of the Pipeline; a later one has a higher number."""


class GraphRecord(Model):
    """The Graph that the Bundle was translated to, or that was admitted. Only a Graph that fits this record is trusted.

    `nextHash` is written before a Graph is created or extended, `hash` and `uid` after. The hashes are those of
    `kardinal.promotion.translation.recorded`.
    """

    uid: Annotated[str | None, Field(max_length=63)] = None
    """UID of the Graph."""
    hash: Annotated[str | None, Field(max_length=64)] = None
    """Hash of its spec, as a SHA-256 in hex."""
    next_hash: Annotated[str | None, Field(max_length=64)] = None
    """Hash of the spec that the controller is about to write."""


class BundleStatus(Status):
    """Conditions: Ready (True once every targeted environment is Verified), InvalidSpec, Warning, MergedOutOfBand.

    Present only while they are true: Paused; Held; TagMoved, when a tag names another image than at the start; and
    Outdated, when the Pipeline or the gates have changed since the Graph was made.
    """

    phase: BundlePhase | None = None
    """`Available`: not started.

    `Promoting`: on its way. `Verified`: Verified in every targeted environment. `Failed`. `Superseded`: a newer Bundle
    took its place. `SkipDenied`: it may not skip an environment in `intent.skip`.
    """
    pipeline: Name | None = None
    """Pipeline that the Bundle has belonged to since it was first seen."""
    version: Annotated[str | None, Field(max_length=600)] = None
    """The version for people: `1.2.0`, or of several artifacts `app:1.2.0, worker:2.1`."""
    sequence: Annotated[int | None, Field(ge=1)] = None
    """Order of admission among the Bundles of one Pipeline, because creation times have whole seconds only."""
    artifacts: Annotated[
        tuple[ResolvedImage, ...] | None,
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["reference"]},
        ),
    ] = None
    """The digests that tags had when the Bundle started; present only if the operator allows registries to be asked."""
    graph_ref: Name | None = None
    """Name of its Graph."""
    graph_recreated: bool | None = None
    """Whether the Graph was deleted by hand and created again."""
    graph: GraphRecord | None = None
    """The record of the trusted Graph."""
    requests: Annotated[
        tuple[RequestStatus, ...] | None,
        Field(
            max_length=MAX_REQUESTS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        ),
    ] = None
    """The answers to the requests."""
    environments: Annotated[dict[str, EnvironmentStatus], Field(max_length=64)] = Field(default_factory=dict)
    """The result in each environment, by name."""

    @property
    def has_ended(self) -> bool:
        """Return whether the promotion of the Bundle has ended; a new request can start it again."""
        return self.phase in ENDED_PHASES

    @property
    def waits_for_graph(self) -> bool:
        """Return whether a person writes the Graph of the Bundle, and none is admitted yet."""
        ready = self.condition("Ready")
        return self.phase == "Available" and ready is not None and ready.reason == WAITING_FOR_GRAPH


class Bundle(Resource):
    resource: ClassVar[ResourceType] = BUNDLE

    spec: BundleSpec
    """The artifacts, and how far they go."""
    status: BundleStatus = Field(default_factory=BundleStatus)
    """The progress of the promotion."""
