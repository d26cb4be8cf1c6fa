"""Pipeline: the environments of one application, in order, and how each is written to."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

from kardinal.models.base import (
    DNS_LABEL_PATTERN,
    DnsLabel,
    Duration,
    Model,
    Name,
    RelativePath,
    Resource,
    SecretReference,
    Status,
    Text,
    Time,
    Url,
)
from kardinal.objects import ResourceType
from kardinal.promotion.api.health import Health
from kardinal.promotion.api.health_adapters import NO_DELEGATE, DelegateName
from kardinal.promotion.kinds import PIPELINE

__all__ = [
    "Approval",
    "ConfigUpdate",
    "Environment",
    "Git",
    "HeldChange",
    "HelmUpdate",
    "HelmValue",
    "Identity",
    "MergeStrategy",
    "MessageTemplate",
    "MetricVerification",
    "OtherChanges",
    "Pipeline",
    "PipelineSpec",
    "PipelineStatus",
    "ProgressiveDelivery",
    "ProviderName",
    "PullRequestFields",
    "ReplaceUpdate",
    "StepRetry",
    "StepSpec",
    "Update",
]

_IDENTITY_PATTERN = r"^[^<>\x00-\x1f\x7f]+$"
_ADDRESS_PATTERN = r"^[^<>\x00-\x20\x7f]+$"
"""The characters of names and addresses in a commit, which has `Name <address>` on one line."""

_LOGIN = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_LABEL_PATTERN = r"^[^,\s\x00-\x1f\x7f-\x9f]([^,\x00-\x1f\x7f-\x9f]*[^,\s\x00-\x1f\x7f-\x9f])?$"
"""The name of a label, such as `release notes`: printable, without a space at its ends, and without a comma."""
_MANY = Field(max_length=20, json_schema_extra={"x-kubernetes-list-type": "set"})

Login = Annotated[str, Field(min_length=1, max_length=100, pattern=rf"^{_LOGIN}$")]
"""The name with which a user signs in at a host, such as `jane-doe`."""
TeamSlug = Annotated[str, Field(min_length=1, max_length=201, pattern=rf"^({_LOGIN}/)?{_LOGIN}$")]
"""The name of a team in addresses, such as `platform`, or with its organisation `acme/platform`."""
LabelName = Annotated[str, Field(min_length=1, max_length=50, pattern=_LABEL_PATTERN)]

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


class PullRequestFields(Model):
    """Fields of pull requests besides their text. They are set once, when a pull request is opened."""

    reviewers: Annotated[tuple[Login, ...], _MANY] = ()
    """Users who are asked for a review."""
    team_reviewers: Annotated[tuple[TeamSlug, ...], _MANY] = ()
    """Teams that are asked for a review: `platform` of the repository's owner, or `acme/platform`."""
    assignees: Annotated[tuple[Login, ...], _MANY] = ()
    """Users that the pull request is assigned to."""
    labels: Annotated[tuple[LabelName, ...], _MANY] = ()
    """Labels besides those of kardinal. A label that the repository does not have is created."""
    draft: bool = False
    """Whether pull requests are opened as drafts.

    A draft is not merged until a person has marked it as ready. Defaults to false.
    """


class Git(Model):
    """The GitOps repository that promotions are written to."""

    url: Url
    """URL of the repository: `https://`, `ssh://`, or with provider `local` a path of this machine."""
    branch: Annotated[str, Field(min_length=1, max_length=244)] = "main"
    """Branch of the environments' directories with layout `directory`; branch of the sources with layout `branch`.

    Defaults to `main`.
    """
    layout: Literal["directory", "branch"] = "directory"
    """`directory`: each environment is a directory of one branch.

    `branch`: each environment is a branch of its own. Defaults to `directory`.
    """
    provider: ProviderName = "git"
    """Host of the pull requests: `github`, `gitlab`, `gitea`, `forgejo`, `local`, or `git` for none.

    Defaults to `git`.
    """
    secret_ref: SecretReference | None = None
    """Secret with the credential for the repository and its host."""
    webhook_secret_ref: SecretReference | None = None
    """Secret whose `webhookSecret` signs the deliveries of the host."""
    signing_secret_ref: SecretReference | None = None
    """Secret with the SSH key that signs commits."""
    merge_method: Literal["merge", "squash", "rebase"] | None = None
    """How pull requests are merged: `merge`, `squash` or `rebase`. Defaults to the method that the host prefers."""
    pull_request: PullRequestFields | None = None
    """Reviewers, assignees, labels and draft state of the pull requests."""
    status_on_others: bool = False
    """Whether pull requests of other authors get the commit status as well, with the gates of the environments they
    touch. Defaults to false.
    """
    message: MessageTemplate | None = None
    """The message of commits. Defaults to one that names the application, its version and the environment."""
    author: Identity | None = None
    """Author of the commits. Defaults to kardinal."""
    committer: Identity | None = None
    """Committer of the commits. Defaults to kardinal."""


