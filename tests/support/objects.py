"""The custom resources that tests write, as their users would write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kardinal.promotion.api import names
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.repository import APPLICATION, IMAGE, GitRepository

__all__ = ["bundle", "environment", "gate", "namespace", "pipeline"]

JsonObject = dict[str, Any]
API_VERSION = "kardinal.io/v1alpha1"


def namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def environment(name: str, **fields: Any) -> JsonObject:
    """Return an environment of the sample repository; `fields` are those of the Pipeline, in camelCase."""
    return {"name": name, "path": f"environments/{name}", **fields}


def pipeline(
    repository: GitRepository | str,
    *,
    name: str = APPLICATION,
    environments: Sequence[str | JsonObject] = (DEV, STAGING, PROD),
    provider: str = "local",
    namespace: str = TEAM,
    **spec: Any,
) -> JsonObject:
    """Return a Pipeline on `repository`; an environment is a name or what `environment` returns."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Pipeline",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "git": {"url": repository if isinstance(repository, str) else repository.url, "provider": provider},
            "environments": [environment(entry) if isinstance(entry, str) else entry for entry in environments],
            **spec,
        },
    }


def bundle(
    name: str,
    *,
    tag: str = "1.1.0",
    image: str = IMAGE,
    pipeline: str = APPLICATION,
    labels: dict[str, str] | None = None,
    namespace: str = TEAM,
    **spec: Any,
) -> JsonObject:
    """Return a Bundle of one image."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Bundle",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.LABEL_PIPELINE: pipeline, **(labels or {})},
        },
        "spec": {"type": "image", "artifacts": {"images": [{"name": "app", "reference": f"{image}:{tag}"}]}, **spec},
    }


def gate(
    name: str,
    expression: str,
    *,
    applies_to: str | None = PROD,
    namespace: str = TEAM,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    """Return a PolicyGate template; in the namespace `POLICIES` it is one of the organisation."""
    where = {names.LABEL_APPLIES_TO: applies_to} if applies_to else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyGate",
        "metadata": {"name": name, "namespace": namespace, "labels": where | (labels or {})},
        "spec": {"expression": expression, **spec},
    }
