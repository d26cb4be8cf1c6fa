"""Promotions in a repository at a host with pull requests, and the Secret that opens it."""

from __future__ import annotations

import base64
from typing import Any, Protocol

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from tests.agent.promotion_steps import promotion_step
from tests.support.names import DEV, TEAM
from tests.support.smart_server import PASSWORD, USER

__all__ = ["Hosted", "git_secret", "hosted_step"]


class Hosted(Protocol):
    """One repository at a host."""

    @property
    def provider(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def host(self) -> str:
        """Return `host:port`."""
        ...


def git_secret(host: Hosted, *, hosts: str | None = None, **data: str) -> JsonObject:
    """Return the Secret `git`, good for the host unless told otherwise."""
    values = {"username": USER, "token": PASSWORD} | data
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: host.host if hosts is None else hosts},
        },
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def hosted_step(host: Hosted, *, environment: str = DEV, git: dict[str, Any] | None = None, **spec: Any) -> JsonObject:
    """Return a PromotionStep in the repository of a host; without `approval` it is reviewed by a person."""
    made = promotion_step(host.url, environment, provider=host.provider, **({"approval": "pr-review"} | spec))
    made["spec"]["git"] |= {"secretRef": {"name": "git"}, **(git or {})}
    return made