class HelmValue(Model):
    """One scalar of a values file that holds an image, or a part of one."""

    path: Annotated[str, Field(min_length=1, max_length=512)]
    """Path of the scalar, such as `image.tag`."""
    value: Literal["tag", "digest", "reference", "repository"] = "tag"
    """The part of the image that the scalar holds: `tag`, `digest`, `reference` for all of it, or `repository`.

    Defaults to `tag`.
    """
    image: Annotated[str | None, Field(max_length=253)] = None
    """Repository or name of the image for this scalar; needed if a Bundle has several images."""


class HelmUpdate(Model):
    """The values file and the scalars in it that hold the promoted images."""

    file: RelativePath = "values.yaml"
    """The values file, below the environment's directory. Defaults to `values.yaml`."""
    values: Annotated[tuple[HelmValue, ...], Field(max_length=64)] = ()
    """The scalars for the images. Defaults to the ones in the usual places of charts, such as `image.tag`."""


class ReplaceUpdate(Model):
    """The files that contain a literal followed by a version; the promotion replaces the version."""

    files: Annotated[tuple[RelativePath, ...], Field(min_length=1, max_length=64)]
    """The files, below the environment's directory."""
    literal: Annotated[str | None, Field(min_length=1, max_length=512)] = None
    """The text before the version. Defaults to the repository of the image."""


class ConfigUpdate(Model):
    """The source of the commits of `config` and `mixed` Bundles, and how an environment takes them.

    `repository` defaults to that of the Pipeline, and commits of any other repository are refused. `branch` must
    contain the commit; it defaults to `main`, or to `git.branch` in the Pipeline's own repository. `from` is the
    directory there that corresponds to the environment's; it defaults to the commit's path. `secretRef` defaults to
    that of the Pipeline, on the same host only.
    """

    strategy: MergeStrategy = "cherry-pick"
    """`cherry-pick` applies the changes of the commit, `overlay` copies the changed files.

    Defaults to `cherry-pick`.
    """
    from_: Annotated[RelativePath | None, Field(alias="from")] = None
    """Directory in the source that corresponds to the environment's. Defaults to the path of the commit."""
    repository: Url | None = None
    """Repository of the commits. Defaults to that of the Pipeline."""
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """Branch that must contain the commit. Defaults to `main`, or to `git.branch` in the Pipeline's own repository."""
    secret_ref: SecretReference | None = None
    """Secret with the credential for that repository. Defaults to that of the Pipeline, on the same host only."""


class Update(Model):
    """How the manifests of an environment take a new artifact."""

    strategy: Literal["kustomize", "helm", "replace", "oci"] = "kustomize"
    """The place of the version: `kustomize` in a kustomization, `helm` in a values file, `replace` in text files; `oci`
    is not available. Defaults to `kustomize`.
    """
    verify_effect: Literal["fail", "warn", "off"] = "fail"
    """The reaction to an edit without an effect: `fail` ends the promotion, `warn` notes it, `off` does not check.

    Defaults to `fail`.
    """
    images: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=253)], ...], Field(max_length=64)] = ()
    """Images of the Bundle that this environment takes, each by its name or its repository. Defaults to all."""
    pin_digest: bool | None = None
    """Whether images that a Bundle names by tag are written with the digests that the tags had when it started.

    Defaults to false.
    """
    helm: HelmUpdate | None = None
    """For strategy `helm`: the values file and its scalars."""
    replace: ReplaceUpdate | None = None
    """For strategy `replace`: the files and the literal."""
    config: ConfigUpdate | None = None
    """For Bundles of type `config` and `mixed`: the source of their commits."""


class ProgressiveDelivery(Model):
    """The in-cluster progressive delivery controller that an environment waits for."""

    delegate: DelegateName = NO_DELEGATE
    """`none`, `argoRollouts` or `flagger`. Defaults to `none`."""


class StepRetry(Model):
    """How often a step that fails for a temporary reason is attempted."""

    attempts: Annotated[int, Field(ge=1, le=100)]
    """Number of attempts, including the first."""


