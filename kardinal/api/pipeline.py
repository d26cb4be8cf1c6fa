"""Pipeline: the environments of one application, in order, and how each is written to."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kardinal.api.base import (
    DnsLabel,
    Duration,
    Model,
    Name,
    RelativePath,
    Resource,
    SecretReference,
    Status,
    Url,
)
from kardinal.objects import PIPELINE, ResourceType

__all__ = [
    "PIPELINE",
    "Approval",
    "Delivery",
    "Environment",
    "Git",
    "Health",
    "HealthReference",
    "HealthResource",
    "Pipeline",
    "PipelineSpec",
    "PipelineStatus",
    "Provider",
    "StepSpec",
    "Update",
]

Provider = Literal["git", "local", "github", "gitlab", "gitea", "bitbucket"]
"""`git` is plain Git without pull requests; `local` keeps pull requests inside a bare repository on this machine."""

Approval = Literal["auto", "pr-review"]


class Git(Model):
    """The GitOps repository that promotions are written to."""

    url: Url
    branch: Annotated[str, Field(min_length=1, max_length=244)] = "main"
    layout: Literal["directory", "branch"] = "directory"
    provider: Provider = "git"
    secret_ref: SecretReference | None = None


class Update(Model):
    """How the manifests of an environment take a new artifact."""

    strategy: Literal["kustomize", "helm", "replace", "oci"] = "kustomize"


class HealthResource(Model):
    """The workload that must run the promoted image; by default the Pipeline's name in the environment's namespace."""

    kind: Literal["Deployment"] = "Deployment"
    name: Name | None = None
    namespace: DnsLabel | None = None
    condition: Literal["Available"] = "Available"


class HealthReference(Model):
    """The object of a GitOps tool that speaks for an environment."""

    name: Name
    namespace: DnsLabel | None = None


class Health(Model):
    """How an environment proves that it runs what was promoted; without `type` the adapter is detected."""

    type: Literal["resource", "argocd", "flux", "argoRollouts", "flagger"] | None = None
    resource: HealthResource | None = None
    argocd: HealthReference | None = None
    flux: HealthReference | None = None
    cluster: Name | None = None
    timeout: Duration | None = None


class Delivery(Model):
    """Which in-cluster progressive delivery controller an environment waits for."""

    delegate: Literal["none", "argoRollouts", "flagger"] = "none"


class StepSpec(Model):
    """One step of an explicit sequence; `config` is the step's own."""

    uses: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    config: Annotated[
        dict[str, Any] | None,
        Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}),
    ] = None


class Environment(Model):
    """One place a Bundle is promoted to. Without `dependsOn` it follows the previous entry of the list."""

    name: DnsLabel
    path: RelativePath | None = None
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


class PipelineStatus(Status):
    """Conditions: Ready (the Pipeline can be translated); SharedPath while another Pipeline writes to a path of it."""


class Pipeline(Resource):
    resource: ClassVar[ResourceType] = PIPELINE

    spec: PipelineSpec
    status: PipelineStatus = Field(default_factory=PipelineStatus)
