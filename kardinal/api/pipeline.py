"""Pipeline: the environments of one application, in order, and how each is written to."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kardinal.api.base import (
    DNS_LABEL_PATTERN,
    DnsLabel,
    Duration,
    Model,
    RelativePath,
    Resource,
    SecretReference,
    Status,
    Text,
    Time,
    Url,
)
from kardinal.api.health import Health
from kardinal.objects import PIPELINE, ResourceType

__all__ = [
    "PIPELINE",
    "Approval",
    "ConfigUpdate",
    "Delivery",
    "Environment",
    "Git",
    "HeldChange",
    "HelmUpdate",
    "HelmValue",
    "Identity",
    "MergeStrategy",
    "MessageTemplate",
    "OtherChanges",
    "Pipeline",
    "PipelineSpec",
    "PipelineStatus",
    "ProviderName",
    "ReplaceUpdate",
    "StepRetry",
    "StepSpec",
    "Update",
]

_IDENTITY_PATTERN = r"^[^<>\x00-\x1f\x7f]+$"
_ADDRESS_PATTERN = r"^[^<>\x00-\x20\x7f]+$"
"""A commit has the name and the address of a person on one line, the address between angle brackets."""

ProviderName = Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL_PATTERN)]
"""`git` is plain Git without pull requests; `local` keeps pull requests inside a bare repository on this machine."""

Approval = Literal["auto", "pr-review"]

MergeStrategy = Literal["cherry-pick", "overlay"]


class Identity(Model):
    """An author or committer of commits."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=_IDENTITY_PATTERN)]
    email: Annotated[str, Field(min_length=3, max_length=254, pattern=_ADDRESS_PATTERN)]


class MessageTemplate(Model):
    """The message of a promotion's commit, with placeholders such as `${bundle.version}`; trailers are always added."""

    subject: Annotated[str | None, Field(min_length=1, max_length=512)] = None
    body: Annotated[str | None, Field(max_length=4096)] = None


class Git(Model):
    """The GitOps repository that promotions are written to."""

    url: Url
    branch: Annotated[str, Field(min_length=1, max_length=244)] = "main"
    layout: Literal["directory", "branch"] = "directory"
    provider: ProviderName = "git"
    secret_ref: SecretReference | None = None
    webhook_secret_ref: SecretReference | None = None
    signing_secret_ref: SecretReference | None = None
    merge_method: Literal["merge", "squash", "rebase"] | None = None
    status_on_others: bool = False
    message: MessageTemplate | None = None
    author: Identity | None = None
    committer: Identity | None = None


class HelmValue(Model):
    """One scalar of a values file that holds an image, or a part of one."""

    path: Annotated[str, Field(min_length=1, max_length=512)]
    value: Literal["tag", "digest", "reference", "repository"] = "tag"
    image: Annotated[str | None, Field(max_length=253)] = None


class HelmUpdate(Model):
    """Which scalars of which values file take the promoted images."""

    file: RelativePath = "values.yaml"
    values: Annotated[tuple[HelmValue, ...], Field(max_length=64)] = ()


class ReplaceUpdate(Model):
    """The files in which a literal, by default the repository of the image, is followed by the version to replace."""

    files: Annotated[tuple[RelativePath, ...], Field(min_length=1, max_length=64)]
    literal: Annotated[str | None, Field(min_length=1, max_length=512)] = None


class ConfigUpdate(Model):
    """The source of the commits of `config` and `mixed` Bundles, and how an environment takes them.

    `repository` is by default that of the Pipeline, and no other is taken from; `branch` must contain the commit, by
    default `main`, or `git.branch` in the Pipeline's own repository. `from` is the directory there that stands for the
    environment's, by default the commit's path. `secretRef` is by default that of the Pipeline, on the same host only.
    """

    strategy: MergeStrategy = "cherry-pick"
    from_: Annotated[RelativePath | None, Field(alias="from")] = None
    repository: Url | None = None
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    secret_ref: SecretReference | None = None


