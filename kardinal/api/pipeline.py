"""Pipeline: the environments of one application, in order, and how each is written to."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

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
    """Name of the author or committer."""
    email: Annotated[str, Field(min_length=3, max_length=254, pattern=_ADDRESS_PATTERN)]
    """Mail address of the author or committer."""


class MessageTemplate(Model):
    """The message of a promotion's commit, with placeholders such as `${bundle.version}`; trailers are always added."""

    subject: Annotated[str | None, Field(min_length=1, max_length=512)] = None
    """First line of the message."""
    body: Annotated[str | None, Field(max_length=4096)] = None
    """Text after the first line; the trailers follow it."""


class Git(Model):
    """The GitOps repository that promotions are written to."""

    url: Url
    """URL of the repository: `https://`, `ssh://`, or with provider `local` a path of this machine."""
    branch: Annotated[str, Field(min_length=1, max_length=244)] = "main"
    """Branch that environments are deployed from with layout `directory`, and the source with layout `branch`."""
    layout: Literal["directory", "branch"] = "directory"
    """`directory`: each environment is a directory of one branch. `branch`: each environment is a branch of its own."""
    provider: ProviderName = "git"
    """Host of the pull requests: `github`, `gitlab`, `gitea`, `forgejo`, `local`, or `git` for none."""
    secret_ref: SecretReference | None = None
    """Secret with the credential for the repository and its host."""
    webhook_secret_ref: SecretReference | None = None
    """Secret whose `webhookSecret` signs the deliveries of the host."""
    signing_secret_ref: SecretReference | None = None
    """Secret with the SSH key that signs commits."""
    merge_method: Literal["merge", "squash", "rebase"] | None = None
    """How pull requests are merged: `merge`, `squash` or `rebase`; by default as the host prefers."""
    status_on_others: bool = False
    """Whether pull requests of others get the commit status as well, with the gates of the environments they touch."""
    message: MessageTemplate | None = None
    """The message of commits; by default one that names the application, its version and the environment."""
    author: Identity | None = None
    """Author of the commits."""
    committer: Identity | None = None
    """Committer of the commits."""


class HelmValue(Model):
    """One scalar of a values file that holds an image, or a part of one."""

    path: Annotated[str, Field(min_length=1, max_length=512)]
    """Path of the scalar, such as `image.tag`."""
    value: Literal["tag", "digest", "reference", "repository"] = "tag"
    """The part of the image that the scalar holds: `tag`, `digest`, `reference` for all of it, or `repository`."""
    image: Annotated[str | None, Field(max_length=253)] = None
    """Repository of the image that belongs here, where a Bundle has several."""


class HelmUpdate(Model):
    """Which scalars of which values file take the promoted images."""

    file: RelativePath = "values.yaml"
    """The values file, below the environment's directory."""
    values: Annotated[tuple[HelmValue, ...], Field(max_length=64)] = ()
    """The scalars that take the images; by default those that a reader finds."""


class ReplaceUpdate(Model):
    """The files in which a literal, by default the repository of the image, is followed by the version to replace."""

    files: Annotated[tuple[RelativePath, ...], Field(min_length=1, max_length=64)]
    """The files, below the environment's directory."""
    literal: Annotated[str | None, Field(min_length=1, max_length=512)] = None
    """The text before the version; by default the repository of the image."""


class ConfigUpdate(Model):
    """The source of the commits of `config` and `mixed` Bundles, and how an environment takes them.

    `repository` is by default that of the Pipeline, and no other is taken from; `branch` must contain the commit, by
    default `main`, or `git.branch` in the Pipeline's own repository. `from` is the directory there that stands for the
    environment's, by default the commit's path. `secretRef` is by default that of the Pipeline, on the same host only.
    """

    strategy: MergeStrategy = "cherry-pick"
    """`cherry-pick` applies the change of the commit, `overlay` its whole state of the directory."""
    from_: Annotated[RelativePath | None, Field(alias="from")] = None
    """Directory in the source that stands for the environment's."""
    repository: Url | None = None
    """Repository of the commits; by default that of the Pipeline."""
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """Branch that must contain the commit."""
    secret_ref: SecretReference | None = None
    """Secret with the credential for that repository."""


class Update(Model):
    """How the manifests of an environment take a new artifact."""

    strategy: Literal["kustomize", "helm", "replace", "oci"] = "kustomize"
    """Place of the version: `kustomize` a kustomization, `helm` a values file, `replace` a text in files, `oci` is not
    available.
    """
    verify_effect: Literal["fail", "warn", "off"] = "fail"
    """Consequence of an edit without effect: `fail` ends the promotion, `warn` says so, `off` does not look."""
    images: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=253)], ...], Field(max_length=64)] = ()
    """Images of the Bundle that this environment takes, each by its name or its repository; by default all."""
    pin_digest: bool | None = None
    """Whether images that a Bundle names by tag are written with the digests that the tags had when it started."""
    helm: HelmUpdate | None = None
    """For strategy `helm`."""
    replace: ReplaceUpdate | None = None
    """For strategy `replace`."""
    config: ConfigUpdate | None = None
    """For Bundles of type `config` and `mixed`."""


class Delivery(Model):
    """Which in-cluster progressive delivery controller an environment waits for."""

    delegate: Literal["none", "argoRollouts", "flagger"] = "none"
    """`none`, `argoRollouts` or `flagger`."""


class StepRetry(Model):
    """How often a step that failed for a passing reason is tried in all."""

    attempts: Annotated[int, Field(ge=1, le=100)]
    """Attempts in all."""


