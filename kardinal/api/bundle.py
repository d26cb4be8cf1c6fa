"""Bundle: one immutable, versioned set of artifacts on its way through a Pipeline."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from kardinal.api.base import Digest, DnsLabel, Model, Name, RelativePath, Resource, ShortText, Status, Text, Time, Url
from kardinal.api.evidence import Evidence
from kardinal.objects import BUNDLE, ResourceType

__all__ = [
    "BUNDLE",
    "ENDED_PHASES",
    "ArtifactKind",
    "Artifacts",
    "Bundle",
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
    "Provenance",
]

BundleType = Literal["image", "config", "mixed"]
ArtifactKind = Literal["images", "charts", "gitCommit"]
BundlePhase = Literal["Available", "Promoting", "Verified", "Failed", "Superseded", "SkipDenied"]


ENDED_PHASES: frozenset[str | None] = frozenset(["Verified", "Failed", "Superseded", "SkipDenied"])
"""Phases of a Bundle that is not on its way any more."""


class Image(Model):
    """A container image: `reference` is `repository[:tag][@digest]`, and `digest` wins over the one in it."""

    name: Annotated[str, Field(max_length=253)] = ""
    reference: Annotated[str, Field(min_length=1, max_length=512)]
    digest: Digest | None = None


class GitCommit(Model):
    """A commit of a configuration repository."""

    repository: Url
    sha: Annotated[str, Field(min_length=7, max_length=64, pattern=r"^[0-9a-f]+$")]
    message: Text = ""
    path: RelativePath | None = None


class Chart(Model):
    """A version of a Helm chart."""

    repository: Url
    name: Annotated[str, Field(min_length=1, max_length=253)]
    version: Annotated[str, Field(min_length=1, max_length=128)]
    digest: Digest | None = None


class Artifacts(Model):
    """The versions that a Bundle moves."""

    images: Annotated[tuple[Image, ...], Field(max_length=64)] = ()
    charts: Annotated[tuple[Chart, ...], Field(max_length=64)] = ()
    git_commit: GitCommit | None = None

    @property
    def kinds(self) -> tuple[ArtifactKind, ...]:
        """Return the kinds of artifacts that are there."""
        there: dict[ArtifactKind, object] = {
            "images": self.images,
            "charts": self.charts,
            "gitCommit": self.git_commit,
        }
        return tuple(kind for kind, found in there.items() if found)


class Provenance(Model):
    """The origin of the artifacts: commit, CI run and author."""

    commit_sha: Annotated[str | None, Field(alias="commitSHA", max_length=64)] = None
    ci_run_url: Annotated[str | None, Field(alias="ciRunURL", max_length=2048)] = None
    author: ShortText | None = None
    # An API server takes a year 0, which Python does not have: one such Bundle would keep its siblings from being read.
    build_timestamp: Annotated[Time | None, Field(json_schema_extra={"pattern": "^[1-9][0-9]{3}-"})] = None


class Intent(Model):
    """How far the Bundle goes, and what it leaves out."""

    target: DnsLabel | None = None
    skip: Annotated[
        tuple[DnsLabel, ...], Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = ()


def _never_changes(field: str) -> JsonDict:
    return {
        "rule": f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        "message": f"{field} is immutable: create a new Bundle",
    }


class BundleSpec(Model):
    """Type, artifacts and provenance never change after creation; `intent.target` may move forward."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [_never_changes(field) for field in ("type", "artifacts", "provenance")]
        }
    )

    type: BundleType = "image"
    artifacts: Artifacts
    provenance: Provenance | None = None
    intent: Intent = Field(default_factory=Intent)


class EnvironmentStatus(Model):
    """The result of the Bundle in one environment; kept after the PromotionStep is gone."""

    state: Annotated[str, Field(max_length=32)]
    """That of its PromotionStep, or Superseded once a newer Bundle has taken the environment over."""
    message: Text | None = None
    prepared_at: Time | None = None
    """Since when its change is ready and waits to be written."""
    admitted_at: Time | None = None
    """Since when the Bundle may write there; of a Pipeline and type, one Bundle at a time may."""
    displaced_by: Name | None = None
    """The newer Bundle that has taken the environment over."""
    replaced_at: Time | None = None
    """Since when another Bundle runs there: from then on this one does not soak."""
    promoted_at: Time | None = None
    verified_at: Time | None = None
    commit: Annotated[str | None, Field(max_length=64)] = None
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    evidence: Evidence | None = None


class GraphRecord(Model):
    """The Graph that the Bundle was translated to: what makes it believed.

    `nextHash` is written before a Graph is created or extended, `hash` and `uid` after. Hashes are those of
    `kardinal.translation.recorded`.
    """

    uid: Annotated[str | None, Field(max_length=63)] = None
    hash: Annotated[str | None, Field(max_length=64)] = None
    next_hash: Annotated[str | None, Field(max_length=64)] = None


class BundleStatus(Status):
    """Conditions: Ready (True once every targeted environment is Verified), InvalidSpec, Warning, MergedOutOfBand."""

    phase: BundlePhase | None = None
    pipeline: Name | None = None
    version: Annotated[str | None, Field(max_length=600)] = None
    """The version for people, with the number of artifacts beside the first: `1.2.0 (+2)`."""
    sequence: Annotated[int | None, Field(ge=1)] = None
    """Order of admission among the Bundles of one Pipeline: creation times have seconds only."""
    graph_ref: Name | None = None
    graph_recreated: bool | None = None
    graph: GraphRecord | None = None
    environments: Annotated[dict[str, EnvironmentStatus], Field(max_length=64)] = Field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Return whether the Bundle is not on its way any more; a new intent can start it again."""
        return self.phase in ENDED_PHASES


class Bundle(Resource):
    resource: ClassVar[ResourceType] = BUNDLE

    spec: BundleSpec
    status: BundleStatus = Field(default_factory=BundleStatus)