class StepSpec(Model):
    """One step of an explicit sequence; `config` is the step's own."""

    uses: Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL_PATTERN)]
    """Name of the step."""
    as_: Annotated[str | None, Field(alias="as", min_length=1, max_length=63, pattern=r"^[a-z][a-zA-Z0-9]*$")] = None
    """Name under which its outputs are read. Defaults to the name of the step."""
    if_: Annotated[str | None, Field(alias="if", min_length=1, max_length=1024)] = None
    """Condition in CEL on the outputs so far; the step is skipped if it is false."""
    timeout: Duration | None = None
    """Time that the step may take. Defaults to no limit, except for steps that have their own."""
    retry: StepRetry | None = None
    """How often the step is attempted if it fails for a temporary reason. Defaults to no limit."""
    continue_on_error: bool | None = None
    """Whether the promotion goes on when the step fails. Defaults to false."""
    config: Annotated[
        dict[str, Any] | None,
        Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = None
    """Input of the step; docs/steps.md has the fields of each."""

    @property
    def output_name(self) -> str:
        """Return the name under which the outputs of the step are kept."""
        return self.as_ or self.uses


class MetricVerification(Model):
    """The metrics by which an environment is Verified, once it is healthy."""

    metrics: Annotated[
        tuple[Name, ...], Field(min_length=1, max_length=8, json_schema_extra={"x-kubernetes-list-type": "set"})
    ]
    """Names of MetricChecks in the namespace of the Pipeline."""
    for_: Annotated[Duration, Field(alias="for")] = timedelta(minutes=10)
    """How long all of them must pass without a break. Defaults to 10m."""


_CONDITION_OF_DEPLOYMENT: dict[str, JsonValue] = {
    "rule": "!has(self.health) || !has(self.health.resource) || !has(self.health.resource.condition)"
    " || !has(self.health.resource.kind) || self.health.resource.kind == 'Deployment'",
    "message": "condition is of a Deployment: leave it out, workloads of other kinds are judged by their rollout",
    "fieldPath": ".health.resource.condition",
}
"""A rule for Pipelines only: a Graph that was made before the rule existed stays valid."""


class Environment(Model):
    """One environment of a Pipeline. Without `dependsOn` it comes after the previous entry of the list."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [_CONDITION_OF_DEPLOYMENT]})

    name: DnsLabel
    """Name of the environment."""
    path: RelativePath | None = None
    """Directory in the repository. Defaults to `environments/<name>`."""
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """The environment's own branch, with layout `branch`. Defaults to `env/<name>`."""
    depends_on: Annotated[
        tuple[DnsLabel, ...] | None, Field(max_length=32, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = None
    """Environments that must be Verified before it. Defaults to the previous entry; an empty list means none."""
    when: Annotated[str | None, Field(min_length=1, max_length=512)] = None
    """Condition in CEL over `bundle`, such as `bundle.type == "image"`: where it is false, the Bundle leaves the
    environment out. Defaults to always.
    """
    approval: Approval = "auto"
    """`auto` writes to the branch, `pr-review` opens a pull request and waits until a person has merged it."""
    pr: bool = False
    """Whether `auto` opens a pull request as well, and merges it itself. Defaults to false."""
    update: Update = Field(default_factory=Update)
    """How its manifests take a new version."""
    health: Health = Field(default_factory=Health)
    """How it proves that it runs the promoted versions."""
    delivery: ProgressiveDelivery = Field(default_factory=ProgressiveDelivery)
    """The delivery controller that it waits for."""
    verify: MetricVerification | None = None
    """The metrics that must pass before it is Verified. Defaults to none."""
    steps: Annotated[tuple[StepSpec, ...] | None, Field(max_length=32)] = None
    """The sequence of steps. Defaults to that of docs/steps.md for strategy, approval and layout."""
    shard: DnsLabel | None = None
    """Name of the agents that promote to it. Defaults to the agents of the controller."""
    on_health_failure: Literal["none", "abort", "rollback", "rollback-all"] = "none"
    """The reaction when a landed change Failed: `none`; `abort` stops the Bundle where it has not landed; `rollback`
    restores the Bundle that was Verified there before; `rollback-all` does both, in every environment that received it.
    Defaults to `none`.
    """

    def target_branch(self, git: Git) -> str:
        """Return the branch that the environment is deployed from, with its default."""
        return (self.branch or f"env/{self.name}") if git.layout == "branch" else git.branch

    @property
    def directory(self) -> str:
        """Return the path in the repository, with its default."""
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
    """Secret of type `kubernetes.io/dockerconfigjson` for the registries that are asked for the digests of tags."""
    promotion_policy: Literal["supersede", "queue"] = "supersede"
    """Order of Bundles: with `supersede` a newer one takes the place of older ones, with `queue` it waits for them.

    Defaults to `supersede`.
    """
    history_limit: Annotated[int, Field(ge=1, le=1000)] = 20
    """Number of finished Bundles that are kept. Defaults to 20."""


class HeldChange(Model):
    """An environment that only a Bundle may change at present, and the reason."""

    environment: DnsLabel
    """Name of the environment."""
    reason: Text
    """The reason why no other change may reach it."""


class OtherChanges(Model):
    """The answer of today's gates about changes without a Bundle. Environments that are not in `held` are open.

    The answer counts until `until`, the time at which it can change without any event. Reasons contain the values read
    at `evaluatedAt`.
    """

    observed_generation: int
    """Generation of the Pipeline that was evaluated."""
    evaluated_at: Time
    """The time of the evaluation."""
    until: Time | None = None
    """The time at which time alone can change the answer."""
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
    shard: its agent can promote to the repository. Ignored: a field has no effect here. SharedPath: another Pipeline
    writes to a path of it.

    `otherChanges` and `wokenAt` are present with `git.statusOnOthers`. `wokenAt` is the time at which the host last
    reported a new or changed pull request; it has no other meaning.
    """

    other_changes: OtherChanges | None = None
    """The answer of gates about changes without a Bundle."""
    woken_at: Time | None = None
    """The time at which a host last reported a change."""


class Pipeline(Resource):
    resource: ClassVar[ResourceType] = PIPELINE

    spec: PipelineSpec
    """The repository and the environments."""
    status: PipelineStatus = Field(default_factory=PipelineStatus)
    """The findings of controllers."""
