"""Bundle: one immutable, versioned set of artifacts on its way through a Pipeline."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from kardinal.api.base import (
    DnsLabel,
    Model,
    Name,
    Resource,
    ShortText,
    Span,
    Status,
    Text,
    Time,
)
from kardinal.api.bundle_artifacts import ArtifactKind, Artifacts, Chart, GitCommit, Image, Provenance, ResolvedImage
from kardinal.api.evidence import Evidence
from kardinal.objects import BUNDLE, ResourceType

__all__ = [
    "BUNDLE",
    "ENDED_PHASES",
    "KEPT_ATTEMPTS",
    "MAX_REQUESTS",
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
    "EnvironmentStatus",
    "GitCommit",
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
KEPT_ATTEMPTS = 3
"""Requests that one Bundle takes, and earlier attempts that an environment keeps: a status has its size."""

ENDED_PHASES: frozenset[str | None] = frozenset(["Verified", "Failed", "Superseded", "SkipDenied"])
"""Phases of a Bundle that is not on its way any more."""


class IntentRequest(Model):
    """A person's wish for a Bundle that exists: to go to an environment now, or to try again where it Failed.

    Without an environment a Bundle is promoted wherever it goes. `by` is what the author claims; nothing relies on it.
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
    """`promote`: go there by an intent of now. `retry`: make another attempt where the Bundle is Failed."""
    environment: DnsLabel | None = None
    """The environment; without it, with `promote`, wherever the Bundle goes."""
    by: ShortText | None = None
    """The author, as the author says."""


class BundleIdentity(Model):
    """One Bundle, and no other that has its name later."""

    name: Name
    """Name of the Bundle."""
    uid: Annotated[str, Field(min_length=1, max_length=63)]
    """UID of the Bundle."""