class Update(Model):
    """How the manifests of an environment take a new artifact."""

    strategy: Literal["kustomize", "helm", "replace", "oci"] = "kustomize"
    verify_effect: Literal["fail", "warn", "off"] = "fail"
    images: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=253)], ...], Field(max_length=64)] = ()
    helm: HelmUpdate | None = None
    replace: ReplaceUpdate | None = None
    config: ConfigUpdate | None = None


class Delivery(Model):
    """Which in-cluster progressive delivery controller an environment waits for."""

    delegate: Literal["none", "argoRollouts", "flagger"] = "none"


class StepRetry(Model):
    """How often a step that failed for a passing reason is tried in all."""

    attempts: Annotated[int, Field(ge=1, le=100)]


class StepSpec(Model):
    """One step of an explicit sequence; `config` is the step's own."""

    uses: Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL_PATTERN)]
    as_: Annotated[str | None, Field(alias="as", min_length=1, max_length=63, pattern=r"^[a-z][a-zA-Z0-9]*$")] = None
    if_: Annotated[str | None, Field(alias="if", min_length=1, max_length=1024)] = None
    timeout: Duration | None = None
    retry: StepRetry | None = None
    continue_on_error: bool | None = None
    config: Annotated[
        dict[str, Any] | None,
        Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = None

    @property
    def output_name(self) -> str:
        """Return the name under which the outputs of the step are kept."""
        return self.as_ or self.uses


class Environment(Model):
    """One place a Bundle is promoted to. Without `dependsOn` it follows the previous entry of the list."""

    name: DnsLabel
    path: RelativePath | None = None
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    depends_on: Annotated[
        tuple[DnsLabel, ...] | None, Field(max_length=32, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = None
    approval: Approval = "auto"
    pr: bool = False
    update: Update = Field(default_factory=Update)
    health: Health = Field(default_factory=Health)
    delivery: Delivery = Field(default_factory=Delivery)
    steps: Annotated[tuple[StepSpec, ...] | None, Field(max_length=32)] = None
    shard: DnsLabel | None = None
    on_health_failure: Literal["none", "rollback"] = "none"

    def target_branch(self, git: Git) -> str:
        """Return the branch that the environment is deployed from, its default resolved."""
        return (self.branch or f"env/{self.name}") if git.layout == "branch" else git.branch

    @property
    def directory(self) -> str:
        """Return the path in the repository, its default resolved."""
        return self.path or f"environments/{self.name}"


class PipelineSpec(Model):
    git: Git
    environments: Annotated[
        tuple[Environment, ...],
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = ()
    promotion_policy: Literal["supersede", "queue"] = "supersede"
    history_limit: Annotated[int, Field(ge=1, le=1000)] = 20


class HeldChange(Model):
    """An environment that no change may reach now unless a Bundle brings it, and why."""

    environment: DnsLabel
    reason: Text


class OtherChanges(Model):
    """The answer of today's gates about changes that no Bundle brings; environments that are not `held` are open.

    `until`: the moment at which time alone changes the answer; it does not count from then on. Reasons hold the values
    seen at `evaluatedAt`.
    """

    observed_generation: int
    evaluated_at: Time
    until: Time | None = None
    held: Annotated[
        tuple[HeldChange, ...],
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["environment"]},
        ),
    ] = ()


class PipelineStatus(Status):
    """Conditions: Ready, RepositoryReady and SharedPath.

    Ready: the Pipeline can be translated. RepositoryReady, and `RepositoryReady-<shard>` for the environments of a
    shard: its agent can promote to the repository. SharedPath stands while another Pipeline writes to a path of it.
    `otherChanges` and `wokenAt` are there with `git.statusOnOthers`; `wokenAt` is when the host last said that a pull
    request has come or changed, and says nothing else.
    """

    other_changes: OtherChanges | None = None
    woken_at: Time | None = None


class Pipeline(Resource):
    resource: ClassVar[ResourceType] = PIPELINE

    spec: PipelineSpec
    status: PipelineStatus = Field(default_factory=PipelineStatus)
