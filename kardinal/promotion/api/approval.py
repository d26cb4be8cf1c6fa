"""Approval: a person, or a system outside, has decided about one Bundle before one environment.

An Approval does not change after its creation, and is revoked by its deletion. It names its Bundle by uid, so it is for
no later Bundle of that name. Who may create one, and which ones count, is said in `docs/design/trust.md`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from kardinal.models.base import DnsLabel, Model, Name, Resource, Status, Time
from kardinal.objects import ResourceType
from kardinal.promotion.kinds import APPROVAL

__all__ = ["ONE_LINE_PATTERN", "Approval", "ApprovalSpec", "ApprovalStatus", "ExternalAnswer"]

ONE_LINE_PATTERN = r"^[^\x00-\x1f\x7f]*$"
"""Text without control characters."""

GATE_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

_RULES = (
    ("self == oldSelf", "an Approval does not change: delete it, and approve again"),
    ("has(self.gate) != has(self.external)", "an Approval is for a gate, or is an external answer: name one of them"),
    ("!has(self.gate) || has(self.environment)", "an Approval for a gate names the environment"),
    ("!has(self.external) || self.via == 'controller'", "external answers are posted to the controller"),
)


class ExternalAnswer(Model):
    """The answer of a system outside, such as a change management, which gates read by its name."""

    name: DnsLabel
    """Name of the answer: gates read `externalApproval["change"]`, for example."""
    approved: bool
    """Whether the system approves."""
    signed_at: Time
    """The time of the signature of its request. Of several answers, the one signed last counts."""


class ApprovalSpec(Model):
    model_config = ConfigDict(
        json_schema_extra={"x-kubernetes-validations": [{"rule": rule, "message": text} for rule, text in _RULES]}
    )

    bundle: Name
    """Name of the Bundle."""
    uid: Annotated[str, Field(min_length=1, max_length=63)]
    """UID of the Bundle. The Approval is for no other Bundle of that name."""
    environment: DnsLabel | None = None
    """The environment. An external answer without one is for every environment."""
    gate: Annotated[str | None, Field(max_length=320, pattern=GATE_PATTERN)] = None
    """The gate as `namespace/name` of its template."""
    external: ExternalAnswer | None = None
    """The answer of a system outside, instead of a gate."""
    approver: Annotated[str, Field(min_length=1, max_length=256, pattern=ONE_LINE_PATTERN)]
    """The user who approves, as the API server names them; of an external answer, the token of the webhook."""
    reason: Annotated[str | None, Field(max_length=1024, pattern=ONE_LINE_PATTERN)] = None
    """Why, on one line."""
    expires_at: Time | None = None
    """The time from which the Approval no longer counts. Defaults to never."""
    via: Literal["admission", "controller"] = "admission"
    """The place of the check that the approver is the user, and may approve.

    `admission`: the admission policy of the cluster; it counts with `--approvals-by-admission`. `controller`: the
    controller, with its signature in the status. Defaults to `admission`.
    """


class ApprovalStatus(Status):
    """An Approval has no conditions. Whether it counts is seen at its gate."""

    signature: Annotated[str | None, Field(max_length=64)] = None
    """HMAC of the controller over the spec and the UID of this object, if it was created by the controller."""


class Approval(Resource):
    resource: ClassVar[ResourceType] = APPROVAL

    spec: ApprovalSpec
    """The decision, and the person."""
    status: ApprovalStatus = Field(default_factory=ApprovalStatus)
    """The signature of the controller."""