class StepSpec(Model):
    """One step of an explicit sequence; `config` is the step's own."""

    uses: Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL_PATTERN)]
    """Name of the step."""
    as_: Annotated[str | None, Field(alias="as", min_length=1, max_length=63, pattern=r"^[a-z][a-zA-Z0-9]*$")] = None
    """Name under which its outputs are read; by default that of the step."""
    if_: Annotated[str | None, Field(alias="if", min_length=1, max_length=1024)] = None
    """Condition in CEL on the outputs so far; the step is left out where it is false."""
    timeout: Duration | None = None
    """Time that the step may take."""
    retry: StepRetry | None = None
    """Attempts at a failure that may pass."""
    continue_on_error: bool | None = None
    """Whether the promotion goes on when the step fails."""
    config: Annotated[
        dict[str, Any] | None,
        Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = None
    """Input of the step; docs/steps.md has the fields of each."""

    @property
    def output_name(self) -> str:
        """Return the name under which the outputs of the step are kept."""
        return self.as_ or self.uses


_CONDITION_OF_DEPLOYMENT: dict[str, JsonValue] = {
    "rule": "!has(self.health) || !has(self.health.resource) || !has(self.health.resource.condition)"
    " || !has(self.health.resource.kind) || self.health.resource.kind == 'Deployment'",
    "message": "condition is of a Deployment: leave it out, workloads of other kinds are judged by their rollout",
    "fieldPath": ".health.resource.condition",
}
"""A rule of Pipelines alone: a Graph that was made before it goes on."""


class Environment(Model):
    """One place a Bundle is promoted to. Without `dependsOn` it follows the previous entry of the list."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [_CONDITION_OF_DEPLOYMENT]})

    name: DnsLabel
    """Name of the environment."""
    path: RelativePath | None = None
    """Directory in the repository; by default `environments/<name>`."""
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """Branch of its own, with layout `branch`; by default `env/<name>`."""
    depends_on: Annotated[
        tuple[DnsLabel, ...] | None, Field(max_length=32, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = None
    """Environments that must be Verified before it; by default the entry before, and none for an empty list."""
    approval: Approval = "auto"
    """`auto` writes to the branch, `pr-review` opens a pull request and waits until a person has merged it."""
    pr: bool = False
    """Whether `auto` opens a pull request as well, and merges it itself."""
    update: Update = Field(default_factory=Update)
    """How its manifests take a new version."""
    health: Health = Field(default_factory=Health)
    """How it proves that it runs what was promoted."""
    delivery: Delivery = Field(default_factory=Delivery)
    """The delivery controller that it waits for."""
    steps: Annotated[tuple[StepSpec, ...] | None, Field(max_length=32)] = None
    """The sequence of steps; by default that of docs/steps.md for strategy, approval and layout."""
    shard: DnsLabel | None = None
    """Name of the agents that promote to it; by default those of the controller."""
    on_health_failure: Literal["none", "abort", "rollback"] = "none"
    """Consequence of a change that has landed and Failed: `none`, `abort` stops the Bundle where it has not landed,
    `rollback` brings back what was Verified there before.
    """

    def target_branch(self, git: Git) -> str:
        """Return the branch that the environment is deployed from, its default resolved."""
        return (self.branch or f"env/{self.name}") if git.layout == "branch" else git.branch

    @property
    def directory(self) -> str:
        """Return the path in the repository, its default resolved."""
        return self.path or f"environments/{self.name}"


class PipelineSpec(Model):
    git: Git
    """The repository that promotions are written to."""
    environments: Annotated[
        tuple[Environment, ...],
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = ()
    """The environments, in their order."""
    pull_secret_ref: SecretReference | None = None
    """Secret of type `kubernetes.io/dockerconfigjson` for the registries that are asked which digests tags have."""
    promotion_policy: Literal["supersede", "queue"] = "supersede"
    """Order of Bundles: with `supersede` a newer one takes the place of older ones, with `queue` it waits for them."""
    history_limit: Annotated[int, Field(ge=1, le=1000)] = 20
    """Finished Bundles that are kept."""


class HeldChange(Model):
    """An environment that no change may reach now unless a Bundle brings it, and why."""

    environment: DnsLabel
    """Name of the environment."""
    reason: Text
    """Why no change may reach it."""


class OtherChanges(Model):
    """The answer of today's gates about changes that no Bundle brings; environments that are not `held` are open.

    `until`: the moment at which time alone changes the answer; it does not count from then on. Reasons hold the values
    seen at `evaluatedAt`.
    """

    observed_generation: int
    """Generation of the Pipeline that was looked at."""
    evaluated_at: Time
    """The moment of the answer."""
    until: Time | None = None
    """The moment at which time alone can change the answer."""
    held: Annotated[
        tuple[HeldChange, ...],
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["environment"]},
        ),
    ] = ()
    """The environments that are held."""


class PipelineStatus(Status):
    """Conditions: Ready, RepositoryReady, Ignored and SharedPath.

    Ready: the Pipeline can be translated. RepositoryReady, and `RepositoryReady-<shard>` for the environments of a
    shard: its agent can promote to the repository. Ignored stands while a field has no effect here, SharedPath while
    another Pipeline writes to a path of it.
    `otherChanges` and `wokenAt` are there with `git.statusOnOthers`; `wokenAt` is when the host last said that a pull
    request has come or changed, and says nothing else.
    """

    other_changes: OtherChanges | None = None
    """The answer of gates about changes that no Bundle brings."""
    woken_at: Time | None = None
    """The moment at which a host last said that something changed."""


class Pipeline(Resource):
    resource: ClassVar[ResourceType] = PIPELINE

    spec: PipelineSpec
    """The repository and the environments."""
    status: PipelineStatus = Field(default_factory=PipelineStatus)
    """The findings of controllers."""