class Rollback(Model):
    """The way back to what ran in environments before: they get the artifacts of a Bundle that was Verified there."""

    environments: Annotated[
        tuple[DnsLabel, ...],
        Field(min_length=1, max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ]
    """The environments; the Bundle goes to no other."""
    of: BundleIdentity
    """The Bundle that is taken back, as the author says."""
    restores: BundleIdentity
    """The Bundle whose artifacts these are; it must have been Verified in each of the environments."""
    emergency: bool = False
    """Whether gates are told that it is urgent, as `bundle.emergency`; nothing else follows from it."""


class Intent(Model):
    """How far the Bundle goes, what it leaves out, and what people have asked of it since."""

    target: DnsLabel | None = None
    """Environment up to which the Bundle goes; by default all."""
    skip: Annotated[
        tuple[DnsLabel, ...], Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = ()
    """Environments that are left out, which a gate must permit."""
    requests: Annotated[
        tuple[IntentRequest, ...] | None,
        Field(
            max_length=MAX_REQUESTS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        ),
    ] = None
    """Wishes of people for the Bundle since it was created; the list only grows."""
    rollback: Rollback | None = None
    """Of a rollback: where it goes, and what it brings back; it never changes."""


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


_ROLLBACK_NEVER_CHANGES: JsonDict = {
    "rule": (
        "(has(self.intent) && has(self.intent.rollback)) == (has(oldSelf.intent) && has(oldSelf.intent.rollback)) && "
        "(!has(self.intent) || !has(self.intent.rollback) || self.intent.rollback == oldSelf.intent.rollback)"
    ),
    "message": "intent.rollback is immutable: create a new Bundle",
}


def _never_changes(field: str) -> JsonDict:
    return {
        "rule": f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        "message": f"{field} is immutable: create a new Bundle",
    }


class BundleSpec(Model):
    """Type, artifacts, provenance and `intent.rollback` never change after creation; `intent.target` may move forward.

    `intent.requests` only grows.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                *(_never_changes(field) for field in ("type", "artifacts", "provenance")),
                _REQUESTS_GROW,
                _TARGET_MOVES_FORWARD,
                _ROLLBACK_NEVER_CHANGES,
            ]
        }
    )

    type: BundleType = "image"
    """`image` brings images and charts, `config` a commit, `mixed` both."""
    artifacts: Artifacts
    """The versions to promote."""
    provenance: Provenance | None = None
    """The origin of the artifacts."""
    intent: Intent = Field(default_factory=Intent)
    """How far the Bundle goes."""


class AttemptRecord(Model):
    """The result of an earlier attempt in one environment."""

    attempt: Annotated[int, Field(ge=1)]
    """Its number."""
    state: Annotated[str, Field(max_length=32)]
    """The state in which it ended."""
    message: Text | None = None
    """The reason why it failed."""
    request: DnsLabel | None = None
    """The request by which the Bundle went there; without it, by its creation."""
    displaced_by: Name | None = None
    """The newer Bundle that had taken the environment over."""
    started_at: Time | None = None
    """The moment of its first step."""
    promoted_at: Time | None = None
    """The moment at which the change landed."""
    verified_at: Time | None = None
    """The moment of the proof."""
    commit: Annotated[str | None, Field(max_length=64)] = None
    """The commit that landed."""
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    """URL of the pull request."""
    evidence: Evidence | None = None
    """The evidence of the promotion, written when it ended."""


class EnvironmentStatus(Model):
    """The result of the Bundle in one environment; kept after the PromotionStep is gone."""

    state: Annotated[str, Field(max_length=32)]
    """That of its PromotionStep, or Superseded once a newer Bundle has taken the environment over."""
    message: Text | None = None
    """The reason why it waits, is tried again, failed, or is no longer healthy."""
    held: Text | None = None
    """The reason why it is kept from its next effect: a gate, a freeze, or what a person has to put right."""
    attempt: Annotated[int | None, Field(ge=1)] = None
    """The number of the attempt that is meant; without it the first."""
    attempts: Annotated[tuple[AttemptRecord, ...] | None, Field(max_length=KEPT_ATTEMPTS)] = None
    """The attempts before it, the last ones."""
    request: DnsLabel | None = None
    """The request by which the Bundle goes there; without it, by its creation."""
    tags_checked_at: Time | None = None
    """The moment at which tags were looked up again, because it is about to start."""
    prepared_at: Time | None = None
    """Since when its change is ready and waits to be written."""
    admitted_at: Time | None = None
    """Since when the Bundle may write there; of a Pipeline and type, one Bundle at a time may."""
    displaced_by: Name | None = None
    """The newer Bundle that has taken the environment over."""
    stopped: Text | None = None
    """The reason why it goes no further there, though no newer Bundle has come."""
    rolled_back_by: Name | None = None
    """The rollback that followed from its failure there."""
    replaced_at: Time | None = None
    """Since when another Bundle runs there: from then on this one does not soak."""
    started_at: Time | None = None
    """The moment of the first step of the promotion."""
    promoted_at: Time | None = None
    """The moment at which the change landed."""
    verified_at: Time | None = None
    """The moment of the proof."""
    healthy: bool | None = None
    """Whether what was Verified still is healthy: false while it is Degraded, or cannot be seen. What follows waits."""
    healthy_since: Time | None = None
    """Since when it is healthy without a break."""
    healthy_for: Span | None = None
    """The healthy time before that, since it was last Degraded: while it cannot be seen, none is counted."""
    commit: Annotated[str | None, Field(max_length=64)] = None
    """The commit that landed."""
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    """URL of the pull request."""
    evidence: Evidence | None = None
    """The evidence of the promotion, written when it ended."""


class RequestStatus(Model):
    """The answer to a request."""

    id: DnsLabel
    """Name of the request."""
    action: Literal["promote", "retry"]
    """As it was asked for: `promote` or `retry`."""
    environment: DnsLabel | None = None
    """As it was asked for."""
    state: Literal["Accepted", "Refused"]
    """`Accepted`: the environments follow it. `Refused`: nothing follows."""
    message: Text | None = None
    """The reason why it was refused."""
    seen_at: Time
    """The moment at which the controller first saw it."""
    after: Time
    """Creation of the newest Bundle of the Pipeline then: the request is newer, whatever clocks say."""
    sequence: Annotated[int, Field(ge=1)]
    """Its number among the Bundles and requests of the Pipeline: one created later is newer."""


class GraphRecord(Model):
    """The Graph that the Bundle was translated to: what makes it believed.

    `nextHash` is written before a Graph is created or extended, `hash` and `uid` after. Hashes are those of
    `kardinal.translation.recorded`.
    """

    uid: Annotated[str | None, Field(max_length=63)] = None
    """UID of the Graph."""
    hash: Annotated[str | None, Field(max_length=64)] = None
    """Hash of its spec."""
    next_hash: Annotated[str | None, Field(max_length=64)] = None
    """Hash of the spec that it is about to have."""


class BundleStatus(Status):
    """Conditions: Ready (True once every targeted environment is Verified), InvalidSpec, Warning, MergedOutOfBand.

    While they are true also Paused, Held, TagMoved: a tag is another image than at the start, and Outdated: the
    Pipeline or the gates are others than those it goes by.
    """

    phase: BundlePhase | None = None
    """`Available`: not started. `Promoting`: on its way. `Verified`: runs where it is meant to. `Failed`. `Superseded`:
    a newer Bundle took its place. `SkipDenied`: it may not leave out what it asks to.
    """
    pipeline: Name | None = None
    """Pipeline that the Bundle belongs to since it was first seen."""
    version: Annotated[str | None, Field(max_length=600)] = None
    """The version for people: `1.2.0`, or of several artifacts `app:1.2.0, worker:2.1`."""
    sequence: Annotated[int | None, Field(ge=1)] = None
    """Order of admission among the Bundles of one Pipeline: creation times have seconds only."""
    artifacts: Annotated[
        tuple[ResolvedImage, ...] | None,
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["reference"]},
        ),
    ] = None
    """The digests that tags had when the Bundle started; there only where the operator lets registries be asked."""
    graph_ref: Name | None = None
    """Name of its Graph."""
    graph_recreated: bool | None = None
    """Whether the Graph was deleted by hand and made again."""
    graph: GraphRecord | None = None
    """The Graph that is believed."""
    requests: Annotated[
        tuple[RequestStatus, ...] | None,
        Field(
            max_length=MAX_REQUESTS,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        ),
    ] = None
    """The answers to the requests."""
    environments: Annotated[dict[str, EnvironmentStatus], Field(max_length=64)] = Field(default_factory=dict)
    """The result in each environment."""

    @property
    def has_ended(self) -> bool:
        """Return whether the Bundle is not on its way any more; a new intent can start it again."""
        return self.phase in ENDED_PHASES


class Bundle(Resource):
    resource: ClassVar[ResourceType] = BUNDLE

    spec: BundleSpec
    """The artifacts, and how far they go."""
    status: BundleStatus = Field(default_factory=BundleStatus)
    """How far they came."""
