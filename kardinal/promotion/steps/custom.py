"""Custom steps: a step whose `uses` no package declares, and whose `config.url` is an HTTP endpoint.

The endpoint receives the promotion as JSON and answers whether it may go on; `kardinal_agent.steps.custom` makes the
request. The endpoint receives the whole config, so unknown keys are allowed. A key that is similar to a known one is
refused, because a misspelt `timeot` would be a time limit that does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from kardinal.models.base import Duration, SecretReference
from kardinal.objects.duration import DurationError, parse_duration
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.declaration import StepConfig, StepDeclaration

__all__ = ["CustomConfig", "custom_step", "is_custom"]

_TIME_LIMIT: Final = timedelta(minutes=5)
"""The time limit of a custom step without a timeout."""

_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}")
"""Only characters that every URL parser reads in the same way."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{0,1024}")
_OUR_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    ]
)
_OUR_PREFIX = "x-kardinal-"


class CustomConfig(StepConfig):
    """The endpoint of a custom step, and how it is called.

    `secretRef` names a Secret with `token`, `hmacKey` or both. `headers` are sent with each request; they must not
    contain secrets.
    """

    model_config = ConfigDict(extra="allow")

    url: Annotated[str, Field(min_length=1, max_length=2048)]
    timeout: Duration | None = None
    secret_ref: SecretReference | None = None
    headers: Annotated[dict[str, str], Field(max_length=16)] = Field(default_factory=dict)

    @field_validator("timeout", mode="before")
    @classmethod
    def _bounded_timeout(cls, timeout: object) -> object:
        # The schema of the custom resource does not validate this field.
        return parse_duration(timeout) if isinstance(timeout, str) else timeout

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
            raise PydanticCustomError("url", "must be a URL of printable ASCII characters")
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("https", "http") and _HOST.fullmatch(parts.hostname or "") and parts.port != 0
        except ValueError:
            known = False
        if not known:
            raise PydanticCustomError("url", "must be https://host[:port]/path, or http where the operator allows it")
        if parts.username is not None or parts.password is not None:
            raise PydanticCustomError("url", "holds credentials; put them into a Secret and name it in secretRef")
        if parts.fragment:
            raise PydanticCustomError("url", "has a fragment, which is not sent; leave it out")
        return url

    @field_validator("timeout")
    @classmethod
    def _longer_than_nothing(cls, timeout: timedelta | None) -> timedelta | None:
        if timeout is not None and timeout <= timedelta():
            raise PydanticCustomError("timeout", "must be longer than nothing")
        return timeout

    @field_validator("headers")
    @classmethod
    def _harmless(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise PydanticCustomError("header", "names and values of headers are of printable ASCII characters")
            if name.lower() in _OUR_HEADERS or name.lower().startswith(_OUR_PREFIX):
                raise PydanticCustomError("header", f"{name} is not for you to set; credentials belong into secretRef")
        return headers

    @model_validator(mode="after")
    def _no_typing_mistake(self) -> CustomConfig:
        known = ("url", "timeout", "secretRef", "headers")
        for name in self.model_extra or ():
            if near := nearest(name, known, cutoff=0.75):
                raise PydanticCustomError("near", f"{name} is close to {near}: did you mean {near}? Else rename it")
        return self

    @classmethod
    def time_limit(cls, config: Mapping[str, Any]) -> timedelta | None:
        try:
            return parse_duration(str(config["timeout"])) if config.get("timeout") else _TIME_LIMIT
        except DurationError:
            return _TIME_LIMIT


def is_custom(step: StepSpec) -> bool:
    """Return whether `step`, which no package declares, has an endpoint."""
    return "url" in (step.config or {})


def custom_step(name: str) -> StepDeclaration:
    """Return the declaration of a custom step. Its effects are unknown, so it needs permission."""
    return StepDeclaration(name=name, config=CustomConfig, outside=True, permission=True)
