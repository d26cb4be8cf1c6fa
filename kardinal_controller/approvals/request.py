"""Parse the bodies of the two requests, within the limits of the webhook (pure)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from kardinal.models.base import DNS_LABEL_PATTERN, DnsLabel, Model, Name, Time
from kardinal.promotion.api.approval import ONE_LINE_PATTERN
from kardinal_controller.http.body import decode
from kardinal_controller.http.problem import ERRORS_SHOWN, FieldError, ProblemError

__all__ = ["AnswerRequest", "ApprovalRequest", "parse"]

_GATE = rf"^({DNS_LABEL_PATTERN[1:-1]}/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"

_Reason = Annotated[str, Field(max_length=1024, pattern=ONE_LINE_PATTERN)]


class ApprovalRequest(Model):
    """The body of `POST /api/v1/approvals`."""

    model_config = ConfigDict(extra="forbid")

    namespace: DnsLabel
    """Namespace of the Bundle."""
    bundle: Name
    environment: DnsLabel
    gate: Annotated[str, Field(max_length=320, pattern=_GATE)]
    """The gate as `[namespace/]name` of its template; the namespace defaults to that of the Bundle."""
    reason: _Reason | None = None
    expires_at: Time | None = None

    @property
    def template(self) -> tuple[str, str]:
        """Namespace and name of the gate."""
        namespace, _, name = self.gate.rpartition("/")
        return namespace or self.namespace, name


class AnswerRequest(Model):
    """The body of `POST /api/v1/namespaces/NS/approvals/NAME`."""

    model_config = ConfigDict(extra="forbid")

    bundle: Name
    environment: DnsLabel | None = None
    """Defaults to every environment."""
    approved: Annotated[bool, Field(strict=True)]
    reason: _Reason | None = None
    expires_at: Time | None = None


M = TypeVar("M", bound=Model)


def parse(body: bytes, model: type[M]) -> M:
    """Return the request in a body. Raises `ProblemError` 422 with the paths of the wrong fields."""
    document = decode(body)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        fields = [FieldError(".".join(map(str, item["loc"])), item["msg"]) for item in found[:ERRORS_SHOWN]]
    raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "the body is not a valid approval", fields)
